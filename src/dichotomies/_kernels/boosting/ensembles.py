"""Boosted trees as flat arrays, the parameters of their training, and writing them.

A tree is a sequence of splits. All rows begin at leaf 0; split s divides the rows at one leaf, and those that
go right move to the new leaf s + 1.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.histograms import MISSING, Codes, local_codes
from dichotomies._kernels.boosting.tree_memory import BinnedRows, Tree
from dichotomies._kernels.compile import kernel

#: The integer that a total weight of 1 becomes in fixed point; a quarter of the range of int64.
FIXED_POINT_ONE = 2.0**61

#: Lower limit of row weights and of leaf probabilities, as in scikit-learn.
EPSILON = float(np.finfo(np.float64).eps)

#: Kinds of splits, which may be added.
MISSING_LEFT, CATEGORICAL = 1, 2

#: Largest weights of a node's rows that are used as they are; others are scaled by a power of two.
LEAST_WEIGHT, MOST_WEIGHT = 2.0**-100, 2.0**100


class Boosting(NamedTuple):
    """Parameters of boosting at some nodes.

    Attributes
    ----------
    n_estimators, max_depth, max_leaves, min_rows : (n_nodes,)
        `min_rows` is the minimum number of rows in a leaf.
    tree_features : (n_nodes,)
        Share of the features that a tree may use.
    learning_rate, l2_regularization : float
    min_hessian : float
        Minimum Hessian of a leaf; gradient boosting only.
    subsample, split_features : float
        Shares of rows for a tree and of its features for a split; gradient boosting only.
    seed : int
    newton : bool
        Gradient boosting instead of AdaBoost.
    real : bool
        Real instead of discrete AdaBoost.
    """

    n_estimators: IntArray
    max_depth: IntArray
    max_leaves: IntArray
    min_rows: IntArray
    tree_features: FloatArray
    learning_rate: float
    l2_regularization: float
    min_hessian: float
    subsample: float
    split_features: float
    seed: int
    newton: bool
    real: bool


class Bins(NamedTuple):
    """Binned rows, sorted by leaf of the class tree.

    Attributes
    ----------
    codes : (n_rows, n_features)
    lowest, highest : (n_features, 255)
        The lowest and highest value in each bin; equal for categories.
    is_categorical : (n_features,)
    """

    codes: Codes
    lowest: FloatArray
    highest: FloatArray
    is_categorical: BoolArray


class Ensembles(NamedTuple):
    """The trees of some nodes, one after another: log-odds are ``base + scale * (sum of leaf values)``.

    Attributes
    ----------
    n_trees, is_trained, base, scale : (n_nodes,)
    n_splits : (n_trees,)
    leaf, feature, limit, kind : (n_splits,)
        The leaf that a split divides; its feature; rows with a higher code go right; `MISSING_LEFT` or
        `CATEGORICAL`.
    bits : (n_splits, 4) or (0, 4)
        Categories that go left.
    value : (n_splits + n_trees,)
        The values of each tree's leaves.
    held_score : (n_pairs,)
        Log-odds of rows that were held out, node after node.
    held_loss : (n_nodes, n_estimators + 1)
        Sum of their losses by the number of trees.
    """

    n_trees: IntArray
    is_trained: BoolArray
    base: FloatArray
    scale: FloatArray
    n_splits: IntArray
    leaf: Codes
    feature: npt.NDArray[np.int32]
    limit: Codes
    kind: Codes
    bits: npt.NDArray[np.uint64]
    value: FloatArray
    held_score: FloatArray
    held_loss: FloatArray


class LocalToGlobal(NamedTuple):
    """Global numbers of the local rows, features and bins of one training set.

    Attributes
    ----------
    features : (n_local_features,)
    offsets : (n_local_features + 1,)
        Start of each feature's bins in `first_bin` and `last_bin`, and the end.
    first_bin, last_bin : (n_local_bins,)
        First and last of the global bins merged into each local bin.
    rows : (n_local_rows,)
    bins : Bins
    """

    features: IntArray
    offsets: IntArray
    first_bin: IntArray
    last_bin: IntArray
    rows: IntArray
    bins: Bins


@kernel
def chosen_rows(weight: FloatArray, fold: IntArray, left_out: int, begin: int, end: int) -> IntArray:
    """Rows of a range with positive weight outside the fold left out."""
    return begin + np.flatnonzero((weight[begin:end] > 0.0) & (fold[begin:end] != left_out))


@kernel
def usual_weights(weight: FloatArray) -> FloatArray:
    """Copy weights; if the largest is extreme, scale them by a power of two, so that no sum overflows."""
    most = weight.max()
    factor = 1.0
    while most * factor < LEAST_WEIGHT:
        factor *= 2.0**50
    while most * factor > MOST_WEIGHT:
        factor *= 2.0**-50
    return weight * factor


@kernel
def local_problem(
    bins: Bins, taken: IntArray, n_negative: int, merge: bool
) -> tuple[BinnedRows, LocalToGlobal]:
    """Rows of one node, the negative ones first, with local features and bins; see `local_codes`."""
    n_features = bins.codes.shape[1]
    codes = np.empty((n_features, len(taken)), dtype=np.uint8)
    features, offsets = np.empty(n_features, dtype=np.int64), np.empty(n_features + 1, dtype=np.int64)
    room = n_features * min(256, len(taken))
    first, last = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    n = local_codes(
        bins.codes,
        taken,
        n_negative,
        merge,
        bins.is_categorical,
        codes,
        features,
        offsets,
        first,
        last,
    )
    has_missing, is_categorical = np.empty(n, dtype=np.bool_), np.empty(n, dtype=np.bool_)
    for f in range(n):
        has_missing[f] = last[offsets[f + 1] - 1] == MISSING
        is_categorical[f] = bins.is_categorical[features[f]]
    amounts = np.ones((3, len(taken)), dtype=np.int64)
    rows = BinnedRows(codes[:n], offsets[: n + 1], has_missing, is_categorical, n_negative, amounts)
    return rows, LocalToGlobal(features[:n], offsets[: n + 1], first, last, taken, bins)


@kernel
def write_splits(
    rows: BinnedRows, tree: Tree, to_global: LocalToGlobal, t: int, s: int, newton: bool, out: Ensembles
) -> None:
    """Write the splits of a tree, as tree `t` of all, from split `s` of all on."""
    out.n_splits[t] = tree.n_splits[0]
    for i in range(tree.n_splits[0]):
        node = tree.splits[i]
        local = tree.feature[node]
        left = tree.child[node]
        left_is_larger = tree.end[left] - tree.begin[left] > tree.end[left + 1] - tree.begin[left + 1]
        # missing values that training has not seen go with the majority, as in scikit-learn
        missing_left = tree.missing_left[node] if rows.has_missing[local] else left_is_larger
        out.leaf[s + i], out.feature[s + i] = tree.leaf[node], to_global.features[local]
        out.kind[s + i] = MISSING_LEFT if missing_left else 0
        if rows.is_categorical[local]:
            out.kind[s + i], out.limit[s + i] = CATEGORICAL, 0
            write_categories(rows, tree, to_global, node, left_is_larger, out.bits[s + i])
        else:
            out.limit[s + i] = global_limit(tree, to_global, node, newton)


@kernel
def write_categories(
    rows: BinnedRows,
    tree: Tree,
    to_global: LocalToGlobal,
    node: int,
    left_is_larger: bool,
    out: npt.NDArray[np.uint64],
) -> None:
    """Write the set of categories that go left."""
    local = tree.feature[node]
    out[:] = 0
    if left_is_larger and not rows.has_missing[local]:
        out[MISSING >> 6] = np.uint64(1) << np.uint64(MISSING & 63)
    for b in range(to_global.offsets[local + 1] - to_global.offsets[local]):
        if (tree.bits[node, b >> 6] >> np.uint64(b & 63)) & np.uint64(1) == np.uint64(1):
            code = to_global.first_bin[to_global.offsets[local] + b]
            out[code >> 6] |= np.uint64(1) << np.uint64(code & 63)


@kernel
def global_limit(tree: Tree, to_global: LocalToGlobal, node: int, newton: bool) -> Any:
    """Return the highest code that goes left: bins without rows go to the nearer side."""
    local, child = tree.feature[node], tree.child[node]
    offset, feature = to_global.offsets[local], to_global.features[local]
    left, right = offset + tree.last_bin[node], offset + tree.next_bin[node]
    last, first = to_global.last_bin[left], MISSING
    if right < to_global.offsets[local + 1]:
        first = to_global.first_bin[right]
    if not newton:
        # merged bins: only those with rows of this node count
        codes = to_global.bins.codes
        if to_global.first_bin[left] < last:
            last = to_global.first_bin[left]
            for place in range(tree.begin[child], tree.end[child]):
                last = max(last, np.int64(codes[to_global.rows[tree.order[place]], feature]))
        if first < to_global.last_bin[right]:
            first = to_global.last_bin[right]
            for place in range(tree.begin[child + 1], tree.end[child + 1]):
                first = min(first, np.int64(codes[to_global.rows[tree.order[place]], feature]))
    if first == MISSING:
        return last
    highest, lowest = to_global.bins.highest[feature], to_global.bins.lowest[feature]
    middle = highest[last] / 2.0 + lowest[first] / 2.0
    while last + 1 < first and highest[last + 1] <= middle:
        last += 1
    return last


@kernel
def columns(codes: Codes, rows: IntArray) -> Codes:
    """Codes of some rows, feature by feature."""
    out = np.empty((codes.shape[1], len(rows)), dtype=np.uint8)
    for i in range(len(rows)):
        for f in range(codes.shape[1]):
            out[f, i] = codes[rows[i], f]
    return out


@kernel
def place_rows(codes: Codes, trees: Ensembles, begin: int, end: int, place: npt.NDArray[np.uint8]) -> None:
    """Write the leaf that each row reaches in the tree with these splits.

    Parameters
    ----------
    codes : (n_features, n_rows or more)
    place : (n_rows,)
    """
    place[:] = 0
    for s in range(begin, end):
        column, leaf, new_leaf = codes[trees.feature[s]], trees.leaf[s], np.uint8(s - begin + 1)
        if trees.kind[s] == CATEGORICAL:
            move_categories(column, trees.bits[s], leaf, new_leaf, place)
        else:
            stays = np.uint8(MISSING if trees.kind[s] == MISSING_LEFT else 0)
            move_above(column, trees.limit[s], stays, leaf, new_leaf, place)


@kernel
def move_above(codes: Any, limit: Any, stays: Any, leaf: Any, new_leaf: Any, place: Any) -> None:
    """Move the rows at a leaf with codes above the limit, but for one code that stays, to another leaf."""
    for i in range(len(place)):
        moved = new_leaf if (codes[i] > limit) & (codes[i] != stays) else leaf
        place[i] = moved if place[i] == leaf else place[i]


@kernel
def move_categories(codes: Any, bits: Any, leaf: Any, new_leaf: Any, place: Any) -> None:
    """Move the rows at a leaf whose categories are not in the set to another one."""
    for i in range(len(place)):
        code = np.int64(codes[i]) & 255
        stays = (bits[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) == np.uint64(1)
        moved = leaf if stays else new_leaf
        place[i] = moved if place[i] == leaf else place[i]
