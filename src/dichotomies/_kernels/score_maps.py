"""Applying many maps from score to log-odds."""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel

AFFINE, BETA, LINEAR, STEPS, CUBIC, LINES, QUADRATIC = range(7)
ROWS_AT_A_TIME = 64
#: Scores beyond are read as this, so that squares and differences of scores are finite.
FARTHEST = 1e100
LARGEST = np.finfo(np.float64).max


class Knots(NamedTuple):
    """Knots of the maps of m segments, written by kernels.

    Attributes
    ----------
    offsets : (m + 1,)
        Start of each map's knots, and the end, behind which there may be unused room.
    scores, values : (room,)
    """

    offsets: IntArray
    scores: FloatArray
    values: FloatArray

    @classmethod
    def empty(cls, n_segments: int, room: int) -> Self:
        """Make room for knots."""
        return cls(np.empty(n_segments + 1, np.intp), np.empty(room), np.empty(room))


@kernel
def softplus(z: float) -> float:
    """``log(1 + exp(z))`` without overflow."""
    return float(max(z, 0.0) + np.log1p(np.exp(-abs(z))))


@kernel
def last_at_or_below(knots: FloatArray, score: float) -> int:
    """Index of the last knot that is <= score; 0 if there is none."""
    start, n = 0, len(knots)
    while n > 1:  # without a branch that depends on the data: those cost more than the comparisons
        half = n >> 1
        start = start + half if knots[start + half] <= score else start
        n -= half
    return start


@kernel
def apply_knots(scores: FloatArray, steps: bool, knots: FloatArray, probabilities: FloatArray) -> None:
    """Replace scores by log-odds of the probabilities at the knots, interpolated unless they are steps."""
    for i in range(len(scores)):
        j = last_at_or_below(knots, scores[i])
        p = probabilities[j]
        if not steps and j < len(knots) - 1:
            part = max(scores[i] - knots[j], 0.0) / (knots[j + 1] - knots[j])
            p += part * (probabilities[j + 1] - p)
        scores[i] = p / (1.0 - p)
    for i in range(len(scores)):
        scores[i] = np.log(scores[i])


@apply_knots.plainly
def _apply_knots(scores: FloatArray, steps: bool, knots: FloatArray, probabilities: FloatArray) -> None:
    place = np.maximum(np.searchsorted(knots, scores, side="right") - 1, 0)
    p = probabilities[place]
    if not steps:
        after = np.minimum(place + 1, len(knots) - 1)
        width = np.where(after > place, knots[after] - knots[place], 1.0)
        p = p + np.maximum(scores - knots[place], 0.0) / width * (after > place) * (probabilities[after] - p)
    scores[:] = np.log(p / (1.0 - p))


@kernel
def apply_pairs(scores: FloatArray, kind: int, knots: FloatArray, values: FloatArray) -> None:
    """Replace scores by log-odds, by cubic or straight pieces; every knot is there twice, with two values.

    Of a cubic knot these are the probability and its derivative, of a line its slope and intercept.
    """
    last = len(knots) - 1
    for i in range(len(scores)):
        j = max(last_at_or_below(knots, scores[i]), 1)
        if kind == LINES:
            scores[i] = values[j - 1] * scores[i] + values[j]
            continue
        p = values[j - 1]
        if j < last and scores[i] > knots[j]:
            width = knots[j + 1] - knots[j]
            t = (scores[i] - knots[j]) / width
            p = hermite(t, p, values[j + 1], width * values[j], width * values[j + 2])
        scores[i] = np.log(p / (1.0 - p))


@apply_pairs.plainly
def _apply_pairs(scores: FloatArray, kind: int, knots: FloatArray, values: FloatArray) -> None:
    j = np.maximum(np.searchsorted(knots, scores, side="right") - 1, 1)
    if kind == LINES:
        scores[:] = values[j - 1] * scores + values[j]
    else:
        _apply_cubics(scores, j, np.minimum(j + 1, len(knots) - 2), knots, values)


