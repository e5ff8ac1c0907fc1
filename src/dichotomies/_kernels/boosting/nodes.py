"""Boosting small trees at many nodes of a class tree, one after another: only one way to boost is compiled.

Rows stand in the order of the leaves of the class tree, so that every node has a range of them, its left side
first. Weights become integers before they are summed up, so the result does not depend on that order.
"""

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.adaboost import reweigh
from dichotomies._kernels.boosting.ensembles import GRADIENT, Bins, Boosting, Ensembles, Names
from dichotomies._kernels.boosting.gradient import descend
from dichotomies._kernels.boosting.histograms import local_codes
from dichotomies._kernels.boosting.trees import Rows, room_for_tree


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
    """Train the ensembles of some nodes, each on its rows that weigh something and are not left out.

    Parameters
    ----------
    weight, fold : (n_rows,)
    left_out : int
        The fold to leave out; -1 for none.
    begin, split, end : (n_nodes,)
        Each node's range of rows, and where its right side begins.
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


def chosen_rows(weight: FloatArray, fold: IntArray, left_out: int, begin: int, end: int) -> IntArray:
    """Rows of a range that weigh something and are not left out."""
    chosen = (weight[begin:end] > 0.0) & (fold[begin:end] != left_out)
    return begin + np.flatnonzero(chosen)


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
    # a cut that is best but leaves too few rows in a leaf does not count, so the others have to be seen
    merge = boosting.kind != GRADIENT and boosting.min_rows == 1
    n_varying = local_codes(
        bins.codes, taken, len(negative), merge, codes, features, offsets, first_bin, last_bin
    )
    names = Names(features, offsets, first_bin, last_bin, taken, bins)
    n_channels = 2 if boosting.min_rows == 1 else 3
    amounts = np.ones((3, len(taken)), dtype=np.int64)
    rows = Rows(codes[:n_varying], offsets[: n_varying + 1], len(negative), amounts)
    tree = room_for_tree(boosting.max_depth, len(taken), offsets[n_varying], n_channels)
    if boosting.kind == GRADIENT:
        descend(rows, names, weight[taken], boosting, tree, k, out)
    else:
        reweigh(rows, names, weight[taken], boosting, tree, k, out)
