"""Boosted trees as flat arrays, and writing them.

A tree is a sequence of splits. All rows begin at leaf 0; split s divides the rows at one leaf, and those that
go right move to the new leaf s + 1.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.encoding import MISSING, Codes
from dichotomies._kernels.boosting.local_rows import Bins, LocalRows
from dichotomies._kernels.boosting.rows import code_of_row
from dichotomies._kernels.boosting.sparse_rows import SparseBins
from dichotomies._kernels.boosting.tree_memory import Tree
from dichotomies._kernels.compile import kernel

#: Kinds of splits, which may be added.
MISSING_LEFT, CATEGORICAL = 1, 2


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


@kernel
def write_splits(
    rows: LocalRows, bins: Bins | SparseBins, tree: Tree, n_splits: int, t: int, s: int, out: Ensembles
) -> None:
    """Write the splits of a tree, as tree `t` of all, from split `s` of all on."""
    out.n_splits[t] = n_splits
    for i in range(n_splits):
        number = tree.splits[i]
        node = tree.nodes[number]
        left, right = tree.nodes[node["child"]], tree.nodes[node["child"] + 1]
        at = rows.features[node["feature"]]
        left_is_larger = left["end"] - left["begin"] > right["end"] - right["begin"]
        # missing values that training has not seen go with the majority, as in scikit-learn
        missing_left = node["missing_left"] if at["has_missing"] else left_is_larger
        out.leaf[s + i], out.feature[s + i] = node["leaf"], at["number"]
        out.kind[s + i] = MISSING_LEFT if missing_left else 0
        if at["is_categorical"]:
            out.kind[s + i], out.limit[s + i] = CATEGORICAL, 0
            write_categories(rows, node, left_is_larger, out.bits[s + i])
        else:
            out.limit[s + i] = global_limit(rows, bins, tree, number)


@kernel
def write_categories(rows: LocalRows, node: Any, left_is_larger: bool, out: npt.NDArray[np.uint64]) -> None:
    """Write the set of categories that go left."""
    at, bits = rows.features[node["feature"]], node["bits"]
    for i in range(4):
        out[i] = np.uint64(0)
    if left_is_larger and not at["has_missing"]:
        out[MISSING >> 6] = np.uint64(1) << np.uint64(MISSING & 63)
    for b in range(at["end"] - at["begin"]):
        if (bits[b >> 6] >> np.uint64(b & 63)) & np.uint64(1) == np.uint64(1):
            code = rows.first_bin[at["begin"] + b]
            out[code >> 6] |= np.uint64(1) << np.uint64(code & 63)


@kernel
def global_limit(rows: LocalRows, bins: Bins | SparseBins, tree: Tree, number: int) -> Any:
    """Return the highest code that goes left: bins without rows go to the nearer side."""
    node = tree.nodes[number]
    at, child = rows.features[node["feature"]], node["child"]
    feature, left, right = at["number"], at["begin"] + node["last_bin"], at["begin"] + node["next_bin"]
    last, first = rows.last_bin[left], np.int64(MISSING)
    if right < at["end"]:
        first = rows.first_bin[right]
        if first < rows.last_bin[right]:  # of merged bins, only those with rows of this node count
            first = rows.last_bin[right]
            for place in range(tree.nodes[child + 1]["begin"], tree.nodes[child + 1]["end"]):
                first = min(first, code_of_row(bins, rows.taken[tree.order[place]], feature))
    if rows.first_bin[left] < last:
        last = rows.first_bin[left]
        for place in range(tree.nodes[child]["begin"], tree.nodes[child]["end"]):
            last = max(last, code_of_row(bins, rows.taken[tree.order[place]], feature))
    if first == MISSING:
        return last
    start = bins.starts[feature]
    middle = bins.highest[start + last] / 2.0 + bins.lowest[start + first] / 2.0
    while last + 1 < first and bins.highest[start + last + 1] <= middle:
        last += 1
    return last
