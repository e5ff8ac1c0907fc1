"""Isotonic regression of all segments together, and what smooths it; in plain numpy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.score_maps import Knots


class SegmentArrays(NamedTuple):
    """Rows of m segments, one after the other.

    Attributes
    ----------
    scores, targets, weights : (n,)
    offsets : (m + 1,)
        Start of each segment, and the end.
    """

    scores: FloatArray
    targets: BoolArray
    weights: FloatArray
    offsets: IntArray


@kernel
def deal_folds(
    targets: BoolArray, weights: FloatArray, offsets: IntArray, n_folds: int, out: IntArray
) -> None:
    """Write a fold for every row: each side of each segment is dealt evenly, in a shuffled order.

    Every run of `n_folds` rows of one side goes to all folds, in an order drawn by a generator
    that starts anew with each segment, so that a segment's folds do not depend on its neighbours.
    Rows without weight take no part.
    """
    decks = np.empty((2, n_folds), np.intp)
    dealt = np.empty(2, np.intp)
    for k in range(len(offsets) - 1):
        for j in range(n_folds):
            decks[0, j], decks[1, j] = j, n_folds - 1 - j
        dealt[0] = dealt[1] = n_folds
        state = np.uint64(0x9E3779B97F4A7C15)
        for i in range(offsets[k], offsets[k + 1]):
            if weights[i] <= 0.0:
                out[i] = 0
                continue
            side = 1 if targets[i] else 0
            if dealt[side] == n_folds:
                state = shuffle(decks[side], state)
                dealt[side] = 0
            out[i] = decks[side, dealt[side]]
            dealt[side] += 1


@kernel
def shuffle(deck: IntArray, state: np.uint64) -> np.uint64:
    """Shuffle in place by a 64-bit xorshift generator; return its next state."""
    for j in range(len(deck) - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        other = np.intp((state >> np.uint64(33)) % np.uint64(j + 1))
        deck[j], deck[other] = deck[other], deck[j]
    return state


#: Bound on derivatives, which matters between scores that differ by less than about 1e-300.
STEEPEST = 1e300


class Ties(NamedTuple):
    """Distinct scores of all segments, increasing in each.

    Attributes
    ----------
    scores, positive, negative : (n_distinct,)
        The score and the weight of either side; not both are 0.
    segment : (n_distinct,)
    offsets : (m + 1,)
        Start of each segment, and the end.
    """

    scores: FloatArray
    positive: FloatArray
    negative: FloatArray
    segment: IntArray
    offsets: IntArray


def pool_ties(segments: SegmentArrays, order: IntArray) -> Ties:
    """Pool equal scores of a segment; `order` sorts the scores within each."""
    scores, targets, weights, offsets = segments
    order = order[weights[order] > 0.0]
    m = len(offsets) - 1
    segment = np.repeat(np.arange(m), np.diff(offsets))[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (np.diff(scores[order]) != 0.0) | (np.diff(segment) != 0)
    first = np.flatnonzero(is_new)
    side = np.where(targets[order], weights[order], 0.0)
    positive, negative = _sums(side, first), _sums(weights[order] - side, first)
    segment = segment[first]
    return Ties(scores[order][first], positive, negative, segment, np.searchsorted(segment, np.arange(m + 1)))


class Blocks(NamedTuple):
    """Distinct scores of all segments, and the blocks of isotonic regression, segment after segment.

    Attributes
    ----------
    distinct, weight : (n_distinct,)
        Scores, increasing in each segment, and their weights.
    first : (n_blocks,)
        Index of the first distinct score of each block.
    positive, negative : (n_blocks,)
        Weight of either side.
    offsets : (m + 1,)
        Blocks of each segment.
    """

    distinct: FloatArray
    weight: FloatArray
    first: IntArray
    positive: FloatArray
    negative: FloatArray
    offsets: IntArray

    @property
    def last(self) -> IntArray:
        """Index of the last distinct score of each block."""
        return np.append(self.first, len(self.distinct))[1:] - 1

    @property
    def is_end(self) -> tuple[BoolArray, BoolArray]:
        """Masks of the blocks that are the first, and the last, of their segment."""
        begins, ends = np.zeros((2, len(self.first)), dtype=bool)
        some = np.diff(self.offsets) > 0
        begins[self.offsets[:-1][some]] = True
        ends[self.offsets[1:][some] - 1] = True
        return begins, ends

    def probabilities(self) -> FloatArray:
        """The share of the positive side in each block, kept away from 0 and 1.

        A block of weight n that would answer 0 answers ``1 / (n + 2)``, or its neighbour's share if that is
        less; a block that would answer 1 answers ``(n + 1) / (n + 2)``, or its neighbour's if that is more.
        """
        share = self.positive / (self.positive + self.negative)
        begins, ends = self.is_end
        before, after = np.append(0.0, share[:-1]), np.append(share[1:], 1.0)
        low = np.minimum(1.0 / (self.negative + 2.0), np.where(ends, 1.0, after))
        high = np.maximum((self.positive + 1.0) / (self.positive + 2.0), np.where(begins, 0.0, before))
        p = np.where(begins & (self.positive == 0.0), low, share)
        return np.where(ends & (self.negative == 0.0), high, p)


def pool_violators(ties: Ties) -> Blocks:
    """Merge neighbours, in all segments at once, until the share of the positive side increases strictly.

    In every pass each run of violators is merged into one block, which isotonic regression does sooner or
    later in whichever order it goes.
    """
    distinct, positive, negative, segment, _ = ties
    weight, first = positive + negative, np.arange(len(distinct))
    while len(first):
        # shares compared without a division: P / (P + N) >= p / (p + n) where P n >= p N
        violates = (positive[:-1] * negative[1:] >= positive[1:] * negative[:-1]) & (
            segment[:-1] == segment[1:]
        )
        if not violates.any():
            break
        kept = np.flatnonzero(np.append(True, ~violates))
        positive, negative = _sums(positive, kept), _sums(negative, kept)
        first, segment = first[kept], segment[kept]
    offsets = np.searchsorted(segment, np.arange(len(ties.offsets)))
    return Blocks(distinct, weight, first, positive, negative, offsets)


def _sums(values: FloatArray, first: IntArray) -> FloatArray:
    return np.asarray(np.add.reduceat(values, first)) if len(first) else np.empty(0)


def block_centres(blocks: Blocks) -> FloatArray:
    """Log-odds of the mean probability in each block."""
    tail = np.exp(-np.abs(blocks.distinct))
    likelier, other = blocks.weight / (1.0 + tail), blocks.weight * tail / (1.0 + tail)
    is_high = blocks.distinct > 0.0
    above = _sums(np.where(is_high, likelier, other), blocks.first)
    below = _sums(np.where(is_high, other, likelier), blocks.first)
    lowest, highest = blocks.distinct[blocks.first], blocks.distinct[blocks.last]
    return np.asarray(np.minimum(np.maximum(np.log(above) - np.log(below), lowest), highest))


def monotone_derivatives(x: FloatArray, y: FloatArray, blocks: Blocks) -> FloatArray:
    """Derivatives of the increasing cubic interpolants of increasing values (Fritsch & Butland 1984).

    At an end they follow from the slopes of the two nearest pieces, so that no extremum appears.
    """
    begins, ends = blocks.is_end
    width = np.diff(x, prepend=np.nan, append=np.nan)
    slope = np.diff(y, prepend=np.nan, append=np.nan) / width
    (before, after), (left, right) = (width[:-1], width[1:]), (slope[:-1], slope[1:])
    near, far = 2.0 * after + before, after + 2.0 * before
    rises = (left > 0.0) & (right > 0.0)
    inner = np.where(rises, np.minimum((near + far) / (near / left + far / right), STEEPEST), 0.0)
    derivatives = np.where(begins | ends, 0.0, inner)
    sizes = np.diff(blocks.offsets)
    starts, stops = blocks.offsets[:-1], blocks.offsets[1:] - 1
    two = starts[sizes == 2]
    derivatives[two] = derivatives[two + 1] = np.minimum(right[two], STEEPEST)
    for end, step in ((starts[sizes > 2], 1), (stops[sizes > 2], -1)):
        one = np.minimum(end, end + step) + 1  # index in `width` of the piece next to the end
        h, h_next, s, s_next = width[one], width[one + step], slope[one], slope[one + step]
        derivative = ((2.0 * h + h_next) * s - h * s_next) / (h + h_next)
        derivatives[end] = np.minimum(np.minimum(np.maximum(derivative, 0.0), 3.0 * s), STEEPEST)
    return derivatives


@np.errstate(all="ignore")  # extreme scores
def fit_isotonic(segments: SegmentArrays, order: IntArray) -> Knots:
    """The first and the last score of every block with its probability."""
    blocks = pool_violators(pool_ties(segments, order))
    first, last = blocks.first, blocks.last
    n_knots = np.where(last > first, 2, 1)
    end = np.concatenate([[0], np.cumsum(n_knots)])
    scores = np.empty(end[-1])
    scores[end[1:] - 1], scores[end[:-1]] = blocks.distinct[last], blocks.distinct[first]
    return Knots(end[blocks.offsets], scores, np.repeat(blocks.probabilities(), n_knots))


@np.errstate(all="ignore")  # extreme scores
def fit_smooth_isotonic(segments: SegmentArrays, order: IntArray) -> Knots:
    """The centre of every block twice, with its probability and the derivative there."""
    blocks = pool_violators(pool_ties(segments, order))
    centres, p = block_centres(blocks), blocks.probabilities()
    derivatives = monotone_derivatives(centres, p, blocks)
    return Knots(2 * blocks.offsets, np.repeat(centres, 2), np.stack([p, derivatives], axis=1).ravel())


@kernel
def turns_left(x: FloatArray, y: FloatArray, i: int, j: int, k: int) -> bool:
    """Return True if the path over points i, j, k turns left: j is a vertex of the lower convex hull."""
    return bool((x[j] - x[i]) * (y[k] - y[i]) > (x[k] - x[i]) * (y[j] - y[i]))


@kernel
def isotonic_with_added_positive(positive: FloatArray, negative: FloatArray) -> FloatArray:
    """Compute isotonic regression at each distinct score with one positive row added there.

    The value is the slope of the greatest convex minorant of the cumulative sums at the step of the added
    row. That step begins before all others, at points 0 and 1, and moves to the right past one score after
    another; a stack holds the corners of the minorant to its right, the leftmost on top (Vovk, Petej &
    Fedorova 2015, algorithms 1 and 2).
    """
    n = len(positive)
    x, y = np.zeros(n + 2), np.zeros(n + 2)
    x[0] = y[0] = -1.0
    for i in range(n):
        x[i + 2], y[i + 2] = x[i + 1] + positive[i] + negative[i], y[i + 1] + positive[i]
    corners = np.empty(n + 2, np.intp)
    size = 0
    for i in range(n + 1, -1, -1):
        if i == 1:
            continue
        size = push_corner(corners, size, x, y, i)
    values = np.empty(n)
    for i in range(n):
        top, below = corners[size - 1], corners[size - 2]
        values[i] = (y[below] - y[top]) / (x[below] - x[top])
        x[i + 1], y[i + 1] = x[i] + x[i + 2] - x[i + 1], y[i] + y[i + 2] - y[i + 1]
        if i + 1 < n and turns_left(x, y, top, i + 1, below):
            size = push_corner(corners, size - 1, x, y, i + 1)
    return values


@kernel
def push_corner(corners: IntArray, size: int, x: FloatArray, y: FloatArray, point: int) -> int:
    """Push a point that lies left of all corners, after popping those it hides; return the new size."""
    while size > 1 and not turns_left(x, y, point, corners[size - 1], corners[size - 2]):
        size -= 1
    corners[size] = point
    return size + 1


@kernel
def fit_venn_abers(ties: Ties, knots: Knots) -> None:
    """Write the steps of ``p1 / (1 - p0 + p1)``, segment after segment.

    `p1` and `p0` are the values of isotonic regression at a score that has been added as a positive or as a
    negative row. Between two distinct scores, `p1` is that of the score above (1 above all) and `p0` that of
    the score below (0 below all). A segment of n scores has up to ``2 n + 1`` steps.
    """
    knot_offsets, knot_scores, knot_values = knots
    knot_offsets[0] = end = 0
    for k in range(len(ties.offsets) - 1):
        begin, stop = ties.offsets[k], ties.offsets[k + 1]
        distinct, positive, negative = (
            ties.scores[begin:stop],
            ties.positive[begin:stop],
            ties.negative[begin:stop],
        )
        n = len(distinct)
        if n > 0:
            p1 = isotonic_with_added_positive(positive, negative)
            p0 = 1.0 - isotonic_with_added_positive(negative[::-1].copy(), positive[::-1].copy())[::-1]
            knot_scores[end], knot_values[end] = -np.finfo(np.float64).max, p1[0] / (1.0 + p1[0])
            end += 1
            for i in range(n):
                above = p1[i + 1] if i + 1 < n else 1.0
                knot_scores[end], knot_scores[end + 1] = distinct[i], np.nextafter(distinct[i], np.inf)
                knot_values[end] = p1[i] / (1.0 - p0[i] + p1[i])
                knot_values[end + 1] = above / (1.0 - p0[i] + above)
                end += 2
        knot_offsets[k + 1] = end
