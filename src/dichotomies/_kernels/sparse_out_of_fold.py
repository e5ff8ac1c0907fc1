"""Out-of-fold scores of naive Bayes on sparse rows: every node's models are made, asked and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.sparse_nodes import BERNOULLI, MULTINOMIAL, NORMALISED, above_background, tally

if TYPE_CHECKING:
    from dichotomies._typing import BoolArray, FloatArray, IntArray


class Counts(NamedTuple):
    """What each group of rows has seen; group ``leaf * n_folds + fold``.

    Attributes
    ----------
    offsets : (n_groups + 1,)
        Where each group's features begin, and the end.
    feature, total : (n_active,)
        A feature, and its sum over the rows of the group.
    """

    offsets: IntArray
    feature: IntArray
    total: FloatArray


class Rows(NamedTuple):
    """CSR rows, and which of them are of which leaf and fold.

    Attributes
    ----------
    row_order : (n_rows,)
        Row numbers sorted by leaf.
    leaf_offset : (n_leaves + 1,)
        Where each leaf's rows begin in `row_order`, and the end.
    folds : (n_rows,)
        The fold of each row.
    """

    data: FloatArray
    indices: IntArray
    indptr: IntArray
    row_order: IntArray
    leaf_offset: IntArray
    folds: IntArray


class Members(NamedTuple):
    """The nodes' models without each fold, as far as they do not depend on active features.

    Attributes
    ----------
    of_side : (n_nodes, n_folds, 2)
        See `above_background`; for the normalised complement, the sums if no feature were active.
    intercept, background : (n_nodes, n_folds)
        The weight of inactive features is the background.
    is_trained : (n_nodes, n_folds)
        Where not, scores are NaN.
    """

    of_side: FloatArray
    intercept: FloatArray
    background: FloatArray
    is_trained: BoolArray


class Scratch(NamedTuple):
    """Room to work on one node.

    Attributes
    ----------
    values : (n_features, 2 * n_folds)
        Sums of a feature over the left side in each fold, then over the right; later the weights of each
        member. Zero wherever a feature is not touched.
    is_touched : (n_features,)
    touched : (n_features,)
        The features touched.
    """

    values: FloatArray
    is_touched: BoolArray
    touched: IntArray


@kernel
def accumulate(
    first_leaf: int, last_leaf: int, column: int, n_folds: int, counts: Counts, n: int, scratch: Scratch
) -> int:
    """Add the counts of some leaves to columns ``column + fold``; return how many features are touched."""
    offsets, feature, total = counts
    values, is_touched, touched = scratch
    for leaf in range(first_leaf, last_leaf):
        for fold in range(n_folds):
            group = leaf * n_folds + fold
            for entry in range(offsets[group], offsets[group + 1]):
                j = np.uintp(feature[entry])  # unsigned: never counted from the end
                if not is_touched[j]:
                    is_touched[j] = True
                    touched[n] = j
                    n += 1
                values[j, column + fold] += total[entry]
    return n


@kernel
def leave_out(n_folds: int, n: int, scratch: Scratch) -> None:
    """Replace the sum over each fold by the sum over all other folds.

    They are added, not subtracted from the whole, which would leave rounding errors instead of zeros.
    """
    values, _, touched = scratch
    by_fold = np.empty(n_folds)
    for t in range(n):
        j = np.uintp(touched[t])
        for column in (0, n_folds):
            for f in range(n_folds):
                by_fold[f] = values[j, column + f]
                values[j, column + f] = 0.0
            for f in range(n_folds):
                for g in range(n_folds):
                    if g != f:
                        values[j, column + f] += by_fold[g]


@kernel
def sum_tallies(
    rule: int, alpha: FloatArray, n: int, scratch: Scratch, of_side: FloatArray, out: FloatArray
) -> None:
    """Write the sum of `tally` over the touched features for each fold and side."""
    values, _, touched = scratch
    n_folds = len(out)
    out[:] = 0.0
    for t in range(n):
        j = np.uintp(touched[t])
        for f in range(n_folds):
            for side in range(2):
                out[f, side] += tally(rule, values[j, side * n_folds + f], alpha[j], of_side[f, side])


@kernel
def make_members(
    rule: int,
    alpha: FloatArray,
    n: int,
    scratch: Scratch,
    of_side: FloatArray,
    intercept: FloatArray,
    background: FloatArray,
) -> None:
    """Make weights of the counts, in the first columns, and complete the node's other parameters."""
    values, _, touched = scratch
    n_folds, n_features = len(intercept), len(alpha)
    leave_out(n_folds, n, scratch)
    if rule != MULTINOMIAL:
        tallies = np.empty((n_folds, 2))
        sum_tallies(rule, alpha, n, scratch, of_side, tallies)
        for f in range(n_folds):
            if rule == BERNOULLI:
                intercept[f] += tallies[f, 0] - tallies[f, 1]
            if rule == NORMALISED:
                unseen_left, unseen_right = of_side[f, 0] / n_features, of_side[f, 1] / n_features
                of_side[f, 0] += tallies[f, 0]
                of_side[f, 1] += tallies[f, 1]
                background[f] = unseen_right / of_side[f, 1] - unseen_left / of_side[f, 0]
    for t in range(n):
        j = np.uintp(touched[t])
        for f in range(n_folds):
            left, right = values[j, f], values[j, n_folds + f]
            values[j, f] = above_background(rule, left, right, alpha[j], of_side[f, 0], of_side[f, 1])


