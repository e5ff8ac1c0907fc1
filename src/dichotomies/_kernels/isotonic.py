"""Isotonic regression of all segments together, and what smooths it; in plain numpy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.score_maps import Knots
from dichotomies._kernels.segments import SegmentArrays

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
