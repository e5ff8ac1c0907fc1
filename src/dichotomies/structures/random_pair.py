"""Trees split by random pairs of classes, and by the best of several such splits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.structures.base import (
    STRUCTURES,
    GrowingTask,
    Structure,
    check_balance,
    split_downwards,
    split_within_bounds,
)
from dichotomies.structures.class_points import class_points
from dichotomies.structures.class_rows import ClassRows
from dichotomies.structures.furthest_centroids import nearer_to
from dichotomies.structures.quick import split_losses

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.structures.class_points import ClassPoints
    from dichotomies.tree import ClassTree

    Halving = tuple[IntArray, IntArray]


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
