"""Balanced random trees: equal numbers of classes, or of rows, on both sides of a node."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies.structures.base import (
    STRUCTURES,
    GrowingTask,
    Structure,
    check_balance,
    depth_bound,
    split_downwards,
    split_in_half,
)
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


@STRUCTURES.register("huffman")
class Huffman(Structure):
    """Huffman's tree: frequent classes near the root, the minimum mean depth over the rows of any tree.

    It depends on the class weights only; with equal weights it has minimum depth, with the classes in order
    of first occurrence.
    Without a limit, a leaf of weight w in a total of W is at most ``log(W / w) / log(1.618)`` deep, one node
    per class at worst (weights that grow like the Fibonacci numbers). The package-merge algorithm gives the
    minimum mean depth under the limit set by `balance`.

    Parameters
    ----------
    balance : float, default=0.0
        Limits the depth to that of splits with at least the share ``s = max(balance / 2, 0.05)`` of the
        classes on either side: ``log(k) / -log(1 - s) + 1``; ``ceil(log2(k))`` at 1.

    References
    ----------
    Huffman, *A method for the construction of minimum-redundancy codes*, Proc. IRE 1952. Larmore &
    Hirschberg, *A fast algorithm for optimal length-limited Huffman codes*, JACM 1990.

    Examples
    --------
    >>> from dichotomies.structures import STRUCTURES
    >>> STRUCTURES.create("huffman").grow(None, list("abbccccdddddddd"))
    ClassTree.from_nested(['d', ['c', ['b', 'a']]])
    """

    def __init__(self, balance: float = 0.0) -> None:
        self.balance = balance

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:  # noqa: ARG002
        limit = depth_bound(task.rows.n_classes, check_balance(self.balance))
        lengths = code_lengths(task.rows.class_weight[task.rows.class_order], limit)
        return task.tree(task.rows.class_order, _split_depth(lengths))


def code_lengths(descending: FloatArray, limit: int) -> IntArray:
    """Return the leaf depths with minimum mean depth, none above `limit`, for descending weights.

    Weights that differ only by rounding may be in any order: the depths depend on the values alone.

    Package-merge: at each of `limit` levels the classes are merged with the pairs from the level below; a
    class's depth is the number of its copies among the ``2k - 2`` lightest items of the top level. Items are
    taken in ascending order, so the selection at a level is a prefix, and only its number of classes is
    stored.
    """
    ascending = descending[::-1]
    k = len(ascending)
    is_class: list[Any] = []
    packages = np.empty(0)
    for _ in range(limit):
        values = np.concatenate([ascending, packages])
        order = np.argsort(values, kind="stable")
        is_class.append(order < k)
        paired = values[order][: len(values) // 2 * 2]
        packages = paired[0::2] + paired[1::2]
    lengths = np.zeros(k, dtype=np.intp)
    taken = 2 * k - 2
    for level in reversed(is_class):
        n_classes = int(np.count_nonzero(level[:taken]))
        lengths[:n_classes] += 1
        taken = 2 * (taken - n_classes)
    return lengths[::-1].copy()


def _split_depth(lengths: IntArray) -> IntArray:
    """Return the depths at which neighbouring leaves separate, for ascending depths of a full binary tree.

    Canonical codes: each leaf's code is the previous one plus one, padded with zeros to its own depth, so
    the paths of neighbours separate at the last zero of the earlier code.
    """
    depths: list[int] = lengths.tolist()
    parting = []
    code = 0
    for length, following in pairwise(depths):
        trailing_ones = (~code & (code + 1)).bit_length() - 1
        parting.append(length - 1 - trailing_ones)
        code = (code + 1) << (following - length)
    return np.array(parting, dtype=np.intp)
