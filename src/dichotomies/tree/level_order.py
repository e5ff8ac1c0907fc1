"""Construction of the nodes from the ranks of the splits between neighbouring leaves.

With the leaves of a binary tree in order, every boundary between two neighbours is the split of exactly one
internal node. The tree is therefore determined by the order in which the boundaries are split, and is their
Cartesian tree: the boundary of lowest rank in a range is the root of that range.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import IntArray


class Nodes(NamedTuple):
    """One entry per internal node, in level order (by depth, then from left to right)."""

    start: IntArray
    split: IntArray
    stop: IntArray
    depth: IntArray
    parent: IntArray


def level_order(split_rank: Sequence[float]) -> Nodes:
    """Arrange the boundaries between leaves as nodes in level order.

    Parameters
    ----------
    split_rank : sequence of n_leaves - 1 numbers
        ``split_rank[i]`` belongs to the boundary between leaf ``i`` and leaf ``i + 1``. In any range of
        leaves the boundary of lowest rank is split first; ties go to the leftmost.
    """
    before, after = _enclosing_boundaries(split_rank)
    parent, depths = _parents_and_depths(split_rank, before, after)
    start, depth = np.asarray(before, dtype=np.intp) + 1, np.asarray(depths, dtype=np.intp)
    order = np.lexsort((start, depth))
    node_of_boundary = np.full(len(order) + 1, -1, dtype=np.intp)  # the last entry is the parent of the root
    node_of_boundary[order] = np.arange(len(order))
    return Nodes(
        start=start[order],
        split=order.astype(np.intp) + 1,
        stop=np.asarray(after, dtype=np.intp)[order] + 1,
        depth=depth[order],
        parent=node_of_boundary[np.asarray(parent, dtype=np.intp)[order]],
    )


def _enclosing_boundaries(rank: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return the nearest boundary on either side that is split earlier (-1 and n if there is none)."""
    n = len(rank)
    before, after = [-1] * n, [n] * n
    pending: list[int] = []
    for i in range(n):
        while pending and rank[pending[-1]] > rank[i]:
            after[pending.pop()] = i
        if pending:
            before[i] = pending[-1]
        pending.append(i)
    return before, after


def _parents_and_depths(
    rank: Sequence[float], before: list[int], after: list[int]
) -> tuple[list[int], list[int]]:
    """Return parents and depths; the parent is the later split of the two enclosing boundaries, or -1."""
    n = len(rank)
    parent, depth = [-1] * n, [0] * n
    for i in sorted(range(n), key=lambda i: rank[i]):
        left, right = before[i], after[i]
        if right == n or (left >= 0 and rank[left] > rank[right]):
            parent[i] = left
        else:
            parent[i] = right
        depth[i] = depth[parent[i]] + 1 if parent[i] >= 0 else 0
    return parent, depth