@kernel
def score_node(
    first: int,
    last: int,
    rows: Rows,
    values: FloatArray,
    intercept: FloatArray,
    background: FloatArray,
    is_trained: BoolArray,
    out: FloatArray,
) -> None:
    """Score the rows from `first` to `last` of the order, each by the member that has not seen its fold."""
    for i in range(first, last):
        row = rows.row_order[i]
        f = rows.folds[row]
        score = np.nan
        if is_trained[f]:
            score = intercept[f]
            for e in range(rows.indptr[row], rows.indptr[row + 1]):
                score += rows.data[e] * (background[f] + values[np.uintp(rows.indices[e]), f])
        out[i - first] = score


@kernel
def score_own_rows(
    rule: int,
    alpha: FloatArray,
    rows: Rows,
    counts: Counts,
    members: Members,
    start: IntArray,
    split: IntArray,
    stop: IntArray,
    first: int,
    last: int,
    pair_offsets: IntArray,
    out: FloatArray,
) -> None:
    """Score the rows of nodes `first` to `last` by models that have not seen their fold.

    Parameters
    ----------
    alpha : (n_features,)
    start, split, stop : (n_nodes,)
        Ranges of leaves.
    out : (n_pairs,)
        Written from ``pair_offsets[first]`` to ``pair_offsets[last]``.
    """
    n_features, n_folds = len(alpha), members.intercept.shape[1]
    scratch = Scratch(
        np.zeros((n_features, 2 * n_folds)),
        np.zeros(n_features, np.bool_),
        np.empty(n_features, np.int64),
    )
    for k in range(first, last):
        n = accumulate(start[k], split[k], 0, n_folds, counts, 0, scratch)
        n = accumulate(split[k], stop[k], n_folds, n_folds, counts, n, scratch)
        of_side = members.of_side[k].copy()
        intercept, background = members.intercept[k].copy(), members.background[k].copy()
        make_members(rule, alpha, n, scratch, of_side, intercept, background)
        score_node(
            rows.leaf_offset[start[k]],
            rows.leaf_offset[stop[k]],
            rows,
            scratch.values,
            intercept,
            background,
            members.is_trained[k],
            out[pair_offsets[k] : pair_offsets[k + 1]],
        )
        for t in range(n):
            j = np.uintp(scratch.touched[t])
            scratch.is_touched[j] = False
            for column in range(2 * n_folds):
                scratch.values[j, column] = 0.0
