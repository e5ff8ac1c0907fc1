"""Inductive Venn-Abers prediction of all segments, in linear time after sorting."""

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.isotonic import Ties
from dichotomies._kernels.score_maps import Knots


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
