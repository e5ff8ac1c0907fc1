"""Sums of the values of boosted trees, a block of rows at a time.

The features that trees use are encoded once per block, a byte each where there are no more than 255 edges.
All rows of a block go through a tree together, one split at a time, which is vectorised.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.boosting.encoding import Encoder, encode_column, encode_values
from dichotomies._kernels.boosting.ensembles import CATEGORICAL, MISSING_LEFT
from dichotomies._kernels.boosting.leaves import (
    LANES,
    PADDING,
    add_values,
    move_block_above,
    move_categories,
    move_known_above,
    split_above,
    total_of_row,
)
from dichotomies._kernels.compile import kernel

#: Rows that go through the trees together; fewer are rounded up to a multiple of `LANES`.
ROW_BLOCK = 1024

#: Bytes of a line of the cache.
CACHE_LINE = 64

#: Added to the length of rows: those of powers of two would share a few places of the cache.
PAD = 16

#: Features and rows that are read together: the values of a row are in few lines of the cache.
FEATURE_BLOCK, ROWS_READ = 32, 8

#: Nodes whose scores are written together, for the same reason.
NODE_BLOCK = 32


class Forest(NamedTuple):
    """The trees of all nodes, as `BoostedTrees` has them.

    Attributes
    ----------
    features : (n_used,)
        The features that the trees use.
    column : (n_splits,)
        The feature of each split, as an index into `features`.
    limit : (n_splits,)
        Of unsigned integers that hold all codes.
    missing : (1,)
        The code of missing values, of the same type.
    set_of_split : (n_splits,)
        Row of `bits` of a categorical split.
    kind_of_known : (n_splits,)
        The same for rows without missing values.
    value : (n_splits + n_trees + PADDING,)
        In units of a node's own; see `in_units`.
    scale : (n_nodes,)
        Log-odds that a unit stands for.
    """

    features: IntArray
    encoder: Encoder
    column: npt.NDArray[np.int32]
    leaf: npt.NDArray[np.uint8]
    limit: Any
    missing: Any
    kind: npt.NDArray[np.uint8]
    kind_of_known: npt.NDArray[np.uint8]
    bits: npt.NDArray[np.uint64]
    set_of_split: IntArray
    value: npt.NDArray[np.int32]
    split_offsets: IntArray
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


class BlockMemory(NamedTuple):
    """Memory for one block of rows.

    Attributes
    ----------
    codes : (n_used, n_rows)
    columns : (FEATURE_BLOCK, n_rows + PAD)
        Values of some features.
    place : (n_rows,)
        The leaf of each row in one tree.
    total : (NODE_BLOCK, n_rows + PAD)
        Sums of some nodes.
    """

    codes: Any
    columns: FloatArray
    place: npt.NDArray[np.uint8]
    total: npt.NDArray[np.int32]


def in_units(
    value: FloatArray, split_offsets: IntArray, tree_offsets: IntArray
) -> tuple[npt.NDArray[np.int32], FloatArray]:
    """Leaf values as whole numbers of a unit, a power of two for each node.

    Sums of 32-bit integers take half the time of sums of doubles, and are the same in every order. The
    largest sum that a node's trees can give is at most 2**30 units; a value is off by at most 2**-30 of it.

    Returns
    -------
    value : (n_splits + n_trees + PADDING,)
        Zeros at the end.
    unit : (n_nodes,)
    """
    n_trees, n_values = np.diff(tree_offsets), np.diff(split_offsets) + 1
    largest = np.maximum.reduceat(np.abs(value), split_offsets[:-1] + np.arange(len(n_values)))
    sums = np.add.reduceat(np.append(largest, 0.0), tree_offsets[:-1])  # of no trees: any number
    unit = np.exp2(np.frexp(sums)[1] - 30.0)
    units = np.zeros(len(value) + PADDING, dtype=np.int32)
    units[: len(value)] = np.rint(value / np.repeat(np.repeat(unit, n_trees), n_values))
    return units, unit


def allocate_block(X: FloatArray, forest: Forest) -> BlockMemory:
    """Allocate memory for a block of these rows."""
    n_rows = min(ROW_BLOCK, -(-max(len(X), 1) // LANES) * LANES)
    return BlockMemory(
        codes=aligned((len(forest.features), n_rows), forest.limit.dtype),
        columns=aligned((FEATURE_BLOCK, n_rows + PAD), X.dtype),
        place=aligned((n_rows,), np.dtype(np.uint8)),
        total=aligned((NODE_BLOCK, n_rows + PAD), np.dtype(np.int32)),
    )


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """An array of zeros that begins with a line of the cache: vectors of others would lie across two."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    begin = -memory.ctypes.data % CACHE_LINE
    return memory[begin : begin + size].view(dtype).reshape(shape)


