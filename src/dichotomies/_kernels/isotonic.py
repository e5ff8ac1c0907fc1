"""Isotonic regression of all segments by pooling adjacent violators."""

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.score_maps import Knots
from dichotomies._kernels.segment_isotonic import pool_segments
from dichotomies._kernels.segments import SegmentArrays


@kernel
def pool_ties(
    scores: FloatArray, targets: BoolArray, weights: FloatArray, order: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distinct scores in increasing order, with the weight of either side (positive, negative) at each.

    `order` holds the indices of the scores by increasing score.
    """
    distinct = np.empty(len(order))
    positive, negative = np.empty(len(order)), np.empty(len(order))
    n = 0
    for i in order:
        if weights[i] <= 0.0:
            continue
        above = weights[i] if targets[i] else 0.0
        below = weights[i] - above
        if n > 0 and scores[i] == distinct[n - 1]:
            positive[n - 1] += above
            negative[n - 1] += below
        else:
            distinct[n], positive[n], negative[n] = scores[i], above, below
            n += 1
    return distinct[:n], positive[:n], negative[:n]


@pool_ties.plainly
def _pool_ties(
    scores: FloatArray, targets: BoolArray, weights: FloatArray, order: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    order = order[weights[order] > 0.0]
    distinct, place = np.unique(scores[order], return_inverse=True)
    weight, is_positive = weights[order], targets[order]
    n = len(distinct)
    sides = np.where(is_positive, weight, 0.0), np.where(is_positive, 0.0, weight)
    positive, negative = (np.bincount(place, side, n).astype(np.float64) for side in sides)
    return distinct, positive, negative


@kernel
def pool_violators(positive: FloatArray, negative: FloatArray, last: IntArray) -> int:
    """Merge neighbours until the share of `positive` increases strictly; return the number of blocks.

    Block j's weights are written to the j-th place of `positive` and `negative`, the index of the last
    score in it to that of `last`.
    """
    n_blocks = 0
    for i in range(len(positive)):
        above, below = positive[i], negative[i]
        # shares compared without a division: P / (P + N) < a / (a + b) where P b < a N
        while n_blocks > 0 and positive[n_blocks - 1] * below >= above * negative[n_blocks - 1]:
            n_blocks -= 1
            above += positive[n_blocks]
            below += negative[n_blocks]
        positive[n_blocks], negative[n_blocks], last[n_blocks] = above, below, i
        n_blocks += 1
    return n_blocks


@kernel
def block_probabilities(positive: FloatArray, negative: FloatArray) -> FloatArray:
    """The share of `positive` in each block, kept away from 0 and 1.

    A block of weight n that would answer 0 answers ``1 / (n + 2)``, or its neighbour's share if that is
    less; a block that would answer 1 answers ``(n + 1) / (n + 2)``, or its neighbour's if that is more.
    """
    share = positive / (positive + negative)
    p = share.copy()
    last = len(p) - 1
    if positive[0] == 0.0:
        p[0] = 1.0 / (negative[0] + 2.0)
        if last > 0:
            p[0] = min(p[0], share[1])
    if negative[last] == 0.0:
        p[last] = (positive[last] + 1.0) / (positive[last] + 2.0)
        if last > 0:
            p[last] = max(p[last], share[last - 1])
    return p


@kernel
def fit_isotonic(segments: SegmentArrays, order: IntArray, knots: Knots) -> None:
    """Write the first and the last score of every block with its probability, segment after segment.

    There are at most as many knots as scores.
    """
    scores, targets, weights, offsets = segments
    knot_offsets, knot_scores, knot_values = knots
    knot_offsets[0] = end = 0
    for k in range(len(offsets) - 1):
        rows = slice(offsets[k], offsets[k + 1])
        distinct, positive, negative = pool_ties(scores, targets, weights, order[rows])
        if len(distinct) > 0:
            last = np.empty(len(distinct), np.intp)
            n_blocks = pool_violators(positive, negative, last)
            p = block_probabilities(positive[:n_blocks], negative[:n_blocks])
            first = 0
            for j in range(n_blocks):
                knot_scores[end], knot_values[end] = distinct[first], p[j]
                end += 1
                if last[j] > first:
                    knot_scores[end], knot_values[end] = distinct[last[j]], p[j]
                    end += 1
                first = last[j] + 1
        knot_offsets[k + 1] = end


@fit_isotonic.plainly
def _fit_isotonic(segments: SegmentArrays, order: IntArray, knots: Knots) -> None:
    blocks = pool_segments(*segments, order)
    first, last = blocks.first, blocks.last
    n_knots = np.where(last > first, 2, 1)
    end = np.concatenate([[0], np.cumsum(n_knots)])
    knots.offsets[:] = end[blocks.offsets]
    knots.scores[end[1:] - 1] = blocks.distinct[last]
    knots.scores[end[:-1]] = blocks.distinct[first]
    knots.values[: end[-1]] = np.repeat(blocks.probabilities(), n_knots)
