"""Huffman's tree: frequent classes near the root."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.structures.balance import check_balance, depth_bound
from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.tree import ClassTree


@STRUCTURES.register("huffman")
class Huffman(Structure):
    """Frequent classes near the root: the least mean depth over the rows that any tree can have.

    It looks at the weights of the classes only; where these are equal, it is as shallow as a tree can be, and
    the class that occurs first in the rows comes first.
    Unlimited, a leaf of weight w in a total of W is at most ``log(W / w) / log(1.618)`` deep, one node per
    class at worst (weights that grow like Fibonacci's numbers). Here the depth is limited, by the
    package-merge algorithm, which gives the least mean depth under that limit.

    Parameters
    ----------
    balance : float, default=0.0
        Limits the depth to what splits with a least share of ``balance / 2`` on either side can reach, and
        never less than a twentieth: ``log(k) / -log(1 - s) + 1``, s the least share; ``ceil(log2(k))`` at 1.

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
        limit = depth_bound(task.n_classes, check_balance(self.balance))
        lengths = code_lengths(task.weight_of_class[task.order], limit)
        return task.tree(task.order, _split_depth(lengths))


def code_lengths(descending: FloatArray, limit: int) -> IntArray:
    """Depths of the leaves that minimise the mean depth, none above `limit`, for descending weights.

    Weights that differ by rounding alone may be in any order: the depths depend on the values only.

    Package-merge: at each of `limit` levels the classes are merged with the pairs made one level below; a
    class's depth is the number of its copies among the ``2k - 2`` lightest items of the top level. Items are
    taken in ascending order, so what is chosen at a level is a prefix, and only the number of classes in
    it has to be remembered.
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
    """Where neighbouring leaves part, for ascending depths that fill a binary tree exactly.

    Canonical codes: each leaf's code is the one before plus one, lengthened by zeros to its own depth, so
    the paths of neighbours part at the last zero of the earlier code.
    """
    depths: list[int] = lengths.tolist()
    parting = []
    code = 0
    for length, following in pairwise(depths):
        trailing_ones = (~code & (code + 1)).bit_length() - 1
        parting.append(length - 1 - trailing_ones)
        code = (code + 1) << (following - length)
    return np.array(parting, dtype=np.intp)
