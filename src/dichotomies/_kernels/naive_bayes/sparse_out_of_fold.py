"""Out-of-fold scores of naive Bayes on sparse rows: every node's models are made, asked and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.naive_bayes.sparse_nodes import (
    BERNOULLI,
    MULTINOMIAL,
    NORMALISED,
    above_background,
    tally,
)

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
    """CSR rows in the order of their leaves, so that a node's are next to one another.

    Attributes
    ----------
    leaf_offset : (n_leaves + 1,)
        Where each leaf's rows begin, and the end.
    folds : (n_rows,)
        The fold of each row.
    """

    data: FloatArray
    indices: IntArray
    indptr: IntArray
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
    """Room to work on one node; its features are numbered as they are met, so that they lie close together.

    Attributes
    ----------
    slot : (n_features,)
        The number of a feature, -1 unless the node has it.
    feature : (n_features,)
        The feature of each number.
    values : (n_features, 2 * n_folds)
        By number: sums of a feature over the left side in each fold, then over the right; later the weights
        of each member.
    """

    slot: IntArray
    feature: IntArray
    values: FloatArray


@kernel
def accumulate(
    first_leaf: int, last_leaf: int, column: int, n_folds: int, counts: Counts, n: int, scratch: Scratch
) -> int:
    """Add the counts of some leaves to columns ``column + fold``; return how many features were met."""
    offsets, feature, total = counts
    slot, met, values = scratch
    for leaf in range(first_leaf, last_leaf):
        for fold in range(n_folds):
            group = leaf * n_folds + fold
            for entry in range(offsets[group], offsets[group + 1]):
                j = np.uintp(feature[entry])  # unsigned: never counted from the end
                s = slot[j]
                if s < 0:
                    s = n
                    slot[j] = s
                    met[s] = j
                    values[s] = 0.0
                    n += 1
                values[np.uintp(s), column + fold] += total[entry]
    return n


@kernel
def leave_out(n_folds: int, n: int, scratch: Scratch) -> None:
    """Replace the sum over each fold by the sum over all other folds.

    They are added, not subtracted from the whole, which would leave rounding errors instead of zeros.
    """
    by_fold = np.empty(n_folds)
    for s in range(n):
        for column in (0, n_folds):
            own = scratch.values[s, column : column + n_folds]
            by_fold[:] = own
            own[:] = 0.0
            for f in range(n_folds):
                for g in range(n_folds):
                    if g != f:
                        own[f] += by_fold[g]


@kernel
def sum_tallies(
    rule: int, alpha: FloatArray, n: int, scratch: Scratch, of_side: FloatArray, out: FloatArray
) -> None:
    """Write the sum of `tally` over the features met for each fold and side."""
    n_folds = len(out)
    out[:] = 0.0
    for s in range(n):
        for f in range(n_folds):
            for side in range(2):
                count = scratch.values[s, side * n_folds + f]
                out[f, side] += tally(rule, count, alpha[scratch.feature[s]], of_side[f, side])


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
    values = scratch.values
    n_folds, n_features = len(intercept), len(alpha)
    leave_out(n_folds, n, scratch)
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
    for s in range(n):
        a = alpha[scratch.feature[s]]
        for f in range(n_folds):
            left, right = values[s, f], values[s, n_folds + f]
            values[s, f] = above_background(rule, left, right, a, of_side[f, 0], of_side[f, 1])


@kernel
def make_multinomial(alpha: FloatArray, n: int, n_folds: int, all_needed: bool, scratch: Scratch) -> None:
    """`make_members` for counts alone, computing only weights that will be asked for.

    A member without fold f is asked about the rows of fold f. A feature that no such row has needs no
    weight there, unless rows that count for nothing have it (`all_needed`); and one that only such rows have
    is, to that member, not active.
    """
    values = scratch.values
    by_fold = np.empty(2 * n_folds)
    for s in range(n):
        by_fold[:] = values[s]
        for f in range(n_folds):
            values[s, f] = 0.0
            if by_fold[f] + by_fold[n_folds + f] == 0.0 and not all_needed:
                continue
            left = right = 0.0
            for g in range(n_folds):
                if g != f:
                    left += by_fold[g]
                    right += by_fold[n_folds + g]
            if left + right > 0.0:
                values[s, f] = np.log(
                    (left + alpha[scratch.feature[s]]) / (right + alpha[scratch.feature[s]])
                )


@kernel
def score_node(
    first: int,
    last: int,
    rows: Rows,
    scratch: Scratch,
    intercept: FloatArray,
    background: FloatArray,
    is_trained: BoolArray,
    out: FloatArray,
) -> None:
    """Score the rows from `first` to `last`, each by the member that has not seen its fold."""
    for row in range(first, last):
        f = rows.folds[row]
        score = np.nan
        if is_trained[f]:
            score = intercept[f]
            for e in range(rows.indptr[row], rows.indptr[row + 1]):
                s = scratch.slot[np.uintp(rows.indices[e])]
                above = scratch.values[np.uintp(s), f] if s >= 0 else 0.0
                score += rows.data[e] * (background[f] + above)
        out[row - first] = score


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
    all_needed: bool,
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
    all_needed : bool
        Whether there are rows that were not counted.
    out : (n_pairs,)
        Written from ``pair_offsets[first]`` to ``pair_offsets[last]``.
    """
    n_features, n_folds = len(alpha), members.intercept.shape[1]
    scratch = Scratch(
        np.full(n_features, -1, np.int32),
        np.empty(n_features, np.int32),
        np.empty((n_features, 2 * n_folds)),
    )
    for k in range(first, last):
        n = accumulate(start[k], split[k], 0, n_folds, counts, 0, scratch)
        n = accumulate(split[k], stop[k], n_folds, n_folds, counts, n, scratch)
        of_side = members.of_side[k].copy()
        intercept, background = members.intercept[k].copy(), members.background[k].copy()
        if rule == MULTINOMIAL:
            make_multinomial(alpha, n, n_folds, all_needed, scratch)
        else:
            make_members(rule, alpha, n, scratch, of_side, intercept, background)
        score_node(
            rows.leaf_offset[start[k]],
            rows.leaf_offset[stop[k]],
            rows,
            scratch,
            intercept,
            background,
            members.is_trained[k],
            out[pair_offsets[k] : pair_offsets[k + 1]],
        )
        for s in range(n):
            scratch.slot[scratch.feature[s]] = -1
