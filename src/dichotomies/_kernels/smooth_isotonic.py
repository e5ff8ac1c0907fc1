"""Isotonic regression of all segments, smoothed by cubics that increase."""

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels import segment_isotonic
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.isotonic import block_probabilities, pool_ties, pool_violators
from dichotomies._kernels.score_maps import Knots
from dichotomies._kernels.segments import SegmentArrays

#: Bound on derivatives, which matters between scores that differ by less than about 1e-300.
STEEPEST = 1e300


@kernel
def block_centres(distinct: FloatArray, weight: FloatArray, last: IntArray) -> FloatArray:
    """Log-odds of the mean probability in each block; `last` has the index of each block's last score."""
    centres = np.empty(len(last))
    first = 0
    for j in range(len(last)):
        above = below = 0.0
        for i in range(first, last[j] + 1):
            tail = np.exp(-abs(distinct[i]))
            likelier, other = weight[i] / (1.0 + tail), weight[i] * tail / (1.0 + tail)
            above += likelier if distinct[i] > 0.0 else other
            below += other if distinct[i] > 0.0 else likelier
        centre = np.log(above) - np.log(below)
        centres[j] = min(max(centre, distinct[first]), distinct[last[j]])
        first = last[j] + 1
    return centres


@kernel
def end_derivative(width: float, next_width: float, slope: float, next_slope: float) -> float:
    """Derivative at an end from the slopes of the two nearest pieces, so that no extremum appears."""
    derivative = ((2.0 * width + next_width) * slope - width * next_slope) / (width + next_width)
    return min(max(derivative, 0.0), 3.0 * slope, STEEPEST)


@kernel
def monotone_derivatives(x: FloatArray, y: FloatArray) -> FloatArray:
    """Derivatives of the increasing cubic interpolant of increasing values (Fritsch & Butland 1984)."""
    n = len(x)
    derivatives = np.zeros(n)
    if n == 2:
        derivatives[:] = min((y[1] - y[0]) / (x[1] - x[0]), STEEPEST)
    if n <= 2:
        return derivatives
    for i in range(1, n - 1):
        before, after = x[i] - x[i - 1], x[i + 1] - x[i]
        slope, next_slope = (y[i] - y[i - 1]) / before, (y[i + 1] - y[i]) / after
        if slope > 0.0 and next_slope > 0.0:  # a weighted harmonic mean
            near, far = 2.0 * after + before, after + 2.0 * before
            derivatives[i] = min((near + far) / (near / slope + far / next_slope), STEEPEST)
    for end, step in ((0, 1), (n - 1, -1)):
        one, two = end + step, end + 2 * step
        width, next_width = abs(x[one] - x[end]), abs(x[two] - x[one])
        slope, next_slope = abs(y[one] - y[end]) / width, abs(y[two] - y[one]) / next_width
        derivatives[end] = end_derivative(width, next_width, slope, next_slope)
    return derivatives


@kernel
def fit_smooth_isotonic(segments: SegmentArrays, order: IntArray, knots: Knots) -> None:
    """Write the centre of every block twice, with its probability and the derivative there.

    There are at most twice as many knots as scores.
    """
    scores, targets, weights, offsets = segments
    knot_offsets, knot_scores, knot_values = knots
    knot_offsets[0] = end = 0
    for k in range(len(offsets) - 1):
        rows = slice(offsets[k], offsets[k + 1])
        distinct, positive, negative = pool_ties(scores, targets, weights, order[rows])
        if len(distinct) > 0:
            weight, last = positive + negative, np.empty(len(distinct), np.intp)
            n_blocks = pool_violators(positive, negative, last)
            centres = block_centres(distinct, weight, last[:n_blocks])
            p = block_probabilities(positive[:n_blocks], negative[:n_blocks])
            derivatives = monotone_derivatives(centres, p)
            for j in range(n_blocks):
                knot_scores[end] = knot_scores[end + 1] = centres[j]
                knot_values[end], knot_values[end + 1] = p[j], derivatives[j]
                end += 2
        knot_offsets[k + 1] = end


@fit_smooth_isotonic.plainly
def _fit_smooth_isotonic(segments: SegmentArrays, order: IntArray, knots: Knots) -> None:
    blocks = segment_isotonic.pool_segments(*segments, order)
    centres, p = segment_isotonic.block_centres(blocks), blocks.probabilities()
    derivatives = segment_isotonic.monotone_derivatives(centres, p, blocks, STEEPEST)
    knots.offsets[:] = 2 * blocks.offsets
    knots.scores[: 2 * len(p)] = np.repeat(centres, 2)
    knots.values[: 2 * len(p)] = np.stack([p, derivatives], axis=1).ravel()
