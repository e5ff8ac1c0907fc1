"""Hierarchical clustering of classes as a row of leaves with merge heights, and trees cut from it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies.tree.class_tree import ClassTree

Method = Literal["ward", "average", "single"]


def dendrogram(distances: FloatArray, method: Method) -> tuple[IntArray, FloatArray]:
    """Cluster by scipy's linkage; return the leaf order and the merge heights between neighbours.

    The larger cluster is always on the right.

    Parameters
    ----------
    distances : (m (m - 1) / 2,)
        Pairwise distances in scipy's condensed form.
    method : {"ward", "average", "single"}
    """
    from scipy.cluster.hierarchy import linkage  # takes long to import

    merges = linkage(distances, method)
    m = len(merges) + 1
    size = np.concatenate([np.ones(m), merges[:, 3]])
    row: list[int] = []
    heights: list[float] = []
    pending: list[tuple[int, float]] = [(2 * m - 2, np.nan)]  # a cluster, and the merge height on its right
    while pending:
        cluster, after = pending.pop()
        if cluster < m:
            row.append(cluster)
            heights.append(after)
            continue
        one, other = (int(child) for child in merges[cluster - m, :2])
        small, large = (one, other) if size[one] <= size[other] else (other, one)
        pending += [(large, after), (small, float(merges[cluster - m, 2]))]
    return np.array(row, dtype=np.intp), np.array(heights[:-1])


def cut_from(row: IntArray, heights: FloatArray, max_depth: int) -> ClassTree:
    """Split a dendrogram at its highest merges, except where the tree would become deeper than `max_depth`.

    Parameters
    ----------
    row : (m,)
        Class codes in leaf order.
    heights : (m - 1,)
        Merge height between each leaf and the next.
    max_depth : int
        At least the binary logarithm of m.
    """
    depth = np.zeros(len(heights), dtype=np.intp)
    pending = [(0, len(row), 0)]
    while pending:
        start, stop, level = pending.pop()
        m = stop - start
        if m < 2:
            continue
        most = min(m - 1, 2 ** min(max_depth - level - 1, 62))  # classes that fit below a child
        inside = heights[start + m - most - 1 : start + most]
        highest = np.flatnonzero(inside == inside.max()) + m - most
        n_left = int(highest[np.argmin(np.abs(2 * highest - m))])
        depth[start + n_left - 1] = level
        pending += [(start, start + n_left, level + 1), (start + n_left, stop, level + 1)]
    return ClassTree(row, depth, np.arange(len(row)))
