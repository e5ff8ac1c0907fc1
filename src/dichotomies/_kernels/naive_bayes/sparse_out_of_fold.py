"""Out-of-fold scores of naive Bayes on sparse rows: every node's models are made, asked and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import take_logs
from dichotomies._kernels.naive_bayes.sparse_nodes import (
    BERNOULLI,
    MULTINOMIAL,
    NORMALISED,
    above_background,
    tally,
)

if TYPE_CHECKING:
    from dichotomies._typing import BoolArray, FloatArray, IntArray


CHUNK = 512  # features worked on together


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
    folds, total : (n_rows,)
        The fold of each row, and the sum of its features.
    """

    data: FloatArray
    indices: IntArray
    indptr: IntArray
    leaf_offset: IntArray
    folds: IntArray
    total: FloatArray


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
    seen_at : (n_features,)
        The last node where each feature was met.
    met : (n_features + 1,)
        Room for the features met at the node.
    values : (2 * n_folds, n_features)
        Zero, but for features met: their sums over the left side in each fold, then over the right; later,
        in the first rows, the weights of each member.
    others : (2 * n_folds, CHUNK)
        Of some of the features met, the sums over all folds but one.
    part : (CHUNK,)
    """

    seen_at: IntArray
    met: IntArray
    values: FloatArray
    others: FloatArray
    part: FloatArray


@kernel
def add_up(
    first_leaf: int, last_leaf: int, row: int, n_folds: int, counts: Counts, values: FloatArray
) -> None:
    """Add the counts of some leaves to rows ``row + fold``."""
    for leaf in range(first_leaf, last_leaf):
        for fold in range(n_folds):
            group, sums = leaf * n_folds + fold, values[row + fold]
            for entry in range(counts.offsets[group], counts.offsets[group + 1]):
                # Unsigned, a feature is never taken to be counted from the end.
                sums[np.uintp(counts.feature[entry])] += counts.total[entry]


@kernel
def meet(k: int, features: IntArray, seen_at: IntArray, met: IntArray) -> IntArray:
    """The different ones among the features of node `k`, in the order in which they come.

    Where there are several times as many as there are features at all, all of them.
    """
    if len(features) > 2 * len(seen_at):
        return np.arange(len(seen_at)).astype(np.int32)
    n = 0
    for i in range(len(features)):
        j = np.uintp(features[i])
        met[np.uintp(n)] = j  # overwritten by the next, unless new: a branch would be guessed wrong
        n += seen_at[j] != k
        seen_at[j] = k
    return met[:n]


@kernel
def leave_out(features: IntArray, n_folds: int, scratch: Scratch) -> None:
    """Write to `others` the sums of these features over all folds but each.

    They are added, not subtracted from the whole, which would leave rounding errors instead of zeros.
    """
    n = len(features)
    part = scratch.part[:n]
    scratch.others[:] = 0.0
    for row in range(2 * n_folds):
        sums, side = scratch.values[row], row - row % n_folds
        for s in range(n):
            part[s] = sums[np.uintp(features[s])]
        for other in range(side, side + n_folds):
            if other != row:
                add(part, scratch.others[other])


@kernel
def add(values: FloatArray, out: FloatArray) -> None:
    """Add values to the first of others."""
    for i in range(len(values)):
        out[i] += values[i]


@kernel
def sum_tallies(
    rule: int, alpha: FloatArray, met: IntArray, scratch: Scratch, of_side: FloatArray, out: FloatArray
) -> None:
    """Write the sum of `tally` over the features met for each fold and side."""
    n_folds = len(out)
    out[:] = 0.0
    for begin in range(0, len(met), CHUNK):
        features = met[begin : begin + CHUNK]
        leave_out(features, n_folds, scratch)
        for f in range(n_folds):
            for side in range(2):
                counts = scratch.others[side * n_folds + f]
                for s in range(len(features)):
                    out[f, side] += tally(rule, counts[s], alpha[features[s]], of_side[f, side])


@kernel
def complete(
    rule: int,
    alpha: FloatArray,
    met: IntArray,
    scratch: Scratch,
    of_side: FloatArray,
    intercept: FloatArray,
    background: FloatArray,
) -> None:
    """Add to a node's parameters what depends on all of its active features."""
    n_folds, n_features = len(intercept), len(alpha)
    tallies = np.empty((n_folds, 2))
    sum_tallies(rule, alpha, met, scratch, of_side, tallies)
    for f in range(n_folds):
        if rule == BERNOULLI:
            intercept[f] += tallies[f, 0] - tallies[f, 1]
        if rule == NORMALISED:
            unseen_left, unseen_right = of_side[f, 0] / n_features, of_side[f, 1] / n_features
            of_side[f, 0] += tallies[f, 0]
            of_side[f, 1] += tallies[f, 1]
            background[f] = unseen_right / of_side[f, 1] - unseen_left / of_side[f, 0]


