"""Trees split by random pairs of classes, and by the best of several such splits."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_ndtr
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies.structures.base import (
    STRUCTURES,
    GrowingTask,
    Structure,
    check_balance,
    split_downwards,
    split_in_half,
    split_within_bounds,
)
from dichotomies.structures.class_points import class_points
from dichotomies.tree import ClassTree
from dichotomies.tree.forest import node_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies.structures.class_points import ClassPoints

    Halving = tuple[IntArray, IntArray]


def split_losses(points: FloatArray, weight: FloatArray, is_left: BoolArray) -> FloatArray:
    """Return the summed log-loss of a linear discriminant for several ways to split the classes in two.

    The discriminant is the projection onto the difference of the two sides' means, with the threshold
    midway, in units of the standard deviation of the rows on either side; rows have variance 1 about their
    class's point (metric "within"). A class of weight w at signed distance z adds ``-w log Φ(z)``.

    Parameters
    ----------
    points : (m, r)
        Class centroids.
    weight : (m,)
        Weights of the classes.
    is_left : (n_ways, m)
        True for classes that go left.

    Returns
    -------
    (n_ways,)
    """
    share = np.maximum(weight, 1e-12 * max(float(weight.max()), 1e-300))
    left, right = np.where(is_left, share, 0.0), np.where(is_left, 0.0, share)
    total_left, total_right = left.sum(axis=1, keepdims=True), right.sum(axis=1, keepdims=True)
    mean_left, mean_right = left @ points / total_left, right @ points / total_right
    direction = mean_left - mean_right
    length = np.sqrt((direction**2).sum(axis=1, keepdims=True))
    along = direction / np.maximum(length, 1e-300) @ points.T
    at_left = (left * along).sum(axis=1, keepdims=True) / total_left
    at_right = (right * along).sum(axis=1, keepdims=True) / total_right
    side_mean = np.where(is_left, at_left, at_right)
    variance = 1 + (share * (along - side_mean) ** 2).sum(axis=1, keepdims=True) / share.sum()
    distance = (along - (at_left + at_right) / 2) / np.sqrt(variance)
    return np.asarray(-(share * log_ndtr(np.where(is_left, distance, -distance))).sum(axis=1))


class QuickJudge:
    """Score of a tree without a base learner: the sum of the discriminants' losses over its nodes.

    A node's loss depends only on the classes on its two sides and is cached, so for a tree similar to
    earlier ones only the new nodes are computed.
    """

    is_quick = True

    def __init__(self, task: GrowingTask) -> None:
        self._classes = class_points(task, "within")
        self._total = max(float(self._classes.weight.sum()), np.finfo(float).tiny)
        self._known: dict[tuple[int, int], float] = {}

    def __call__(self, tree: ClassTree, **sample: Any) -> float:  # noqa: ARG002
        """Return the mean loss per row; `sample` is ignored, because no rows are drawn."""
        points = self._classes.points[tree.leaf_order]
        weight = self._classes.weight[tree.leaf_order]
        loss = 0.0
        for node, key in enumerate(node_keys(tree).sides):
            if key not in self._known:
                start, split, stop = tree.start[node], tree.split[node], tree.stop[node]
                is_left = np.arange(start, stop)[None, :] < split
                losses = split_losses(points[start:stop], weight[start:stop], is_left)
                self._known[key] = float(losses[0])
            loss += self._known[key]
        return loss / self._total


#: Maximum number of points for which all pairs are compared.
_MAX_POINTS = 1_024
_MAX_STEPS = 20


@STRUCTURES.register("furthest-centroids")
class FurthestCentroids(Structure):
    """The two classes furthest apart are separated; every other class joins the nearer one.

    With more than 1,024 classes at a node, the pair is found by repeatedly moving to the class furthest from
    the last one, not by comparing all pairs. The tree depends neither on the seed nor on the label names.

    Parameters
    ----------
    balance, metric
        See "2-means".

    References
    ----------
    Duarte-Villaseñor, Carrasco-Ochoa, Martínez-Trinidad & Flores-Garrido, *Nested dichotomies based on
    clustering*, CIARP 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies.structures import STRUCTURES
    >>> X, y = load_iris(return_X_y=True)
    >>> STRUCTURES.create("furthest-centroids").grow(X, load_iris().target_names[y])
    ClassTree.from_nested(['setosa', ['versicolor', 'virginica']])
    """

    def __init__(self, balance: float = 0.0, metric: str = "auto") -> None:
        self.balance = balance
        self.metric = metric

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:  # noqa: ARG002
        balance = check_balance(self.balance)
        classes = class_points(task, self.metric)

        def split(codes: IntArray) -> tuple[IntArray, IntArray]:
            points = classes.points[codes]
            one, other = furthest_pair(points)
            if np.array_equal(points[one], points[other]):
                return split_in_half(codes)
            return split_within_bounds(codes, nearer_to(points, one, other), balance)

        return split_downwards(task, split, classes.order)


def nearer_to(points: FloatArray, one: int, other: int) -> FloatArray:
    """Return how much nearer each point is to `one` than to `other`, in squared distance."""
    preference = ((points - points[other]) ** 2).sum(axis=1) - ((points - points[one]) ** 2).sum(axis=1)
    return np.asarray(preference)


def furthest_pair(points: FloatArray) -> tuple[int, int]:
    """Return the two points furthest apart: exact for few points, approximate for many."""
    centred = points - points.mean(axis=0)
    length = np.einsum("ij,ij->i", centred, centred)
    if len(points) <= _MAX_POINTS:
        squared = length[:, None] + length - 2 * (centred @ centred.T)
        row, column = divmod(int(np.argmax(np.triu(squared, 1))), len(points))
        return (row, column) if row != column else (0, 1)
    one, furthest = int(np.argmax(length)), -1.0
    other = 0
    for _ in range(_MAX_STEPS):
        squared = ((points - points[one]) ** 2).sum(axis=1)
        candidate = int(np.argmax(squared))
        if squared[candidate] <= furthest:
            break
        one, other, furthest = candidate, one, float(squared[candidate])
    return one, other


class ClassRows:
    """Rows of any set of classes, and classifiers trained on them.

    Parameters
    ----------
    task : GrowingTask
        Rows, classes and weights.
    estimator : scikit-learn classifier
        Cloned for every fit; parameters ``random_state`` that are None are drawn from `rng`.
    rng : RandomState
        Source of seeds.
    """

    def __init__(self, task: GrowingTask, estimator: Any, rng: Any) -> None:
        self._task, self._estimator, self._rng = task, estimator, rng

    @cached_property
    def _by_class(self) -> list[IntArray]:
        rows = self._task.rows
        return np.split(rows.by_class, np.cumsum(rows.class_size)[:-1])

    def of(self, codes: IntArray) -> IntArray:
        """Return the row indices of some classes, in their original order."""
        return np.sort(np.concatenate([self._by_class[code] for code in codes]))

    def take(self, rows: IntArray) -> Matrix:
        """The features of some rows."""
        return self._task.rows.features_of(rows)

    def weight(self, rows: IntArray) -> FloatArray:
        """The weights of some rows."""
        weight = self._task.rows.weight
        return np.ones(len(rows)) if weight is None else weight[rows]

    def is_of(self, rows: IntArray, codes: IntArray) -> BoolArray:
        """Return a mask of the rows whose class is among `codes`."""
        return np.isin(self._task.rows.codes[rows], codes)

    def trained(self, rows: IntArray, is_left: BoolArray) -> Any:
        """Fit a clone of the estimator to separate rows that go left (class 1) from the others (class 0)."""
        model = clone(self._estimator)
        seeds = {
            name: self._rng.randint(2**31 - 1)
            for name, value in sorted(model.get_params(deep=True).items())
            if value is None and name.rpartition("__")[2] == "random_state"
        }
        model.set_params(**seeds)
        weighted = self._task.rows.weight is not None and has_fit_parameter(model, "sample_weight")
        weights = {"sample_weight": self.weight(rows)} if weighted else {}
        return model.fit(self.take(rows), is_left.astype(np.intp), **weights)


@STRUCTURES.register("random-pair")
class RandomPair(Structure):
    """Two classes drawn at random are separated; a classifier between them assigns every other class.

    The trees are random, but their splits are easier to learn than arbitrary ones, which suits ensembles.
    Renaming the classes renames the tree.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Trained on the rows of the two classes; each other class goes to the side where most of its rows (by
        weight) are predicted. By default a class joins the nearer of the two centroids.
    balance : float, default=0.0
        See "2-means".
    metric : "auto", "raw", "within" or "cosine", default="auto"
        Distance between centroids, without an estimator; see "2-means".

    References
    ----------
    Leathart, Pfahringer & Frank, *Building ensembles of adaptive nested dichotomies with random-pair
    selection*, ECML PKDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dichotomies.structures import STRUCTURES
    >>> STRUCTURES.create("random-pair").grow(*load_digits(n_class=5, return_X_y=True), random_state=0)
    ClassTree.from_nested([[1, 4], [0, [2, 3]]])
    """

    def __init__(self, estimator: Any = None, balance: float = 0.0, metric: str = "auto") -> None:
        self.estimator = estimator
        self.balance = balance
        self.metric = metric

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        classes = class_points(task, self.metric)
        nodes = None if self.estimator is None else ClassRows(task, self.estimator, rng)
        return split_downwards(task, pair_splitter(classes, nodes, self.balance, rng), classes.order)


@STRUCTURES.register("multiple-subset")
class MultipleSubset(Structure):
    """The best of several random-pair splits at every node, scored by a fast classifier.

    Renaming the classes renames the tree.

    Parameters
    ----------
    n_subsets : int, default=10
        Number of candidate splits per node.
    estimator : scikit-learn classifier, optional
        Trained on the node's rows for each candidate; the split with the lowest mean squared error of its
        probabilities on those rows is chosen. By default candidates are scored by a linear discriminant on
        the class centroids, which needs no training.
    balance : float, default=0.0
        See "2-means".

    References
    ----------
    Leathart, Frank, Pfahringer & Holmes, *Ensembles of nested dichotomies with multiple subset evaluation*,
    PAKDD 2019 (arXiv 2018).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies.structures import STRUCTURES
    >>> X, y = load_iris(return_X_y=True)
    >>> STRUCTURES.create("multiple-subset").grow(X, load_iris().target_names[y], random_state=0)
    ClassTree.from_nested([['versicolor', 'virginica'], 'setosa'])
    """

    def __init__(self, n_subsets: int = 10, estimator: Any = None, balance: float = 0.0) -> None:
        self.n_subsets = n_subsets
        self.estimator = estimator
        self.balance = balance

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        if self.n_subsets < 1:
            raise ValueError(f"n_subsets must be at least 1, got {self.n_subsets}.")
        classes = class_points(task, "within")
        nodes = None if self.estimator is None else ClassRows(task, self.estimator, rng)
        candidate = pair_splitter(classes, None, self.balance, rng)

        def split(codes: IntArray) -> Halving:
            if len(codes) == 2:
                return codes[:1], codes[1:]
            candidates = [candidate(codes) for _ in range(self.n_subsets)]
            if nodes is None:
                is_left = np.stack([np.isin(codes, left) for left, _ in candidates])
                losses = split_losses(classes.points[codes], classes.weight[codes], is_left)
            else:
                losses = np.array([_squared_error(nodes, codes, left) for left, _ in candidates])
            best: Halving = candidates[int(np.argmin(np.round(losses / max(losses.max(), 1e-300), 9)))]
            return best

        return split_downwards(task, split, classes.order)


def pair_splitter(
    classes: ClassPoints, nodes: ClassRows | None, balance: float, rng: Any
) -> Callable[[IntArray], Halving]:
    """Return a function that splits by two classes drawn at random, with classifiers or by centroids."""
    checked = check_balance(balance)

    def split(codes: IntArray) -> Halving:
        if len(codes) == 2:
            return codes[:1], codes[1:]
        one, other = rng.permutation(len(codes))[:2]
        if nodes is None:
            preference = nearer_to(classes.points[codes], one, other)
        else:
            preference = _votes(nodes, codes, one, other)
        # classes with equal points are assigned at random
        tied = preference == 0
        preference[tied] = 1e-300 * rng.choice([-1.0, 1.0], size=int(tied.sum()))
        return split_within_bounds(codes, preference, checked)

    return split


def _votes(nodes: ClassRows, codes: IntArray, one: int, other: int) -> FloatArray:
    """Return the share of each class's rows predicted as class `one` minus that predicted as `other`."""
    pair = nodes.of(codes[[one, other]])
    model = nodes.trained(pair, nodes.is_of(pair, codes[[one]]))
    votes = np.empty(len(codes))
    for i, code in enumerate(codes):
        rows = nodes.of(np.array([code]))
        weight = nodes.weight(rows)
        towards = 2.0 * model.predict(nodes.take(rows)) - 1
        votes[i] = towards @ weight / weight.sum() if weight.sum() > 0 else 0.0
    votes[one], votes[other] = 2.0, -2.0  # the pair is separated regardless of the predictions
    return votes


def _squared_error(nodes: ClassRows, codes: IntArray, left: IntArray) -> float:
    """Return the mean squared error of a classifier's probabilities on its training rows."""
    rows = nodes.of(codes)
    is_left = nodes.is_of(rows, left)
    proba = nodes.trained(rows, is_left).predict_proba(nodes.take(rows))[:, 1]
    weight = nodes.weight(rows)
    return float(((proba - is_left) ** 2) @ weight / max(weight.sum(), np.finfo(float).tiny))
