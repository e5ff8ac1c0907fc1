"""Boosted trees as flat arrays, and writing them.

A tree is a sequence of splits. All rows begin at leaf 0; split s divides the rows at one leaf, and those that
go right move to the new leaf s + 1.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.encoding import MISSING, Codes
from dichotomies._kernels.boosting.gini import Gini
from dichotomies._kernels.boosting.newton import CategoricalNewton, Newton
from dichotomies._kernels.boosting.rows import code_of_row
from dichotomies._kernels.boosting.tree_memory import Tree
from dichotomies._kernels.compile import by_type, kernel

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
def write_categories(
    _: CategoricalNewton, first_bin: IntArray, at: Any, node: Any, left_is_larger: bool, out: Any
) -> None:
    """Write the set of categories that go left."""
    bits = node["bits"]
    for i in range(4):
        out[i] = np.uint64(0)
    if left_is_larger and not at["has_missing"]:
        out[MISSING >> 6] = np.uint64(1) << np.uint64(MISSING & 63)
    for b in range(at["end"] - at["begin"]):
        if (bits[b >> 6] >> np.uint64(b & 63)) & np.uint64(1) == np.uint64(1):
            code = first_bin[at["begin"] + b]
            out[code >> 6] |= np.uint64(1) << np.uint64(code & 63)


@kernel
def no_categories(_: Any, first_bin: IntArray, at: Any, node: Any, left_is_larger: bool, out: Any) -> None:
    """Write nothing where there are no categories."""


@kernel
def limit_between(
    _: Any,
    bins: Any,
    origin: Any,
    order: IntArray,  # noqa: ARG001 - see `limit_between_merged`
    at: Any,
    node: Any,
    child: Any,  # noqa: ARG001
) -> Any:
    """Return the highest code that goes left: bins without rows go to the nearer side."""
    left, right = at["begin"] + node["last_bin"], at["begin"] + node["next_bin"]
    first = origin.first_bin[right] if right < at["end"] else np.int64(MISSING)
    return nearest(bins.highest, bins.lowest, bins.starts[at["number"]], origin.last_bin[left], first)


@kernel
def limit_between_merged(
    _: Gini, bins: Any, origin: Any, order: IntArray, at: Any, node: Any, child: Any
) -> Any:
    """Return the highest code that goes left; of merged bins, only those with rows of this node count.

    Parameters
    ----------
    child : (2,) of NODE
    """
    feature, left, right = at["number"], at["begin"] + node["last_bin"], at["begin"] + node["next_bin"]
    last, first = origin.last_bin[left], np.int64(MISSING)
    if right < at["end"]:
        first = origin.first_bin[right]
        if first < origin.last_bin[right]:
            first = origin.last_bin[right]
            for place in range(child[1]["begin"], child[1]["end"]):
                first = min(first, code_of_row(bins, origin.taken[order[place]], feature))
    if origin.first_bin[left] < last:
        last = origin.first_bin[left]
        for place in range(child[0]["begin"], child[0]["end"]):
            last = max(last, code_of_row(bins, origin.taken[order[place]], feature))
    return nearest(bins.highest, bins.lowest, bins.starts[feature], last, first)


@kernel
def nearest(highest: FloatArray, lowest: FloatArray, start: int, last: Any, first: Any) -> Any:
    """Return the last of the bins between two of a feature that is nearer to the lower one, or that one."""
    if first != MISSING:
        middle = highest[start + last] / 2.0 + lowest[start + first] / 2.0
        while last + 1 < first and highest[start + last + 1] <= middle:
            last += 1
    return last


set_categories = by_type({Gini: no_categories, Newton: no_categories, CategoricalNewton: write_categories})
limit_of_split = by_type(
    {Gini: limit_between_merged, Newton: limit_between, CategoricalNewton: limit_between}
)


@kernel(inline=True)
def write_splits(
    criterion: Any,
    rows: Any,
    origin: Any,
    bins: Any,
    tree: Tree,
    n_splits: int,
    t: int,
    s: int,
    out: Ensembles,
) -> None:
    """Write the splits of a tree, as tree `t` of all, from split `s` of all on."""
    out.n_splits[t] = n_splits
    for i in range(n_splits):
        node = tree.nodes[tree.nodes[i]["split"]]
        at, child = rows.features[node["feature"]], tree.nodes[node["child"] : node["child"] + 2]
        left_is_larger = child[0]["n_rows"] > child[1]["n_rows"]
        # missing values that training has not seen go with the majority, as in scikit-learn
        missing_left = node["missing_left"] if at["has_missing"] else left_is_larger
        out.leaf[s + i], out.feature[s + i] = node["leaf"], at["number"]
        out.kind[s + i] = MISSING_LEFT if missing_left else 0
        if at["is_categorical"]:
            out.kind[s + i], out.limit[s + i] = CATEGORICAL, 0
            set_categories(criterion, origin.first_bin, at, node, left_is_larger, out.bits[s + i])
        else:
            out.limit[s + i] = limit_of_split(criterion, bins, origin, tree.order, at, node, child)
