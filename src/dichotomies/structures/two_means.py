"""Divisive clustering: 2-means on the class centroids at every node."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
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

_MAX_STEPS = 50
_POWER_STEPS = 12


@STRUCTURES.register("2-means")
class TwoMeans(Structure):
    """2-means on the class centroids at every node: similar classes stay together.

    Classes are not weighted. The clustering starts from a split along the principal axis of the node's
    centroids, so the tree does not depend on the seed unless `n_init` is above 1, nor on the label names.
    Classes with equal centroids are halved.

    Parameters
    ----------
    balance : float, default=0.0
        Each side of a node gets at least the share ``s = max(balance / 2, 0.05)`` of its classes: 0 leaves
        the clusters nearly unchanged, 1 halves them. Classes nearest to the border change sides if a side is
        too small. No leaf is deeper than ``log(k) / -log(1 - s) + 1``.
    metric : "auto", "raw", "within" or "cosine", default="auto"
        Distance between centroids. "raw": Euclidean. "within": Mahalanobis, by the within-class covariance,
        as in linear discriminant analysis. "cosine": the angle between them. "auto": "within" up to 512
        features; beyond, "cosine" with the centroids reduced to 100 dimensions.
    n_init : int, default=1
        Number of starts: the principal axis, then random pairs of classes.

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
            return split_by_two_means(codes, classes.points[codes], balance, self.n_init, rng)

        return split_downwards(task, split, classes.order)


@STRUCTURES.register("balanced-2-means")
class BalancedTwoMeans(TwoMeans):
    """2-means on the class centroids, halved at every node: the minimum depth of any tree.

    The same as "2-means" with sides of equal size unless `balance` is given: no leaf is deeper than
    ``ceil(log2(k))``. Values in between trade depth for separability.

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


def split_by_two_means(
    codes: IntArray, points: FloatArray, balance: float, n_init: int = 1, rng: Any = None
) -> tuple[IntArray, IntArray]:
    """Split classes (m,) by 2-means on their points (m, r); classes with equal points are halved."""
    preference = two_means(points, n_init, rng)
    return split_in_half(codes) if preference is None else split_within_bounds(codes, preference, balance)


def two_means(points: FloatArray, n_init: int = 1, rng: Any = None) -> FloatArray | None:
    """Return how much nearer each point is to the first of two means than to the second, up to scale.

    None if all points are equal. Of several starts, the one with the lowest sum of squares is returned.
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
    return preference if preference[0] > 0 else -preference  # the first point goes left by convention


def principal_axis(centred: FloatArray) -> FloatArray:
    """Return an approximate first principal axis of centred points.

    Power iteration from the point furthest from the mean.
    """
    length = np.einsum("ij,ij->i", centred, centred)
    furthest = int(np.argmax(length))
    axis = centred[furthest] / np.sqrt(length[furthest])
    for _ in range(_POWER_STEPS):
        step = (centred @ axis) @ centred
        axis = step / np.sqrt(step @ step)
    return np.asarray(axis)


def _from_pair(points: FloatArray, rng: Any) -> FloatArray:
    """Return a score that is positive for points nearer to the first of two random points."""
    one, other = points[rng.permutation(len(points))[:2]]
    return np.asarray(points @ (one - other) - (one @ one - other @ other) / 2)


def _lloyd(points: FloatArray, is_first: BoolArray) -> tuple[float, FloatArray]:
    """Run Lloyd's algorithm from a given split; return the sum of squares explained and the preferences.

    The points have mean zero, so the sum of the first side determines both means.
    """
    m = len(points)
    preference = np.zeros(m)
    explained = 0.0
    for _ in range(_MAX_STEPS):
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
