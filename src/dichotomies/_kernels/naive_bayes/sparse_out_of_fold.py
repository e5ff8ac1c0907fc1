"""Out-of-fold scores of naive Bayes on sparse rows: every node's models are made, asked and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.naive_bayes.sparse_nodes import add_up, make_weights, meet

if TYPE_CHECKING:
    from dichotomies._kernels.naive_bayes.sparse_nodes import Counts
    from dichotomies._typing import BoolArray, FloatArray, IntArray


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


class Full(NamedTuple):
    """The nodes' models of all folds, see `sparse_nodes.node_weights`."""

    of_side: FloatArray
    is_trained: BoolArray
    intercept: FloatArray
    background: FloatArray
    sizes: IntArray
    feature: IntArray
    value: FloatArray


@kernel
def leave_out(met: IntArray, values: FloatArray, others: FloatArray) -> None:
    """Write the sums of features over all folds but each, given their sums over each fold, which become 0.

    They are added, not subtracted from the whole, which would leave rounding errors instead of zeros.

    Parameters
    ----------
    met : (n,)
        The features.
    values : (n_folds, n_features)
        Sums over each fold.
    others : (n_folds, n)
        Written.
    """
    part = np.empty(len(met))
    for fold in range(len(values)):
        others[fold, : len(met)] = 0.0
    for fold in range(len(values)):
        sums = values[fold]
        for s in range(len(met)):
            j = np.uintp(met[s])
            part[s] = sums[j]
            sums[j] = 0.0
        for other in range(len(values)):
            if other != fold:
                add(part, others[other])


@kernel
def add(values: FloatArray, out: FloatArray) -> None:
    """Add values to the first of others."""
    for i in range(len(values)):
        out[i] += values[i]


@kernel
def total_counts(
    met: IntArray, left: FloatArray, right: FloatArray, feature: IntArray, counts: FloatArray
) -> int:
    """From sums over all folds but each, those over all; see `sparse_nodes.take_counts`."""
    n, times = 0, len(left) - 1
    in_left, in_right = np.zeros(len(met)), np.zeros(len(met))
    for fold in range(len(left)):
        add(left[fold, : len(met)], in_left)
        add(right[fold, : len(met)], in_right)
    for s in range(len(met)):
        feature[n], counts[0, n], counts[1, n] = met[s], in_left[s] / times, in_right[s] / times
        n += in_left[s] + in_right[s] > 0.0
    return n


@kernel
def put(met: IntArray, values: FloatArray, out: FloatArray) -> None:
    """Write the values of features to where they belong."""
    for s in range(len(met)):
        out[np.uintp(met[s])] = values[s]


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
    full: Full,
    start: IntArray,
    split: IntArray,
    stop: IntArray,
    first: int,
    last: int,
    pair_offsets: IntArray,
    out: FloatArray,
) -> int:
    """Score the rows of nodes `first` to `last` by models that have not seen their fold.

    On the way, write the active features of the models of all folds, unless there is no room for them;
    return how many there are.

    Parameters
    ----------
    alpha : (n_features,)
    start, split, stop : (n_nodes,)
        Ranges of leaves.
    out : (n_pairs,)
        Written from ``pair_offsets[first]`` to ``pair_offsets[last]``.
    """
    n_features, n_folds = len(alpha), members.intercept.shape[1]
    seen_at, room = np.full(n_features, -1, np.int32), np.empty(n_features + 1, np.int32)
    # Sums over the left side in each fold and over the right; later weights take the place of the left.
    left, right = np.zeros((n_folds, n_features)), np.zeros((n_folds, n_features))
    other_left, other_right = np.empty((n_folds, n_features)), np.empty((n_folds, n_features))
    room_for_weights, taken = np.empty(n_features), np.empty((2, n_features + 1))
    end = 0
    for k in range(first, last):
        add_up(start[k], split[k], n_folds, -1, counts, left)
        add_up(split[k], stop[k], n_folds, -1, counts, right)
        entries = slice(counts.offsets[start[k] * n_folds], counts.offsets[stop[k] * n_folds])
        met = meet(k, counts.feature[entries], seen_at, room)
        own_alpha, weights = alpha[met], room_for_weights[: len(met)]
        leave_out(met, left, other_left)
        leave_out(met, right, other_right)
        full.sizes[k] = 0
        if full.is_trained[k] and len(full.feature) > 0:
            n = total_counts(met, other_left, other_right, full.feature[end:], taken)
            full.sizes[k], entry = n, slice(end, end + n)
            sides = taken[0, :n], taken[1, :n]
            own = alpha[full.feature[entry]]
            more = make_weights(rule, own, *sides, n_features, full.of_side[k], full.value[entry])
            full.intercept[k] += more[0]
            full.background[k] += more[1]
            end += n
        intercept, background = members.intercept[k].copy(), members.background[k].copy()
        for f in range(n_folds):
            others = other_left[f, : len(met)], other_right[f, : len(met)]
            more = make_weights(rule, own_alpha, *others, n_features, members.of_side[k, f], weights)
            intercept[f] += more[0]
            background[f] += more[1]
            put(met, weights, left[f])
        score_node(
            rows.leaf_offset[start[k]],
            rows.leaf_offset[stop[k]],
            rows,
            left,
            intercept,
            background,
            members.is_trained[k],
            out[pair_offsets[k] : pair_offsets[k + 1]],
        )
        weights[:] = 0.0
        for f in range(n_folds):
            put(met, weights, left[f])
    return end