def _apply_cubics(
    scores: FloatArray, j: IntArray, after: IntArray, knots: FloatArray, values: FloatArray
) -> None:
    """Replace scores by log-odds, by the cubics between the knots `j` and `after`."""
    width = knots[after] - knots[j]
    t = np.where(width > 0.0, np.maximum(scores - knots[j], 0.0) / np.where(width > 0.0, width, 1.0), 0.0)
    rest, start, end = 1.0 - t, values[j - 1], values[after]
    inner = t * rest * width * (rest * values[j] - t * values[after + 1])
    p = np.clip(start + t * t * (3.0 - 2.0 * t) * (end - start) + inner, start, end)
    scores[:] = np.log(p / (1.0 - p))


@kernel
def hermite(t: float, start: float, end: float, slope: float, end_slope: float) -> float:
    """Value at t of the cubic with these values and slopes at 0 and at 1, which does not decrease."""
    rest = 1.0 - t
    value = start + t * t * (3.0 - 2.0 * t) * (end - start) + t * rest * (rest * slope - t * end_slope)
    return min(max(value, start), end)


@kernel
def share_of_range(score: float, low: float, high: float) -> float:
    """Position of a score in a range: 0 at its lower end and 1 at the upper; 0 if the range is empty."""
    return min(max((score - low) / (high - low), -FARTHEST), FARTHEST) if high > low else 0.0


@kernel
def apply_quadratic(scores: FloatArray, ends: FloatArray, a: float, b: float, c: float) -> None:
    """Replace scores by ``b t^2 / 2 - a (1 - t)^2 / 2 + c``, continued along the tangents at both ends."""
    for i in range(len(scores)):
        t = share_of_range(scores[i], ends[0], ends[1])
        inner = min(max(t, 0.0), 1.0)
        beyond = a * min(t, 0.0) + b * max(t - 1.0, 0.0)
        scores[i] = 0.5 * (b * inner * inner - a * (1.0 - inner) ** 2) + c + beyond


@apply_quadratic.plainly
def _apply_quadratic(scores: FloatArray, ends: FloatArray, a: float, b: float, c: float) -> None:
    low, high = ends
    t = np.clip((scores - low) / (high - low), -FARTHEST, FARTHEST) if high > low else np.zeros(len(scores))
    inner = np.clip(t, 0.0, 1.0)
    beyond = a * np.minimum(t, 0.0) + b * np.maximum(t - 1.0, 0.0)
    scores[:] = 0.5 * (b * inner * inner - a * (1.0 - inner) ** 2) + c + beyond


@kernel
def bound(values: FloatArray, limit: float) -> None:
    """Replace values beyond ±limit by ±limit."""
    for i in range(len(values)):
        values[i] = min(max(values[i], -limit), limit)


@bound.plainly
def _bound(values: FloatArray, limit: float) -> None:
    np.clip(values, -limit, limit, out=values)


@kernel
def apply_one(
    kind: int, parameters: FloatArray, knots: FloatArray, probabilities: FloatArray, scores: FloatArray
) -> None:
    """Replace scores by one map's log-odds, which are finite."""
    a, b, c = parameters
    bound(scores, FARTHEST)
    if kind == AFFINE:
        for i in range(len(scores)):
            scores[i] = a * scores[i] + b
    elif kind == BETA:
        for i in range(len(scores)):
            scores[i] = b * softplus(scores[i]) - a * softplus(-scores[i]) + c
    elif kind == QUADRATIC:
        apply_quadratic(scores, knots, a, b, c)
    elif kind in (CUBIC, LINES):
        apply_pairs(scores, kind, knots, probabilities)
    else:
        apply_knots(scores, kind == STEPS, knots, probabilities)
    bound(scores, LARGEST)


@apply_one.plainly
def _apply_one(
    kind: int, parameters: FloatArray, knots: FloatArray, probabilities: FloatArray, scores: FloatArray
) -> None:
    a, b, c = parameters
    bound(scores, FARTHEST)
    if kind == AFFINE:
        scores[:] = a * scores + b
    elif kind == BETA:
        scores[:] = b * np.logaddexp(0.0, scores) - a * np.logaddexp(0.0, -scores) + c
    elif kind == QUADRATIC:
        apply_quadratic(scores, knots, a, b, c)
    elif kind in (CUBIC, LINES):
        apply_pairs(scores, kind, knots, probabilities)
    else:
        apply_knots(scores, kind == STEPS, knots, probabilities)
    bound(scores, LARGEST)


