"""Trees split by the two classes that lie furthest apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.structures.balance import check_balance, within_bounds
from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure, split_downwards
from dichotomies.structures.class_points import class_points
from dichotomies.structures.two_means import halves

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.tree import ClassTree

#: Up to this many points, all pairs are looked at.
_MOST_POINTS = 1_024
_MOST_STEPS = 20


@STRUCTURES.register("furthest-centroids")
class FurthestCentroids(Structure):
    """The two classes furthest apart part; every other class follows the nearer one.

    Beyond 1,024 classes at a node the pair is searched by steps, each to the class furthest from the last,
    rather than among all pairs. The tree does not depend on the seed nor on the classes' names.

    Parameters
    ----------
    balance : float, default=0.0
        The least share of a node's classes on either side is half of it, but never less than a twentieth;
        1 halves every node. No leaf is deeper than ``log(k) / -log(1 - s) + 1``, s the least share.
    metric : "auto", "raw", "within" or "cosine", default="auto"
        How far centroids are apart; see "2-means".

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
                return halves(codes)
            return within_bounds(codes, nearer_to(points, one, other), balance)

        return split_downwards(task, split, classes.order)


def nearer_to(points: FloatArray, one: int, other: int) -> FloatArray:
    """How much nearer each point is to one point than to the other, as squared distances."""
    preference = ((points - points[other]) ** 2).sum(axis=1) - ((points - points[one]) ** 2).sum(axis=1)
    return np.asarray(preference)


def furthest_pair(points: FloatArray) -> tuple[int, int]:
    """Two points that lie furthest apart: exactly, or nearly where there are many points."""
    centred = points - points.mean(axis=0)
    length = np.einsum("ij,ij->i", centred, centred)
    if len(points) <= _MOST_POINTS:
        squared = length[:, None] + length - 2 * (centred @ centred.T)
        row, column = divmod(int(np.argmax(np.triu(squared, 1))), len(points))
        return (row, column) if row != column else (0, 1)
    one, furthest = int(np.argmax(length)), -1.0
    other = 0
    for _ in range(_MOST_STEPS):
        squared = ((points - points[one]) ** 2).sum(axis=1)
        candidate = int(np.argmax(squared))
        if squared[candidate] <= furthest:
            break
        one, other, furthest = candidate, one, float(squared[candidate])
    return one, other