@kernel
def write_weights(
    rule: int, alpha: FloatArray, left: FloatArray, right: FloatArray, of_side: FloatArray, out: FloatArray
) -> None:
    """Write how far the weights of some features are from the background, given their counts."""
    if rule != MULTINOMIAL:
        for s in range(len(out)):
            out[s] = above_background(rule, left[s], right[s], alpha[s], of_side[0], of_side[1])
        return
    for s in range(len(out)):
        out[s] = (left[s] + alpha[s]) / (right[s] + alpha[s])
    take_logs(out)


@kernel
def make_members(rule: int, alpha: FloatArray, met: IntArray, scratch: Scratch, of_side: FloatArray) -> None:
    """Replace the sums of the features met by weights."""
    n_folds, values = len(of_side), scratch.values
    for begin in range(0, len(met), CHUNK):
        features = met[begin : begin + CHUNK]
        n = len(features)
        leave_out(features, n_folds, scratch)
        own_alpha, weights = alpha[features], scratch.part[:n]
        for f in range(n_folds):
            left, right = scratch.others[f, :n], scratch.others[n_folds + f, :n]
            write_weights(rule, own_alpha, left, right, of_side[f], weights)
            for s in range(n):
                j = np.uintp(features[s])
                values[f, j], values[n_folds + f, j] = weights[s], 0.0


@kernel
def sparse_dot(data: FloatArray, indices: IntArray, weights: FloatArray) -> float:
    """The product of a sparse row with weights, in four sums that need not wait for one another.

    Not left to the compiler, which would fetch weights by vector instructions: they take longer.
    """
    a = b = c = d = 0.0
    n = len(data)
    for quarter in range(n // 4):
        e = 4 * quarter
        a += data[e] * weights[np.uintp(indices[e])]
        b += data[e + 1] * weights[np.uintp(indices[e + 1])]
        c += data[e + 2] * weights[np.uintp(indices[e + 2])]
        d += data[e + 3] * weights[np.uintp(indices[e + 3])]
    for e in range(n - n % 4, n):
        a += data[e] * weights[np.uintp(indices[e])]
    return (a + b) + (c + d)


@kernel
def score_node(
    first: int,
    last: int,
    rows: Rows,
    weights: FloatArray,
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
            row_entries = slice(rows.indptr[row], rows.indptr[row + 1])
            score = intercept[f] + background[f] * rows.total[row]
            score += sparse_dot(rows.data[row_entries], rows.indices[row_entries], weights[f])
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
        np.full(n_features, -1, np.int32),
        np.empty(n_features + 1, np.int32),
        np.zeros((2 * n_folds, n_features)),
        np.empty((2 * n_folds, CHUNK)),
        np.empty(CHUNK),
    )
    for k in range(first, last):
        add_up(start[k], split[k], 0, n_folds, counts, scratch.values)
        add_up(split[k], stop[k], n_folds, n_folds, counts, scratch.values)
        entries = slice(counts.offsets[start[k] * n_folds], counts.offsets[stop[k] * n_folds])
        met = meet(k, counts.feature[entries], scratch.seen_at, scratch.met)
        of_side = members.of_side[k].copy()
        intercept, background = members.intercept[k].copy(), members.background[k].copy()
        if rule != MULTINOMIAL:
            complete(rule, alpha, met, scratch, of_side, intercept, background)
        make_members(rule, alpha, met, scratch, of_side)
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
        for f in range(n_folds):
            for s in range(len(met)):
                scratch.values[f, np.uintp(met[s])] = 0.0