@kernel(borrows=True)
def sum_trees(X: FloatArray, forest: Forest, memory: BlockMemory, out: FloatArray) -> None:
    """Score every row at every node: ``base + scale * (sum of leaf values)``.

    Parameters
    ----------
    X : (n_rows, n_features)
    out : (n_rows, n_nodes)
    """
    for begin in range(0, len(X), len(memory.place)):
        n = min(len(memory.place), len(X) - begin)
        width = (n + LANES - 1) // LANES * LANES
        place = memory.place[:width]
        has_missing = encode_block(X[begin : begin + n], forest, memory)
        kinds = forest.kind if has_missing else forest.kind_of_known
        for first in range(0, len(forest.base), NODE_BLOCK):
            nodes = range(first, min(first + NODE_BLOCK, len(forest.base)))
            for k in nodes:
                total = memory.total[k - first, :width]
                total[:] = 0
                for tree in range(forest.tree_offsets[k], forest.tree_offsets[k + 1]):
                    add_tree(memory.codes, kinds, forest, tree, place, total)
            write_scores(forest, first, memory.total, out[begin : begin + n])


@kernel
def write_scores(forest: Forest, first: int, total: Any, out: FloatArray) -> None:
    """Write the scores of a block of rows at some nodes, those from the given one on."""
    base, scale = forest.base[first : first + NODE_BLOCK], forest.scale[first : first + NODE_BLOCK]
    for i in range(len(out)):
        at, row = np.uintp(total_of_row(i)), out[i, first : first + NODE_BLOCK]
        for k in range(len(row)):
            row[k] = base[k] + scale[k] * total[k, at]


@kernel
def encode_block(X: FloatArray, forest: Forest, memory: BlockMemory) -> bool:
    """Write the codes of the features that the trees use; return whether values are missing."""
    has_missing = False
    for first in range(0, len(forest.features), FEATURE_BLOCK):
        features = forest.features[first : first + FEATURE_BLOCK]
        read_columns(X, features, memory.columns)
        for j in range(len(features)):
            u, x = first + j, memory.columns[j, : len(X)]
            has_missing |= encode_column(x, forest.encoder, u, forest.missing[0], memory.codes[u])
    return has_missing


@kernel
def read_columns(X: FloatArray, features: IntArray, columns: FloatArray) -> None:
    """Copy some features of all rows, several rows at a time, which fill a line of the cache."""
    n_whole = len(X) // ROWS_READ * ROWS_READ
    for i in range(0, n_whole, ROWS_READ):
        for j in range(len(features)):
            f = np.uintp(features[j])
            for r in range(ROWS_READ):
                columns[j, i + r] = X[i + r, f]
    for i in range(n_whole, len(X)):
        for j in range(len(features)):
            columns[j, i] = X[i, features[j]]


@kernel(inline=True)
def add_tree(codes: Any, kinds: Any, forest: Forest, tree: int, place: Any, total: Any) -> None:
    """Add the value of one tree to the totals of a block of rows."""
    begin, end = forest.split_offsets[tree], forest.split_offsets[tree + 1]
    first = begin
    if begin < end and kinds[begin] == 0:
        split_above(codes[forest.column[begin]], forest.limit[begin], place)
        first = begin + 1
    else:
        place[:] = 0
    for s in range(first, end):
        leaf, new_leaf, column = forest.leaf[s], np.uint8(s - begin + 1), codes[forest.column[s]]
        if kinds[s] == CATEGORICAL:
            move_categories(column, forest.bits[forest.set_of_split[s]], leaf, new_leaf, place)
        elif kinds[s] == MISSING_LEFT:
            move_known_above(column, forest.limit[s], forest.missing[0], leaf, new_leaf, place)
        else:
            move_block_above(column, forest.limit[s], leaf, new_leaf, place)
    add_values(forest.value[begin + tree : end + tree + 1], place, total)


