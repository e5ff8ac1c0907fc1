"""Trees grown downwards by 2-means on the class centroids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.structures.balance import check_balance, within_bounds
from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure, split_downwards
from dichotomies.structures.class_points import class_points

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies.tree import ClassTree

_MOST_STEPS = 50
_POWER_STEPS = 12


@STRUCTURES.register("2-means")
class TwoMeans(Structure):
    """Classes that are alike stay together: 2-means on the class centroids at every node.

    Every class counts once. The clustering starts from the two halves along the principal axis of the
    node's centroids, so the tree does not depend on the seed unless there are further starts; nor does it
    depend on the classes' names. Classes that nothing tells apart are halved.

    Parameters
    ----------
    balance : float, default=0.0
        The least share of a node's classes on either side is half of it, but never less than a twentieth:
        0 leaves the clusters nearly as they are, 1 halves them. Classes nearest to the border change sides
        where a side is too small. No leaf is deeper than ``log(k) / -log(1 - s) + 1``, s the least share.
    metric : "auto", "raw", "within" or "cosine", default="auto"
        How far centroids are apart: their Euclidean distance; their distance by the covariance within
        classes (as in linear discriminant analysis); the angle between them; or the second up to 512
        features and the third beyond, where centroids are also reduced to 100 dimensions.
    n_init : int, default=1
        Starts: the principal axis, and pairs of classes drawn at random.

    References
    ----------
    2-means on class centroids follows Duarte-Villaseñor et al., *Nested dichotomies based on clustering*,
    CIARP 2012, and the label trees of Bengio, Weston & Grangier, *Label embedding trees for large multi-class
    tasks*, NeurIPS 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies.structures import STRUCTURES
    >>> X, y = load_iris(return_X_y=True)
    >>> STRUCTURES.create("2-means").grow(X, load_iris().target_names[y])
    ClassTree.from_nested(['setosa', ['versicolor', 'virginica']])
    """

    def __init__(self, balance: float = 0.0, metric: str = "auto", n_init: int = 1) -> None:
        self.balance = balance
        self.metric = metric
        self.n_init = n_init

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        balance = check_balance(self.balance)
        classes = class_points(task, self.metric)

        def split(codes: IntArray) -> tuple[IntArray, IntArray]:
            preference = two_means(classes.points[codes], self.n_init, rng)
            return halves(codes) if preference is None else within_bounds(codes, preference, balance)

        return split_downwards(task, split, classes.order)


@STRUCTURES.register("balanced-2-means")
class BalancedTwoMeans(TwoMeans):
    """2-means on the class centroids, halved at every node: as shallow as a tree can be.

    As "2-means", with sides of equal size unless `balance` is given: no leaf is deeper than
    ``ceil(log2(k))``. Values in between trade depth for fit.

    Parameters
    ----------
    balance, metric, n_init
        See "2-means".

    References
    ----------
    Balanced clusters for trees of labels: Prabhu et al., *Parabel*, WWW 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.structures import STRUCTURES
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> STRUCTURES.create("balanced-2-means", metric="raw").grow(X, list("abcd"))
    ClassTree.from_nested([['a', 'b'], ['c', 'd']])
    """

    def __init__(self, balance: float = 1.0, metric: str = "auto", n_init: int = 1) -> None:
        super().__init__(balance, metric, n_init)


def halves(codes: IntArray) -> tuple[IntArray, IntArray]:
    """The first half and the rest, where nothing tells the classes apart."""
    middle = len(codes) // 2
    return codes[:middle], codes[middle:]


def two_means(points: FloatArray, n_init: int = 1, rng: Any = None) -> FloatArray | None:
    """How much nearer each point is to the first of two means than to the second, on some scale.

    None where all points are the same. Of several starts it is the one with the least sum of squares.
    """
    centred = points - points.mean(axis=0)
    largest = np.abs(centred).max()
    if largest < np.finfo(float).tiny:
        return None
    centred /= largest  # so that squares neither underflow nor overflow
    starts = [centred @ principal_axis(centred)] + [_from_pair(centred, rng) for _ in range(n_init - 1)]
    found = [_lloyd(centred, start > 0) for start in starts]
    explained = [gain for gain, _ in found]
    preference = found[int(np.argmax(explained))][1]
    return preference if preference[0] > 0 else -preference  # the first point goes left


def principal_axis(centred: FloatArray) -> FloatArray:
    """The direction in which centred points spread most, roughly.

    Power iteration, begun at the point furthest from the middle.
    """
    length = np.einsum("ij,ij->i", centred, centred)
    furthest = int(np.argmax(length))
    axis = centred[furthest] / np.sqrt(length[furthest])
    for _ in range(_POWER_STEPS):
        step = (centred @ axis) @ centred
        axis = step / np.sqrt(step @ step)
    return np.asarray(axis)


def _from_pair(points: FloatArray, rng: Any) -> FloatArray:
    """Nearer to the one or to the other of two points drawn at random."""
    one, other = points[rng.permutation(len(points))[:2]]
    return np.asarray(points @ (one - other) - (one @ one - other @ other) / 2)


def _lloyd(points: FloatArray, is_first: BoolArray) -> tuple[float, FloatArray]:
    """Lloyd's steps from a first division: the sum of squares explained, and the preferences.

    The points' mean is zero, so that the two means are determined by the sum of the first side alone.
    """
    m = len(points)
    preference = np.zeros(m)
    explained = 0.0
    for _ in range(_MOST_STEPS):
        n_first = int(np.count_nonzero(is_first))
        if n_first in (0, m):
            return explained, preference if explained else np.where(is_first, 1.0, -1.0)
        total = is_first.astype(np.float64) @ points
        first, second = total / n_first, -total / (m - n_first)
        preference = points @ (2 * (first - second)) - (first @ first - second @ second)
        explained = float(n_first * (first @ first) + (m - n_first) * (second @ second))
        if np.array_equal(preference > 0, is_first):
            break
        is_first = preference > 0
    return explained, preference
