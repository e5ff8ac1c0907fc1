"""Sums of the values of boosted trees, a block of rows at a time.

All rows of a block go through a tree together, one split at a time, which is vectorised.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.boosting.boosting import CATEGORICAL, MISSING_LEFT
from dichotomies._kernels.boosting.encoding import Codes, Encoder
from dichotomies._kernels.compile import kernel

#: Rows that go through the trees together; fewer are rounded up to what a vectorised loop takes at a time.
ROW_BLOCK, LANES = 2048, 128

#: Added to the length of rows: those of powers of two would share a few places of the cache.
PAD = 16

#: Nodes whose scores are written together: those of a row are in few lines of the cache.
NODE_BLOCK = 32

#: Entries of a table of the sums of several trees' values: what a byte can number.
TABLE = 256


class Splits(NamedTuple):
    """The splits of trees.

    Attributes
    ----------
    column, leaf, limit, kind : (n_splits,)
        Index of a split's feature among those that are encoded; the leaf that it divides; rows with a higher
        code go right; `MISSING_LEFT` or `CATEGORICAL`.
    bits : (n_sets, 4)
        Categories that go left.
    set_of_split : (n_splits,)
        Row of `bits` of a categorical split.
    offsets : (n_trees + 1,)
        Start of each tree's splits, and the end.
    missing : (1,)
        The code of missing values.
    """

    column: npt.NDArray[np.int32]
    leaf: Codes
    limit: Any
    kind: Codes
    bits: npt.NDArray[np.uint64]
    set_of_split: IntArray
    offsets: IntArray
    missing: Any


class Forest(NamedTuple):
    """The trees of all nodes, as `BoostedTrees` has them.

    Attributes
    ----------
    features : (n_used,)
        The features that the trees use.
    encoder : Encoder
    splits : Splits
    value : (n_splits + n_trees,)
        In units of a node's own; see `in_units`.
    tree_offsets : (n_nodes + 1,)
    base : (n_nodes,)
    scale : (n_nodes,)
        Log-odds that a unit stands for.
    """

    features: IntArray
    encoder: Encoder
    splits: Splits
    value: npt.NDArray[np.int32]
    tree_offsets: IntArray
    base: FloatArray
    scale: FloatArray


class Links(NamedTuple):
    """Splits that follow splits, for single rows.

    Attributes
    ----------
    left, right : (n_splits,)
        The next split of the rows that go left or right; for a leaf, its number, as -1 - number.
    """

    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]


def in_units(
    value: FloatArray, split_offsets: IntArray, tree_offsets: IntArray
) -> tuple[npt.NDArray[np.int32], FloatArray]:
    """Leaf values as whole numbers of a unit, a power of two for each node.

    Sums of 32-bit integers take half the time of sums of doubles, and are the same in every order. The
    largest sum that a node's trees can give is at most 2**30 units; a value is off by at most 2**-30 of it.

    Returns
    -------
    value : (n_splits + n_trees,)
    unit : (n_nodes,)
    """
    n_trees, n_values = np.diff(tree_offsets), np.diff(split_offsets) + 1
    largest = np.maximum.reduceat(np.abs(value), split_offsets[:-1] + np.arange(len(n_values)))
    sums = np.add.reduceat(np.append(largest, 0.0), tree_offsets[:-1])  # of no trees: any number
    unit = np.exp2(np.frexp(sums)[1] - 30.0)
    return np.rint(value / np.repeat(np.repeat(unit, n_trees), n_values)).astype(np.int32), unit


@kernel
def sum_trees(
    codes: Any,
    splits: Splits,
    value: npt.NDArray[np.int32],
    tree_offsets: IntArray,
    base: FloatArray,
    scale: FloatArray,
    out: FloatArray,
) -> None:
    """Score every row at every node: ``base + scale * (sum of leaf values)``.

    Parameters
    ----------
    codes : (n_encoded, n_rows or more)
    out : (n_rows, n_nodes)
    """
    n_nodes, width = len(base), codes.shape[1]
    total, table = np.empty((NODE_BLOCK, width + PAD), dtype=np.int32), np.empty(TABLE, dtype=np.int32)
    place = np.empty((2, width), dtype=np.uint8)
    for first in range(0, n_nodes, NODE_BLOCK):
        last = min(first + NODE_BLOCK, n_nodes)
        for k in range(first, last):
            trees, of_node = (tree_offsets[k], tree_offsets[k + 1]), total[k - first, :width]
            add_trees(codes, splits, value, trees, place, table, of_node)
        for i in range(len(out)):
            for k in range(first, last):
                out[i, k] = base[k] + scale[k] * total[k - first, i]


@kernel(inline=True)
def add_trees(
    codes: Any, splits: Splits, value: Any, trees: Any, place: Codes, table: Any, total: Any
) -> None:
    """Write the sums of the values of some trees, from the first to the one before the last.

    Looking up the value of the leaf that a row reached takes more time than finding the leaf of a small tree.
    Therefore the leaves of several trees are numbered together, as long as a byte is enough, and the sums of
    their values are looked up.

    Parameters
    ----------
    codes : (n_encoded, n_rows)
    place : (2, n_rows)
        The numbers in all trees so far, and in one tree.
    table : (TABLE,)
    total : (n_rows,)
    """
    offsets, most, n_rows = splits.offsets, min(TABLE, len(total)), len(total)
    size, total[:] = 0, 0
    for tree in range(trees[0], trees[1] + 1):
        n = offsets[tree + 1] - offsets[tree] + 1 if tree < trees[1] else TABLE + 1
        if size * n > most:
            for i in range(n_rows):
                total[i] += table[place[0, i]]
            size = 0
        if tree == trees[1]:
            break
        of_tree, begin = (1 if size else 0), offsets[tree]
        if size == 0:
            size, table[0] = 1, 0
        place_rows(codes, splits, begin, begin + n - 1, size, place[of_tree])
        if of_tree:
            for i in range(n_rows):
                place[0, i] += place[1, i]
        for b in range(n - 1, -1, -1):
            for a in range(size):
                table[b * size + a] = table[a] + value[begin + tree + b]
        size *= n


@kernel(inline=True)
def place_rows(codes: Any, splits: Splits, begin: int, end: int, step: int, place: Codes) -> None:
    """Write `step` times the number of the leaf that each row reaches in the tree with these splits."""
    columns, leaves, limits, kinds = splits.column, splits.leaf, splits.limit, splits.kind
    place[:] = 0
    for s in range(begin, end):
        leaf, new_leaf = np.uint8(leaves[s] * step), np.uint8((s - begin + 1) * step)
        column, limit, kind = columns[s], limits[s], kinds[s]
        if kind == CATEGORICAL:
            move_categories(codes[column], splits.bits[splits.set_of_split[s]], leaf, new_leaf, place)
        else:
            stays = splits.missing[0] if kind == MISSING_LEFT else limit
            for i in range(len(place)):
                moves = (codes[column, i] > limit) & (codes[column, i] != stays) & (place[i] == leaf)
                place[i] = new_leaf if moves else place[i]


@kernel(inline=True)
def move_categories(codes: Any, bits: Any, leaf: Any, new_leaf: Any, place: Any) -> None:
    """Move the rows at a leaf whose categories are not in the set to another one."""
    for i in range(len(place)):
        code = codes[i]
        stays = (bits[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) == np.uint64(1)
        moved = leaf if stays else new_leaf
        place[i] = moved if place[i] == leaf else place[i]


@kernel
def sum_trees_of_pairs(
    X: FloatArray,
    rows: IntArray,
    nodes: IntArray,
    pairs: IntArray,
    forest: Forest,
    links: Links,
    out: FloatArray,
) -> None:
    """Score row ``rows[i]`` at node ``nodes[i]`` for the given pairs, sorted by node."""
    splits, edges, starts = forest.splits, forest.encoder.edges, forest.encoder.offsets
    offsets, columns, kinds, limits = splits.offsets, splits.column, splits.kind, splits.limit
    for p in range(len(pairs)):
        row, k, total = rows[pairs[p]], nodes[pairs[p]], 0
        for tree in range(forest.tree_offsets[k], forest.tree_offsets[k + 1]):
            begin = offsets[tree]
            at = begin if offsets[tree + 1] > begin else -1
            while at >= 0:
                first, end = starts[columns[at]], starts[columns[at] + 1]
                x, place = X[row, forest.features[columns[at]]], first + np.int64(limits[at])
                if kinds[at] == CATEGORICAL:
                    goes_left = has_category(splits.bits[splits.set_of_split[at]], edges[first:end], x)
                elif np.isnan(x):
                    goes_left = kinds[at] == MISSING_LEFT
                else:
                    goes_left = place >= end or not edges[place] < x
                at = links.left[at] if goes_left else links.right[at]
            total += forest.value[begin + tree - 1 - at]
        out[pairs[p]] = forest.base[k] + forest.scale[k] * total


@kernel
def has_category(bits: Any, categories: FloatArray, x: float) -> bool:
    """Return True if a category is in the set of those that go left."""
    code: Any = np.searchsorted(categories, x)
    code = code if code < len(categories) and categories[code] == x else 255
    return bool((bits[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) == np.uint64(1))


@kernel
def link_splits(leaf: Any, offsets: IntArray, left: Any, right: Any) -> None:
    """Write the next split on either side of each split; see `Links`."""
    last = np.empty(257, dtype=np.int64)  # the last split so far that leads to a leaf, and by which side
    for tree in range(len(offsets) - 1):
        begin = offsets[tree]
        for s in range(begin, offsets[tree + 1]):
            number, new = np.int64(leaf[s]), s - begin + 1
            if s > begin:
                before = last[number]
                if before >= 0:
                    left[before] = s
                else:
                    right[-1 - before] = s
            left[s], right[s] = -1 - number, -1 - new
            last[number], last[new] = s, -1 - s
