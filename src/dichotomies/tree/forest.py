"""Several trees over the same classes, with shared nodes counted once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Each, Part, Size
from dichotomies.tree import ClassTree


@savable(
    "forest",
    trees=Each(Part(ClassTree, "n_nodes", "classes"), "n_trees"),
    place=Array("integer", "n_trees", "n_nodes", within=(0, 2**31)),
    is_exchanged=Array("boolean", "n_trees", "n_nodes"),
    n_different=Size("n_different"),
)
@dataclass(frozen=True)
class Forest:
    """Trees over the same classes.

    Nodes of different trees that split the same classes the same way are one node, trained and evaluated
    once. Distinct nodes are numbered tree by tree, in order of first occurrence.

    Attributes
    ----------
    trees : sequence of ClassTree
    place : (n_trees, n_nodes)
        Number of each tree's node among the distinct nodes.
    is_exchanged : (n_trees, n_nodes)
        True if left and right are exchanged relative to the first occurrence.

    Examples
    --------
    >>> from dichotomies import ClassTree
    >>> from dichotomies.tree.forest import Forest
    >>> trees = [ClassTree.from_nested([["a", "b"], "c"]), ClassTree.from_nested([["c", "a"], "b"])]
    >>> Forest.of(trees).n_different, Forest.of([trees[0], trees[0]]).n_different
    (4, 2)
    """

    trees: Sequence[ClassTree]
    place: IntArray
    is_exchanged: BoolArray

    @classmethod
    def of(cls, trees: Sequence[ClassTree]) -> Forest:
        """Build a forest with nodes shared between trees."""
        if len(trees) == 1:
            shape = 1, trees[0].n_nodes
            return cls(trees, np.arange(shape[1]).reshape(shape), np.zeros(shape, dtype=bool))
        known: dict[object, tuple[int, bool]] = {}
        place = np.empty((len(trees), trees[0].n_nodes), dtype=np.intp)
        is_exchanged = np.zeros(place.shape, dtype=bool)
        for t, tree in enumerate(trees):
            keys = node_keys(tree)
            for k, (sides, exchanged) in enumerate(zip(keys.sides, keys.is_exchanged.tolist(), strict=True)):
                place[t, k], first = known.setdefault(sides, (len(known), exchanged))
                is_exchanged[t, k] = first != exchanged
        return cls(trees, place, is_exchanged)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.trees[0].n_classes

    @property
    def n_different(self) -> int:
        """Number of distinct nodes."""
        return int(self.place.max()) + 1

    def new_nodes(self, t: int) -> IntArray:
        """Return the nodes of a tree that do not occur in an earlier tree."""
        n_before = int(self.place[:t].max(initial=-1)) + 1
        return np.flatnonzero(self.place[t] >= n_before)

    def oriented(self, t: int) -> tuple[ClassTree, IntArray]:
        """A tree with the sides of its nodes as at their first occurrence, and its distinct nodes in order.

        The left side of node k of that tree is the left side of distinct node ``nodes[k]``.
        """
        tree, is_exchanged = self.trees[t], self.is_exchanged[t]
        if not is_exchanged.any():
            return tree, self.place[t]
        n_left, n_right = tree.split - tree.start, tree.stop - tree.split
        start = np.zeros(tree.n_nodes, dtype=np.intp)
        position = np.empty(tree.n_classes, dtype=np.intp)  # of each leaf, in the new order
        for k in range(tree.n_nodes):  # parents come first
            begins = (
                start[k] + (n_right[k] if is_exchanged[k] else 0),
                start[k] + (0 if is_exchanged[k] else n_left[k]),
            )
            for child, begin in zip((tree.left[k], tree.right[k]), begins, strict=True):
                if child >= 0:
                    start[child] = begin
                else:
                    position[~child] = begin
        split = start + np.where(is_exchanged, n_right, n_left)
        node_at = np.empty(tree.n_classes, dtype=np.intp)
        node_at[split] = np.arange(tree.n_nodes)
        leaves = tree.leaf_labels[np.argsort(position)]
        turned = ClassTree(leaves, tree.depth[node_at[1:]], tree.classes)
        return turned, self.place[t][node_at[turned.split]]

    def log_odds_of_tree(self, t: int, log_odds: FloatArray) -> FloatArray:
        """Return the log-odds at a tree's nodes, given those at all distinct nodes."""
        if len(self.trees) == 1:
            return log_odds
        mine: FloatArray = log_odds.take(self.place[t], axis=1)
        mine *= np.where(self.is_exchanged[t], -1.0, 1.0)  # much faster than to negate some columns
        return mine


class NodeKeys(NamedTuple):
    """Keys that identify the nodes of a tree.

    Attributes
    ----------
    sides : list of pairs of int
        Hashes of the class sets of both sides, the lower first.
    is_exchanged : (n_nodes,)
        True if the lower hash is that of the right side.
    """

    sides: list[tuple[int, int]]
    is_exchanged: BoolArray


def node_keys(tree: ClassTree, codes: IntArray | None = None) -> NodeKeys:
    """Return keys that are equal if and only if two nodes over the same classes split the same class sets.

    `codes` are those of the tree's classes among more classes, to compare with trees over these. The hash of
    a class set is the sum of random 64-bit numbers, one per class: two different pairs of sets collide with
    probability 2 to the power of -128.

    Examples
    --------
    >>> from dichotomies import ClassTree
    >>> from dichotomies.tree.forest import node_keys
    >>> one, other = ClassTree.from_nested([["a", "b"], "c"]), ClassTree.from_nested(["c", ["a", "b"]])
    >>> node_keys(one).sides == node_keys(other).sides
    True
    >>> (node_keys(one).is_exchanged ^ node_keys(other).is_exchanged).tolist()
    [True, False]
    """
    leaves = tree.leaf_order if codes is None else codes[tree.leaf_order]
    number = _numbers(int(leaves.max()) + 1)[leaves]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(number)])
    left, right = sums[tree.split] - sums[tree.start], sums[tree.stop] - sums[tree.split]
    pairs = zip(np.minimum(left, right).tolist(), np.maximum(left, right).tolist(), strict=True)
    return NodeKeys(list(pairs), right < left)


@lru_cache(maxsize=8)
def _numbers(n_classes: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(0).integers(2**64, size=n_classes, dtype=np.uint64)
