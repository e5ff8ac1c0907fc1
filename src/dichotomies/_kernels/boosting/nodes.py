"""Boosting small trees at many nodes of a class tree.

Rows are sorted by leaf of the class tree: the rows of every node are contiguous, its left side first.
Weights are converted to fixed point before they are summed, so the result does not depend on that order.
"""

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.adaboost import fit_adaboost
from dichotomies._kernels.boosting.ensembles import GRADIENT, Bins, Boosting, Ensembles, LocalToGlobal
from dichotomies._kernels.boosting.gradient import fit_gradient_boosting
from dichotomies._kernels.boosting.histograms import local_codes
from dichotomies._kernels.boosting.trees import BinnedRows, allocate_tree
from dichotomies._kernels.compile import kernel


@kernel
def boost_nodes(
    bins: Bins,
    weight: FloatArray,
    fold: IntArray,
    left_out: int,
    begin: IntArray,
    split: IntArray,
    end: IntArray,
    left_is_positive: BoolArray,
    boosting: Boosting,
    out: Ensembles,
) -> None:
    """Train the ensembles of some nodes, each on its rows of positive weight outside the fold left out.

    Parameters
    ----------
    weight, fold : (n_rows,)
    left_out : int
        The fold to leave out; -1 for none.
    begin, split, end : (n_nodes,)
        Each node's range of rows, and the start of its right side.
    left_is_positive : (n_nodes,)
    """
    for k in range(len(begin)):
        left = chosen_rows(weight, fold, left_out, begin[k], split[k])
        right = chosen_rows(weight, fold, left_out, split[k], end[k])
        negative, positive = (right, left) if left_is_positive[k] else (left, right)
        out.n_trees[k] = 0
        out.scale[k] = 1.0
        out.is_trained[k] = len(left) > 0 and len(right) > 0
        if not out.is_trained[k]:
            out.base[k] = np.log((weight[left].sum() + 1.0) / (weight[right].sum() + 1.0))
            continue
        boost(bins, negative, positive, weight, boosting, k, out)
        if not left_is_positive[k]:
            out.base[k] = -out.base[k]
            out.scale[k] = -out.scale[k]


@kernel
def chosen_rows(weight: FloatArray, fold: IntArray, left_out: int, begin: int, end: int) -> IntArray:
    """Rows of a range with positive weight outside the fold left out."""
    rows = np.empty(end - begin, dtype=np.int64)
    n = 0
    for i in range(begin, end):
        if weight[i] > 0.0 and fold[i] != left_out:
            rows[n] = i
            n += 1
    return rows[:n]


@kernel
def boost(
    bins: Bins,
    negative: IntArray,
    positive: IntArray,
    weight: FloatArray,
    boosting: Boosting,
    k: int,
    out: Ensembles,
) -> None:
    """Train the ensemble of one node; log-odds are those of the positive rows."""
    taken = np.concatenate((negative, positive))
    n_features = bins.codes.shape[1]
    codes = np.empty((n_features, len(taken)), dtype=np.uint8)
    features, offsets = np.empty(n_features, dtype=np.int64), np.empty(n_features + 1, dtype=np.int64)
    first_bin, last_bin = (
        np.empty(256 * n_features, dtype=np.int64),
        np.empty(256 * n_features, dtype=np.int64),
    )
    # with a minimum leaf size the best split may be forbidden, so the others must be available
    merge = boosting.kind != GRADIENT and boosting.min_rows == 1
    n_varying = local_codes(
        bins.codes, taken, len(negative), merge, codes, features, offsets, first_bin, last_bin
    )
    to_global = LocalToGlobal(features, offsets, first_bin, last_bin, taken, bins)
    n_channels = 2 if boosting.min_rows == 1 else 3
    amounts = np.ones((3, len(taken)), dtype=np.int64)
    rows = BinnedRows(codes[:n_varying], offsets[: n_varying + 1], len(negative), amounts)
    tree = allocate_tree(boosting.max_depth, len(taken), offsets[n_varying], n_channels)
    if boosting.kind == GRADIENT:
        fit_gradient_boosting(rows, to_global, weight[taken], boosting, tree, k, out)
    else:
        fit_adaboost(rows, to_global, weight[taken], boosting, tree, k, out)
