"""Boosted trees as flat arrays, and the parameters of their training."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.histograms import Codes
from dichotomies._kernels.boosting.trees import Tree
from dichotomies._kernels.compile import kernel

DISCRETE, REAL, GRADIENT = 0, 1, 2

#: The integer that a total weight of 1 becomes in fixed point; a quarter of the range of int64.
FIXED_POINT_ONE = 2.0**61

#: Lower limit of row weights and of leaf probabilities, as in scikit-learn.
EPSILON = float(np.finfo(np.float64).eps)


class Boosting(NamedTuple):
    """Parameters of boosting.

    Attributes
    ----------
    kind : int
        `DISCRETE`, `REAL` or `GRADIENT`.
    min_rows : int
        Minimum number of rows in a leaf.
    l2_regularization, min_hessian : float
        For gradient boosting: added to the Hessian of a leaf; minimum Hessian of a leaf.
    """

    kind: int
    n_estimators: int
    max_depth: int
    learning_rate: float
    min_rows: int
    l2_regularization: float
    min_hessian: float


class Bins(NamedTuple):
    """Binned rows, sorted by leaf of the class tree.

    Attributes
    ----------
    codes : (n_rows, n_features)
    lowest, highest : (n_features, max_bins)
        The lowest and highest value in each bin.
    """

    codes: Codes
    lowest: FloatArray
    highest: FloatArray


class Ensembles(NamedTuple):
    """The trees of some nodes: the log-odds of left are ``base + scale * (sum of leaf values)``.

    Attributes
    ----------
    n_trees, is_trained, base, scale : (n_nodes,)
    feature, threshold : (n_nodes, n_estimators, 2**max_depth - 1)
        A row goes right where its feature is above the threshold; the feature of a leaf is -1.
    value : (n_nodes, n_estimators, 2**(max_depth + 1) - 1)
        The value of every leaf.
    """

    n_trees: IntArray
    is_trained: BoolArray
    base: FloatArray
    scale: FloatArray
    feature: npt.NDArray[np.int32]
    threshold: FloatArray
    value: FloatArray


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
def write_splits(tree: Tree, to_global: LocalToGlobal, k: int, t: int, out: Ensembles) -> None:
    """Write the features and thresholds of a tree; a threshold is midway between neighbouring values."""
    for node in range(out.feature.shape[2]):
        local = tree.feature[node]
        out.feature[k, t, node] = -1
        out.threshold[k, t, node] = np.inf
        if local >= 0:
            feature = to_global.features[local]
            below = to_global.bins.highest[feature, last_bin_left(tree, to_global, node)]
            above = to_global.bins.lowest[feature, first_bin_right(tree, to_global, node)]
            middle = below / 2.0 + above / 2.0
            out.feature[k, t, node] = feature
            out.threshold[k, t, node] = middle if middle < above else below


@kernel
def last_bin_left(tree: Tree, to_global: LocalToGlobal, node: int) -> Any:
    """Return the last bin left of a node's split that has rows of the node."""
    local, child = tree.feature[node], 2 * node + 1
    at = to_global.offsets[local] + tree.last_bin[node]
    if to_global.first_bin[at] == to_global.last_bin[at]:
        return to_global.last_bin[at]
    last = to_global.first_bin[at]
    for place in range(tree.begin[child], tree.end[child]):
        last = max(
            last, np.int64(to_global.bins.codes[to_global.rows[tree.order[place]], to_global.features[local]])
        )
    return last


@kernel
def first_bin_right(tree: Tree, to_global: LocalToGlobal, node: int) -> Any:
    """Return the first bin right of a node's split that has rows of the node."""
    local, child = tree.feature[node], 2 * node + 2
    at = to_global.offsets[local] + tree.next_bin[node]
    if to_global.first_bin[at] == to_global.last_bin[at]:
        return to_global.first_bin[at]
    first = to_global.last_bin[at]
    for place in range(tree.begin[child], tree.end[child]):
        first = min(
            first,
            np.int64(to_global.bins.codes[to_global.rows[tree.order[place]], to_global.features[local]]),
        )
    return first
