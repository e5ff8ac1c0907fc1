"""Applying many maps from score to log-odds, and what the answers cost."""

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.logistic import softplus

AFFINE, BETA, LINEAR, STEPS = 0, 1, 2, 3
ROWS_AT_A_TIME = 64


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
    p = probabilities[place] if steps else np.interp(scores, knots, probabilities)
    scores[:] = np.log(p / (1.0 - p))


@kernel
def apply_one(
    kind: int, parameters: FloatArray, knots: FloatArray, probabilities: FloatArray, scores: FloatArray
) -> None:
    """Replace scores by one map's log-odds."""
    a, b, c = parameters
    if kind == AFFINE:
        for i in range(len(scores)):
            scores[i] = a * scores[i] + b
    elif kind == BETA:
        for i in range(len(scores)):
            scores[i] = b * softplus(scores[i]) - a * softplus(-scores[i]) + c
    else:
        apply_knots(scores, kind == STEPS, knots, probabilities)


@apply_one.plainly
def _apply_one(
    kind: int, parameters: FloatArray, knots: FloatArray, probabilities: FloatArray, scores: FloatArray
) -> None:
    a, b, c = parameters
    if kind == AFFINE:
        scores[:] = a * scores + b
    elif kind == BETA:
        scores[:] = b * np.logaddexp(0.0, scores) - a * np.logaddexp(0.0, -scores) + c
    else:
        apply_knots(scores, kind == STEPS, knots, probabilities)


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


def losses(log_odds: FloatArray, targets: BoolArray) -> FloatArray:
    """The negative log-likelihood of every row: ``log(1 + exp(-z))`` or, if negative, ``exp(z)``."""
    z = np.where(targets, -log_odds, log_odds)
    loss: FloatArray = np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))
    return loss


def segment_sums(values: FloatArray, weights: FloatArray, offsets: IntArray) -> FloatArray:
    """The weighted sum of each segment's values."""
    n_segments = len(offsets) - 1
    segment = np.repeat(np.arange(n_segments), np.diff(offsets))
    return np.bincount(segment, weights * values, n_segments).astype(np.float64)


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
