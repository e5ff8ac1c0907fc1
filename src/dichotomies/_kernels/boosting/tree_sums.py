"""Sums of the values of boosted trees, a block of rows at a time.

A feature value is replaced by its rank: the number of its feature's thresholds, over all trees, below it.
All rows of a block go through a tree together, one node of the tree at a time, which is vectorised.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel

ROW_BLOCK = 256


@kernel
def rank_columns(
    X: FloatArray,
    rows: IntArray,
    features: IntArray,
    thresholds: FloatArray,
    offsets: IntArray,
    out: npt.NDArray[Any],
) -> None:
    """Write the rank of each feature value: the number of thresholds that it exceeds.

    Parameters
    ----------
    X : (n_all_rows, n_features)
    rows : (n_rows,)
    features : (n_used,)
        The features that the trees use.
    thresholds, offsets
        Thresholds of feature ``features[u]``, ascending: ``thresholds[offsets[u]:offsets[u + 1]]``.
    out : (n_used, n_rows or more)
    """
    for u in range(len(features)):
        f, begin, end = features[u], offsets[u], offsets[u + 1]
        for i in range(len(rows)):
            x = X[rows[i], f]
            first, length = begin, end - begin
            while length > 0:
                half = length // 2
                if thresholds[first + half] < x:
                    first += half + 1
                    length -= half + 1
                else:
                    length = half
            out[u, i] = first - begin


@kernel
def walk_tree(
    ranks: npt.NDArray[Any],
    column: npt.NDArray[np.int32],
    rank: npt.NDArray[Any],
    place: npt.NDArray[np.uint16],
) -> None:
    """Write the leaf of a tree, numbered as a heap, that each row of a block reaches."""
    n_rows = ranks.shape[1]
    place[:] = 0
    for node in range(len(column)):
        if column[node] < 0:
            continue
        ranks_here, limit = ranks[column[node]], rank[node]
        here, left, right = np.uint16(node), np.uint16(2 * node + 1), np.uint16(2 * node + 2)
        for i in range(n_rows):
            child = right if ranks_here[i] > limit else left
            place[i] = child if place[i] == here else place[i]


@kernel
def sum_trees(
    X: FloatArray,
    features: IntArray,
    thresholds: FloatArray,
    offsets: IntArray,
    column: npt.NDArray[np.int32],
    rank: npt.NDArray[Any],
    value: FloatArray,
    tree_offsets: IntArray,
    base: FloatArray,
    scale: FloatArray,
    out: FloatArray,
) -> None:
    """Score every row at every node: ``base + scale * (sum of leaf values)``.

    Parameters
    ----------
    X : (n_rows, n_features)
    features, thresholds, offsets
        See `rank_columns`.
    column, rank : (n_trees, n_splits)
        The feature of each split, as an index into `features` (-1 for none), and the rank of its threshold.
    value : (n_trees, n_places)
    tree_offsets : (n_nodes + 1,)
        Start of each node's trees, and the end.
    base, scale : (n_nodes,)
    out : (n_rows, n_nodes)
    """
    ranks = np.zeros((len(features), ROW_BLOCK), dtype=rank.dtype)
    place = np.empty(ROW_BLOCK, dtype=np.uint16)
    total = np.empty(ROW_BLOCK)
    for begin in range(0, len(X), ROW_BLOCK):
        n_rows = min(ROW_BLOCK, len(X) - begin)
        rank_columns(X, np.arange(begin, begin + n_rows), features, thresholds, offsets, ranks)
        for k in range(len(base)):
            total[:] = 0.0
            for tree in range(tree_offsets[k], tree_offsets[k + 1]):
                walk_tree(ranks, column[tree], rank[tree], place)
                values = value[tree]
                for i in range(ROW_BLOCK):
                    total[i] += values[place[i]]
            for i in range(n_rows):
                out[begin + i, k] = base[k] + scale[k] * total[i]


@kernel
def sum_trees_of_pairs(
    X: FloatArray,
    rows: IntArray,
    nodes: IntArray,
    pairs: IntArray,
    feature: npt.NDArray[np.int32],
    threshold: FloatArray,
    value: FloatArray,
    tree_offsets: IntArray,
    base: FloatArray,
    scale: FloatArray,
    out: FloatArray,
) -> None:
    """Score row ``rows[i]`` at node ``nodes[i]`` for the given pairs, sorted by node."""
    n_splits = feature.shape[1]
    for p in range(len(pairs)):
        pair = pairs[p]
        k, x = nodes[pair], X[rows[pair]]
        total = 0.0
        for tree in range(tree_offsets[k], tree_offsets[k + 1]):
            at = 0
            while at < n_splits and feature[tree, at] >= 0:
                at = 2 * at + (2 if x[feature[tree, at]] > threshold[tree, at] else 1)
            total += value[tree, at]
        out[pair] = base[k] + scale[k] * total
