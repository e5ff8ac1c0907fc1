"""Naive Bayes at the nodes of a tree, where each node has seen few of the features.

The weight of a feature at a node follows from its counts on the two sides. All features that a node has not
seen have the same weight there, the background; what is computed here is how far the weights of the others
are from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import take_logs

if TYPE_CHECKING:
    from dichotomies._typing import BoolArray, FloatArray, IntArray

MULTINOMIAL = 0  # also ComplementNB: the complement of one side is the other side
NORMALISED = 1  # ComplementNB(norm=True)
BERNOULLI = 2

ROUNDING = 1e-9  # a count may exceed the rows it was counted in by this part of them


@kernel
def above_background(
    rule: int, left: float, right: float, alpha: float, of_left: float, of_right: float
) -> float:
    """How far a feature's weight is from that of a feature that neither side has seen.

    Parameters
    ----------
    left, right : float
        The feature's counts.
    of_left, of_right : float
        What the rule must know of the sides: for Bernoulli their numbers of rows, for the normalised
        complement the sum of all logarithms of each; see `tally`.
    """
    if rule == MULTINOMIAL:
        return float(np.log((left + alpha) / (right + alpha)))
    if rule == NORMALISED:
        return float(np.log1p(right / alpha) / of_right - np.log1p(left / alpha) / of_left)
    absent_left, absent_right = absent(left, of_left), absent(right, of_right)
    seen = (left + alpha) / (right + alpha)
    unseen = (absent_right + alpha) / (absent_left + alpha)
    return float(np.log(seen * unseen * ((of_left + alpha) / (of_right + alpha))))


@kernel
def absent(count: float, rows: float) -> float:
    """Rows without the feature; sums of weights in another order may differ by a rounding error."""
    rest = rows - count
    return 0.0 if -ROUNDING * rows < rest < 0.0 else rest


@kernel
def tally(rule: int, count: float, alpha: float, of_side: float) -> float:
    """What an active feature adds to a side's sum over all features, beyond an inactive one.

    Of ``log P(feature)`` for the normalised complement, of ``log P(no feature)`` for Bernoulli.
    """
    if rule == NORMALISED:
        return float(np.log1p(count / alpha))
    return float(np.log((absent(count, of_side) + alpha) / (of_side + alpha)))


@kernel
def make_weights(
    rule: int,
    alpha: FloatArray,
    left: FloatArray,
    right: FloatArray,
    n_features: int,
    of_side: FloatArray,
    out: FloatArray,
) -> tuple[float, float]:
    """Write how far the weights of a node's active features are from the background, given their counts.

    Returns
    -------
    float, float
        What else to add to the intercept and to the background.
    """
    if rule == MULTINOMIAL:
        for s in range(len(out)):
            out[s] = (left[s] + alpha[s]) / (right[s] + alpha[s])
        take_logs(out)
        return 0.0, 0.0
    of_left, of_right = of_side[0], of_side[1]
    tally_left = tally_right = intercept = background = 0.0
    for s in range(len(out)):
        tally_left += tally(rule, left[s], alpha[s], of_left)
        tally_right += tally(rule, right[s], alpha[s], of_right)
    if rule == BERNOULLI:
        intercept = tally_left - tally_right
    else:
        unseen_left, unseen_right = of_left / n_features, of_right / n_features
        of_left, of_right = of_left + tally_left, of_right + tally_right
        background = unseen_right / of_right - unseen_left / of_left
    for s in range(len(out)):
        out[s] = above_background(rule, left[s], right[s], alpha[s], of_left, of_right)
    return intercept, background


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


@kernel
def add_up(
    first_leaf: int, last_leaf: int, n_folds: int, left_out: int, counts: Counts, out: FloatArray
) -> None:
    """Add the counts of some leaves, but for one fold; `out` has a row for each fold, or one for all."""
    for leaf in range(first_leaf, last_leaf):
        for fold in range(n_folds):
            if fold == left_out:
                continue
            group, sums = leaf * n_folds + fold, out[fold if len(out) > 1 else 0]
            for entry in range(counts.offsets[group], counts.offsets[group + 1]):
                # Unsigned, a feature is never taken to be counted from the end.
                sums[np.uintp(counts.feature[entry])] += counts.total[entry]


@kernel
def meet(k: int, features: Any, seen_at: Any, room: Any) -> Any:
    """The different ones among the features of node `k`, in the order in which they come.

    Where there are several times as many as there are features at all, all of them.

    Parameters
    ----------
    seen_at : (n_features,)
        The last node where each feature was met.
    room : (n_features + 1,)
        Where the answer may be written.
    """
    if len(features) > 2 * len(seen_at):
        room[:] = np.arange(len(room))
        return room[: len(seen_at)]
    n = 0
    for i in range(len(features)):
        j = np.uintp(features[i])
        room[np.uintp(n)] = j  # overwritten by the next, unless new: a branch would be guessed wrong
        n += seen_at[j] != k
        seen_at[j] = k
    return room[:n]


@kernel
def take_counts(met: IntArray, values: FloatArray, feature: IntArray, counts: FloatArray) -> int:
    """Move counts of features met from `values` (2, n_features), which become 0; return how many have any.

    Parameters
    ----------
    feature, counts : (n,), (2, n)
        Written: features, and their counts on the left and the right.
    """
    n = 0
    for s in range(len(met)):
        j = np.uintp(met[s])
        feature[n], counts[0, n], counts[1, n] = j, values[0, j], values[1, j]
        n += values[0, j] + values[1, j] > 0.0
        values[0, j] = values[1, j] = 0.0
    return n


@kernel
def node_weights(
    rule: int,
    alpha: FloatArray,
    counts: Counts,
    n_folds: int,
    left_out: int,
    of_side: FloatArray,
    is_trained: BoolArray,
    start: IntArray,
    split: IntArray,
    stop: IntArray,
    first: int,
    last: int,
    intercept: FloatArray,
    background: FloatArray,
    sizes: IntArray,
    feature: IntArray,
    value: FloatArray,
) -> int:
    """Write the active features of nodes `first` to `last`, node after node; return how many there are.

    Parameters
    ----------
    left_out : int
        A fold not to be counted, or -1.
    of_side : (n_nodes, 2)
        See `above_background`.
    intercept, background : (n_nodes,)
        Added to, where the rule asks for it.
    sizes : (n_nodes,)
        Written: the number of active features of each node.
    feature, value : (room,)
        Written: a feature, and how far its weight is from the background.
    """
    n_features = len(alpha)
    seen_at, room = np.full(n_features, -1, np.int32), np.empty(n_features + 1, np.int32)
    sums, taken = np.zeros((2, n_features)), np.empty((2, n_features + 1))
    end = 0
    for k in range(first, last):
        sizes[k] = 0
        if not is_trained[k]:
            continue
        add_up(start[k], split[k], n_folds, left_out, counts, sums[:1])
        add_up(split[k], stop[k], n_folds, left_out, counts, sums[1:])
        entries = slice(counts.offsets[start[k] * n_folds], counts.offsets[stop[k] * n_folds])
        met = meet(k, counts.feature[entries], seen_at, room)
        sizes[k] = take_counts(met, sums, feature[end:], taken)
        own = slice(end, end + sizes[k])
        sides = taken[0, : sizes[k]], taken[1, : sizes[k]]
        more = make_weights(rule, alpha[feature[own]], *sides, n_features, of_side[k], value[own])
        intercept[k] += more[0]
        background[k] += more[1]
        end += sizes[k]
    return end


@kernel
def by_feature(
    first: int,
    last: int,
    sizes: IntArray,
    feature: IntArray,
    value: FloatArray,
    cursor: IntArray,
    node: IntArray,
    node_value: FloatArray,
) -> None:
    """Sort what `node_weights` wrote for nodes `first` to `last` by feature.

    Parameters
    ----------
    cursor : (n_features,)
        Where the next node of each feature is to be written; moved on.
    node, node_value : (n_entries,)
        Written.
    """
    entry = 0
    for k in range(first, last):
        for _ in range(sizes[k]):
            j = np.uintp(feature[entry])
            place = np.uintp(cursor[j])
            node[place], node_value[place] = k, value[entry]
            cursor[j] += 1
            entry += 1
