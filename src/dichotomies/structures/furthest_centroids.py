"""Trees split by the two classes whose centroids are furthest apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
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