@kernel
def apply_to_segments(
    kinds: npt.NDArray[np.int8],
    parameters: FloatArray,
    knot_offsets: IntArray,
    knots: FloatArray,
    probabilities: FloatArray,
    offsets: IntArray,
    scores: FloatArray,
) -> None:
    """Replace the scores (n,) by log-odds; segment k belongs to map k."""
    for k in range(len(kinds)):
        own = slice(knot_offsets[k], knot_offsets[k + 1])
        rows = slice(offsets[k], offsets[k + 1])
        apply_one(kinds[k], parameters[k], knots[own], probabilities[own], scores[rows])


@apply_to_segments.plainly
def _apply_to_segments(
    kinds: npt.NDArray[np.int8],
    parameters: FloatArray,
    knot_offsets: IntArray,
    knots: FloatArray,
    probabilities: FloatArray,
    offsets: IntArray,
    scores: FloatArray,
) -> None:
    """All cubic maps at once, the others one by one."""
    for k in np.flatnonzero(kinds != CUBIC):
        own = slice(knot_offsets[k], knot_offsets[k + 1])
        rows = slice(offsets[k], offsets[k + 1])
        apply_one(kinds[k], parameters[k], knots[own], probabilities[own], scores[rows])
    cubic = np.flatnonzero(np.repeat(kinds == CUBIC, np.diff(offsets)))
    if len(cubic):
        which = np.repeat(np.arange(len(kinds)), np.diff(offsets))[cubic]
        first, last = knot_offsets[which], knot_offsets[which + 1] - 1
        some = np.clip(scores[cubic], -FARTHEST, FARTHEST)
        j = np.maximum(_last_at_or_below(knots, some, first, last), first + 1)
        _apply_cubics(some, j, np.minimum(j + 1, last - 1), knots, probabilities)
        scores[cubic] = np.clip(some, -LARGEST, LARGEST)


def _last_at_or_below(knots: FloatArray, scores: FloatArray, first: IntArray, last: IntArray) -> IntArray:
    """Index of the last knot from `first` to `last` that is <= score; `first` if there is none."""
    start, n = first.copy(), last - first + 1
    while (n > 1).any():
        half = n >> 1
        start += np.where(knots[start + half] <= scores, half, 0)
        n -= half
    return start


@kernel
def apply_to_columns(
    kinds: npt.NDArray[np.int8],
    parameters: FloatArray,
    knot_offsets: IntArray,
    knots: FloatArray,
    probabilities: FloatArray,
    scores: FloatArray,
) -> None:
    """Replace the scores (n_rows, m) by log-odds; column k belongs to map k.

    A few rows at a time, so that the memory of neighbouring columns is still at hand for the next map.
    """
    buffer = np.empty(ROWS_AT_A_TIME)
    for begin in range(0, scores.shape[0], ROWS_AT_A_TIME):
        n = min(ROWS_AT_A_TIME, scores.shape[0] - begin)
        for k in range(scores.shape[1]):
            own = slice(knot_offsets[k], knot_offsets[k + 1])
            for i in range(n):
                buffer[i] = scores[begin + i, k]
            apply_one(kinds[k], parameters[k], knots[own], probabilities[own], buffer[:n])
            for i in range(n):
                scores[begin + i, k] = buffer[i]


@apply_to_columns.plainly
def _apply_to_columns(
    kinds: npt.NDArray[np.int8],
    parameters: FloatArray,
    knot_offsets: IntArray,
    knots: FloatArray,
    probabilities: FloatArray,
    scores: FloatArray,
) -> None:
    """All parametric maps at once, the others one by one."""
    for kind in (AFFINE, BETA):
        few = np.flatnonzero(kinds == kind)
        if len(few):
            columns = scores[:, few]
            apply_one(kind, parameters[few].T, knots[:0], probabilities[:0], columns)
            scores[:, few] = columns
    for k in np.flatnonzero(kinds >= LINEAR):
        own = slice(knot_offsets[k], knot_offsets[k + 1])
        column = scores[:, k].copy()
        apply_one(kinds[k], parameters[k], knots[own], probabilities[own], column)
        scores[:, k] = column
