"""Balanced random trees: equal numbers of classes, or of rows, on both sides of a node."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure, split_downwards, split_in_half
from dichotomies.tree import ClassTree


@STRUCTURES.register("class-balanced")
class ClassBalanced(Structure):
    """Shuffled classes, halved at every node: the minimum depth of any tree.

    No leaf is deeper than ``ceil(log2 k)``; the mean leaf depth at 1,000 classes is 9.98.

    References
    ----------
    Dong, Frank & Kramer, *Ensembles of balanced nested dichotomies for multi-class problems*, PKDD 2005.

    Examples
    --------
    >>> from dichotomies.structures import STRUCTURES
    >>> STRUCTURES.create("class-balanced").grow(None, list("abcde"), random_state=0)
    ClassTree.from_nested([['c', 'a'], ['b', ['d', 'e']]])
    """

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        return split_downwards(task, split_in_half, rng.permutation(task.rows.class_order))


@STRUCTURES.register("data-balanced")
class DataBalanced(Structure):
    """Shuffled classes, assigned to the left until that side holds half of the node's rows.

    Frequent classes end up near the root, so rows pass few nodes on average even with very unbalanced
    classes. Rows count by their sample weight.

    References
    ----------
    Dong, Frank & Kramer, *Ensembles of balanced nested dichotomies for multi-class problems*, PKDD 2005.

    Examples
    --------
    >>> from dichotomies.structures import STRUCTURES
    >>> STRUCTURES.create("data-balanced").grow(None, list("abcdeeeeee"), random_state=2)
    ClassTree.from_nested([[['d', 'b'], ['c', 'a']], 'e'])
    """

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        def split(codes: IntArray) -> tuple[IntArray, IntArray]:
            shuffled = rng.permutation(codes)
            weight = np.cumsum(task.rows.class_weight[shuffled])
            reached_half = int(np.argmax(2 * weight >= weight[-1]))
            n_left = min(reached_half + 1, len(codes) - 1)
            return shuffled[:n_left], shuffled[n_left:]

        return split_downwards(task, split)