@kernel(borrows=True)
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
    for p in range(len(pairs)):
        pair = pairs[p]
        k, x = nodes[pair], X[rows[pair]]
        total = 0
        for tree in range(forest.tree_offsets[k], forest.tree_offsets[k + 1]):
            begin, end = forest.split_offsets[tree], forest.split_offsets[tree + 1]
            at = begin if end > begin else -1
            while at >= 0:
                at = links.left[at] if goes_left(x, forest, at) else links.right[at]
            total += forest.value[begin + tree - 1 - at]
        out[pair] = forest.base[k] + forest.scale[k] * total


@kernel
def goes_left(x: FloatArray, forest: Forest, split: int) -> bool:
    """Decide for one row and one split."""
    column = forest.column[split]
    f, edges = forest.features[column], forest.encoder.edges
    begin, end = forest.encoder.offsets[column], forest.encoder.offsets[column + 1]
    if forest.kind[split] == CATEGORICAL:
        code = np.searchsorted(edges[begin:end], x[f])
        code = code if code < end - begin and edges[begin + code] == x[f] else 255
        bits = forest.bits[forest.set_of_split[split]]
        return bool((bits[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) == np.uint64(1))
    if np.isnan(x[f]):
        return bool(forest.kind[split] == MISSING_LEFT)
    at = begin + np.int64(forest.limit[split])
    return bool(at >= end or not edges[at] < x[f])


@kernel
def link_splits(leaf: Any, split_offsets: IntArray, left: Any, right: Any) -> None:
    """Write the next split on either side of each split; see `Links`."""
    last = np.empty(257, dtype=np.int64)  # the last split so far that leads to a leaf, and by which side
    for tree in range(len(split_offsets) - 1):
        begin, end = split_offsets[tree], split_offsets[tree + 1]
        for s in range(begin, end):
            number = np.int64(leaf[s])
            if s > begin:
                before = last[number]
                if before >= 0:
                    left[before] = s
                else:
                    right[-1 - before] = s
            left[s], right[s] = -1 - number, -1 - (s - begin + 1)
            last[number], last[s - begin + 1] = s, -1 - s


@sum_trees.plainly
def sum_few_trees(
    X: FloatArray,
    forest: Forest,
    memory: BlockMemory,  # noqa: ARG001 - not needed here
    out: FloatArray,
) -> None:
    """Score rows without compiled code, all trees together, one split after another."""
    encoder, begin, sizes = forest.encoder, forest.split_offsets[:-1], np.diff(forest.split_offsets)
    codes = np.empty((len(forest.features), len(X)), dtype=np.uint8)
    place = np.zeros((len(sizes), len(X)), dtype=np.intp)
    for u, f in enumerate(forest.features):
        edges = encoder.edges[encoder.offsets[u] : encoder.offsets[u + 1]]
        codes[u] = encode_values(X[:, f], edges, encoder.is_categorical[u])
    for s in range(sizes.max(initial=0)):
        trees = np.flatnonzero(sizes > s)
        split = begin[trees] + s
        code, kind = codes[forest.column[split]], forest.kind[split][:, None]
        moves = (code > forest.limit[split][:, None]) & ((kind != MISSING_LEFT) | (code != forest.missing[0]))
        if (kind == CATEGORICAL).any():
            words = forest.bits[forest.set_of_split[split][:, None], code >> 6]
            moves = np.where(kind == CATEGORICAL, (words >> (code & 63)) & np.uint64(1) == 0, moves)
        moves &= place[trees] == forest.leaf[split][:, None]
        place[trees] += np.where(moves, s + 1 - place[trees], 0)
    values = forest.value[(begin + np.arange(len(begin)))[:, None] + place]
    for k in range(len(forest.base)):
        own = values[forest.tree_offsets[k] : forest.tree_offsets[k + 1]]
        out[:, k] = forest.base[k] + forest.scale[k] * own.sum(axis=0)
