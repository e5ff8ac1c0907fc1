"""Boosted trees as flat arrays, and what says how to train them."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.histograms import Codes
from dichotomies._kernels.boosting.trees import Tree
from dichotomies._kernels.compile import kernel

DISCRETE, REAL, GRADIENT = 0, 1, 2

#: A sum of weights as an integer; a quarter of what there is room for.
WHOLE = 2.0**61

#: The least weight of a row and the least probability of a leaf, as in scikit-learn.
LEAST = float(np.finfo(np.float64).eps)


class Boosting(NamedTuple):
    """Parameters of an ensemble.

    Attributes
    ----------
    kind : int
        `DISCRETE`, `REAL` or `GRADIENT`.
    min_rows : int
        The least number of rows in a leaf.
    l2_regularization, min_hessian : float
        For gradient boosting: added to the Hessian of a leaf; the least Hessian of a leaf.
    """

    kind: int
    n_estimators: int
    max_depth: int
    learning_rate: float
    min_rows: int
    l2_regularization: float
    min_hessian: float


class Bins(NamedTuple):
    """Binned rows in the order of the leaves.

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
    """The trees of some nodes: ``base + scale * (sum of the values of the leaves)`` is the log-odds of left.

    Attributes
    ----------
    n_trees, is_trained, base, scale : (n_nodes,)
    feature, threshold : (n_nodes, n_estimators, 2**max_depth - 1)
        A row goes right where its feature is above the threshold; the feature of a leaf is -1.
    value : (n_nodes, n_estimators, 2**(max_depth + 1) - 1)
        Of every leaf.
    """

    n_trees: IntArray
    is_trained: BoolArray
    base: FloatArray
    scale: FloatArray
    feature: npt.NDArray[np.int32]
    threshold: FloatArray
    value: FloatArray


class Names(NamedTuple):
    """Names of the local rows, features and bins of a training set.

    Attributes
    ----------
    features : (n_local_features,)
    offsets : (n_local_features + 1,)
        Where the bins of each begin in `first_bin` and `last_bin`, and the end.
    first_bin, last_bin : (n_local_bins,)
        The first and the last of the bins that each local bin is made of.
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
def keep_cuts(tree: Tree, names: Names, k: int, t: int, out: Ensembles) -> None:
    """Write a tree's features and thresholds, which lie midway between neighbouring values."""
    for node in range(out.feature.shape[2]):
        local = tree.feature[node]
        out.feature[k, t, node] = -1
        out.threshold[k, t, node] = np.inf
        if local >= 0:
            feature = names.features[local]
            below = names.bins.highest[feature, last_bin_left(tree, names, node)]
            above = names.bins.lowest[feature, first_bin_right(tree, names, node)]
            middle = below / 2.0 + above / 2.0
            out.feature[k, t, node] = feature
            out.threshold[k, t, node] = middle if middle < above else below


@kernel
def last_bin_left(tree: Tree, names: Names, node: int) -> Any:
    """The last bin left of a node's cut that has rows of the node."""
    local, child = tree.feature[node], 2 * node + 1
    at = names.offsets[local] + tree.last_bin[node]
    if names.first_bin[at] == names.last_bin[at]:
        return names.last_bin[at]
    last = names.first_bin[at]
    for place in range(tree.begin[child], tree.end[child]):
        last = max(last, np.int64(names.bins.codes[names.rows[tree.order[place]], names.features[local]]))
    return last


@kernel
def first_bin_right(tree: Tree, names: Names, node: int) -> Any:
    """The first bin right of a node's cut that has rows of the node."""
    local, child = tree.feature[node], 2 * node + 2
    at = names.offsets[local] + tree.next_bin[node]
    if names.first_bin[at] == names.last_bin[at]:
        return names.first_bin[at]
    first = names.last_bin[at]
    for place in range(tree.begin[child], tree.end[child]):
        first = min(first, np.int64(names.bins.codes[names.rows[tree.order[place]], names.features[local]]))
    return first
