"""Naive Bayes at the nodes of a tree, where each node has seen few of the features.

The weight of a feature at a node follows from its counts on the two sides. All features that a node has not
seen have the same weight there, the background; what is computed here is how far the weights of the others
are from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
def count_entries(
    feature_offsets: IntArray,
    leaf: IntArray,
    leaf_depth: IntArray,
    shallowest: IntArray,
    first: int,
    last: int,
    out: IntArray,
) -> None:
    """Write at how many nodes each feature is active: all nodes above the leaves that have it.

    A leaf adds the nodes above it that are not above the leaf before: as many as it is deep, less those
    down to where the two part.

    Parameters
    ----------
    shallowest : (n_levels, n_nodes)
        ``shallowest[p, i]`` is the least depth of the splits behind the leaves ``i`` to ``i + 2**p - 1``.
    """
    for j in range(first, last):
        total = 0
        for e in range(feature_offsets[j], feature_offsets[j + 1]):
            now = leaf[e]
            shared = 0
            if e > feature_offsets[j]:
                before = leaf[e - 1]
                if before == now:
                    continue
                power = 0
                while 2 << power <= now - before:
                    power += 1
                shared = 1 + min(shallowest[power, before], shallowest[power, now - (1 << power)])
            total += leaf_depth[now] - shared
        out[j] = total


@kernel
def enqueue(queue: IntArray, waiting: int, child: int, begin: int, end: int) -> int:
    """Let a child wait, unless it is a leaf or has nothing of the feature; return how many wait.

    What shall not wait is written too, and overwritten by the next: a branch would be guessed wrong.
    """
    queue[waiting, 0], queue[waiting, 1], queue[waiting, 2] = child, begin, end
    return waiting + ((child >= 0) & (begin < end))


@kernel
def divide(
    begin: int, end: int, split: int, leaf: IntArray, leaf_count: FloatArray
) -> tuple[int, float, float]:
    """Where the right side begins among ascending leaves, and the counts of either side."""
    in_left = in_right = 0.0
    middle = begin
    for e in range(begin, end):
        is_left = leaf[e] < split
        middle += is_left
        in_left += leaf_count[e] if is_left else 0.0
        in_right += 0.0 if is_left else leaf_count[e]
    return middle, in_left, in_right


@kernel
def walk(
    rule: int,
    alpha: FloatArray,
    of_side: FloatArray,
    feature_offsets: IntArray,
    leaf: IntArray,
    leaf_count: FloatArray,
    left: IntArray,
    right: IntArray,
    split: IntArray,
    is_trained: BoolArray,
    first: int,
    last: int,
    tallies: FloatArray,
    entry_offsets: IntArray,
    node: IntArray,
    value: FloatArray,
) -> None:
    """Walk each feature down the nodes where it is active, level by level, and write its entries.

    The entries of a feature are the queue of its walk: node numbers, each with the range of the feature's
    leaves below that node. Nodes are numbered level by level, so the entries ascend.

    Parameters
    ----------
    of_side : (n_nodes, 2)
        See `above_background`.
    leaf, leaf_count : (n_active,)
        The leaves that have a feature, ascending, and its counts there; `feature_offsets` says where
        each feature's begin.
    tallies : (n_nodes, 2)
        `tally` is added to it, for rules that need it.
    entry_offsets : (n_features + 1,)
        Where each feature's entries begin, as `count_entries` found.
    node, value : (n_entries,)
        Written; if `node` is empty, only the tallies are.
    """
    longest = 0
    for j in range(first, last):
        longest = max(longest, entry_offsets[j + 1] - entry_offsets[j])
    queue = np.empty((longest + 1, 3), np.int64)
    for j in range(first, last):
        waiting = enqueue(queue, 0, 0, feature_offsets[j], feature_offsets[j + 1])
        done = 0
        while done < waiting:
            k, begin, end = np.uintp(queue[done, 0]), queue[done, 1], queue[done, 2]
            middle, in_left, in_right = divide(begin, end, split[k], leaf, leaf_count)
            waiting = enqueue(queue, waiting, left[k], begin, middle)
            waiting = enqueue(queue, waiting, right[k], middle, end)
            if rule != MULTINOMIAL:
                tallies[k, 0] += tally(rule, in_left, alpha[j], of_side[k, 0])
                tallies[k, 1] += tally(rule, in_right, alpha[j], of_side[k, 1])
            if len(node) > 0:
                place = entry_offsets[j] + done
                node[place] = k
                value[place] = unlogged(rule, in_left, in_right, alpha[j], of_side[k], is_trained[k])
            done += 1
    if rule == MULTINOMIAL:
        take_logs(value[entry_offsets[first] : entry_offsets[last]])


@kernel
def unlogged(
    rule: int, left: float, right: float, alpha: float, of_side: FloatArray, is_trained: bool
) -> float:
    """`above_background` of a trained node, but for the logarithm of MULTINOMIAL, and 0 of others."""
    if rule == MULTINOMIAL:
        return (left + alpha) / (right + alpha) if is_trained else 1.0
    return above_background(rule, left, right, alpha, of_side[0], of_side[1]) if is_trained else 0.0
