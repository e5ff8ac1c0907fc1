"""Trees with Platt scaling at the leaves, grown by score tests."""

from typing import Any

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.logistic import platt_targets, softplus
from dichotomies._kernels.platt import EQUAL, affine, standardise
from dichotomies._kernels.score_maps import Knots
from dichotomies._kernels.segments import SegmentArrays
from dichotomies._kernels.sorting import sort_segments

ROOM = 64  # nodes that a tree may have


@kernel
def gather(values: Any, rows: IntArray) -> Any:
    """Values of some rows; numba takes longer to compile ``values[rows]``."""
    out = np.empty(len(rows), values.dtype)
    for i in range(len(rows)):
        out[i] = values[rows[i]]
    return out


@gather.plainly
def _gather(values: Any, rows: IntArray) -> Any:
    return values[rows]


@kernel
def hard_nll(
    scores: FloatArray, targets: BoolArray, weights: FloatArray, slope: float, intercept: float
) -> float:
    """Negative log-likelihood of log-odds on a line."""
    total = 0.0
    for i in range(len(scores)):
        z = slope * scores[i] + intercept
        total += weights[i] * softplus(-z if targets[i] else z)
    return total


@hard_nll.plainly
def _hard_nll(
    scores: FloatArray, targets: BoolArray, weights: FloatArray, slope: float, intercept: float
) -> float:
    z = slope * scores + intercept
    return float(weights @ np.logaddexp(0.0, np.where(targets, -z, z)))


@kernel
def row_terms(
    scores: FloatArray, targets: BoolArray, weights: FloatArray, slope: float, intercept: float
) -> FloatArray:
    """Terms (n, 6) whose sums decide about a split: weight, gradient (2), curvature (3) of the likelihood.

    Derivatives are those by intercept and slope, for scores of mean 0 and spread 1.
    """
    low, high, _ = platt_targets(targets, weights)
    u = scores.copy()
    standardise(u, weights, True, EQUAL)
    terms = np.empty((len(u), 6))
    for i in range(len(u)):
        p = 1.0 / (1.0 + np.exp(-(slope * scores[i] + intercept)))
        residual, curve = weights[i] * ((high if targets[i] else low) - p), weights[i] * p * (1.0 - p)
        terms[i, 0], terms[i, 1], terms[i, 2] = weights[i], residual, residual * u[i]
        terms[i, 3], terms[i, 4], terms[i, 5] = curve, curve * u[i], curve * u[i] * u[i]
    return terms


@row_terms.plainly
def _row_terms(
    scores: FloatArray, targets: BoolArray, weights: FloatArray, slope: float, intercept: float
) -> FloatArray:
    low, high, _ = platt_targets(targets, weights)
    u = scores.copy()
    standardise(u, weights, True, EQUAL)
    p = 1.0 / (1.0 + np.exp(-(slope * scores + intercept)))
    residual, curve = weights * (np.where(targets, high, low) - p), weights * p * (1.0 - p)
    return np.column_stack([weights, residual, residual * u, curve, curve * u, curve * u * u])


@kernel
def newton_gain(terms: FloatArray) -> float:
    """Gain in log-likelihood by one Newton step with a standard normal prior: ``s' (h + 1)^-1 s / 2``."""
    s0, s1, h00, h01, h11 = terms[1], terms[2], terms[3] + 1.0, terms[4], terms[5] + 1.0
    return float(0.5 * (h11 * s0 * s0 - 2.0 * h01 * s0 * s1 + h00 * s1 * s1) / (h00 * h11 - h01 * h01))


@kernel
def best_split(values: FloatArray, terms: FloatArray, least: float) -> tuple[float, float]:
    """Threshold on `values` with the largest gain, and the gain; 0 if no side has the `least` weight."""
    n = len(values)
    order = np.empty(n, np.intp)
    sort_segments(values, np.array([0, n]), order)
    left, right = np.zeros(6), np.zeros(6)
    for i in range(n):
        for j in range(6):
            right[j] += terms[i, j]
    threshold = best = 0.0
    for i in range(n - 1):
        for j in range(6):
            left[j] += terms[order[i], j]
            right[j] -= terms[order[i], j]
        value, above = values[order[i]], values[order[i + 1]]
        if above > value and left[0] >= least and right[0] >= least:
            gain = newton_gain(left) + newton_gain(right)
            if gain > best:
                best, threshold = gain, between(value, above)
    return threshold, best


@best_split.plainly
def _best_split(values: FloatArray, terms: FloatArray, least: float) -> tuple[float, float]:
    order = np.argsort(values, kind="stable")
    ordered, left = values[order], np.cumsum(terms[order], axis=0)[:-1]
    right = terms.sum(axis=0) - left
    allowed = (ordered[1:] > ordered[:-1]) & (left[:, 0] >= least) & (right[:, 0] >= least)
    if not allowed.any():
        return 0.0, 0.0
    gain = np.zeros(len(left))
    for side in (left.T, right.T):
        s0, s1, h00, h01, h11 = side[1], side[2], side[3] + 1.0, side[4], side[5] + 1.0
        gain += 0.5 * (h11 * s0 * s0 - 2.0 * h01 * s0 * s1 + h00 * s1 * s1) / (h00 * h11 - h01 * h01)
    best = int(np.argmax(np.where(allowed, gain, 0.0)))
    return between(ordered[best], ordered[best + 1]), float(gain[best])


@kernel
def between(low: float, high: float) -> float:
    """Middle of two numbers, below the higher one."""
    middle = 0.5 * low + 0.5 * high
    return float(middle if middle < high else low)


@kernel
def propose(X: FloatArray, rows: IntArray, terms: FloatArray, least: float) -> tuple[int, float]:
    """Feature and threshold with the largest gain; feature -1 if there is none."""
    feature, threshold, gain = -1, 0.0, 0.0
    for j in range(X.shape[1]):
        at, reached = best_split(gather(X[:, j], rows), terms, least)
        if reached > gain:
            feature, threshold, gain = j, at, reached
    return feature, threshold


@kernel
def fit_node(
    scores: FloatArray, targets: BoolArray, weights: FloatArray, rows: IntArray, line: FloatArray
) -> float:
    """Write slope and intercept of some rows, and return their negative log-likelihood."""
    s, t, w = gather(scores, rows), gather(targets, rows), gather(weights, rows)
    line[0], line[1] = affine(s, t, w, True)
    return hard_nll(s, t, w, line[0], line[1])


@kernel
def grow(
    X: FloatArray,
    scores: FloatArray,
    targets: BoolArray,
    weights: FloatArray,
    max_depth: int,
    least: float,
    feature: IntArray,
    threshold: FloatArray,
    left: IntArray,
    lines: FloatArray,
) -> int:
    """Write a tree and return its number of nodes, at most `ROOM`.

    Node k sends rows with ``X[:, feature[k]] <= threshold[k]`` to node ``left[k]`` and the others to the next
    one; the feature of a leaf is -1. `lines` (ROOM, 2) are slope and intercept at each node. A split stays if
    it lowers the negative log-likelihood by more than ``1.5 log(n) + log(n_features)``, n being the node's
    weight: BIC's price for a threshold and two more parameters, and for the choice of the feature.
    """
    node, depth, loss = np.zeros(len(scores), np.intp), np.zeros(ROOM, np.intp), np.empty(ROOM)
    loss[0] = fit_node(scores, targets, weights, np.arange(len(scores)), lines[0])
    n_nodes, k = 1, 0
    while k < n_nodes:
        feature[k], threshold[k], left[k] = -1, 0.0, 0
        rows = np.flatnonzero(node == k)
        if depth[k] < max_depth and n_nodes + 2 <= ROOM and len(rows) > 1:
            s, t, w = gather(scores, rows), gather(targets, rows), gather(weights, rows)
            j, at = propose(X, rows, row_terms(s, t, w, lines[k, 0], lines[k, 1]), least)
            if j >= 0:
                goes_right = gather(X[:, j], rows) > at
                sides = rows[~goes_right], rows[goes_right]
                for side in range(2):
                    line = lines[n_nodes + side]
                    loss[n_nodes + side] = fit_node(scores, targets, weights, sides[side], line)
                price = 1.5 * np.log(w.sum()) + np.log(X.shape[1])
                if loss[k] - loss[n_nodes] - loss[n_nodes + 1] > price:
                    feature[k], threshold[k], left[k] = j, at, n_nodes
                    depth[n_nodes] = depth[n_nodes + 1] = depth[k] + 1
                    node[rows] = n_nodes + goes_right
                    n_nodes += 2
        k += 1
    return n_nodes


@kernel
def grow_on_scores(segments: SegmentArrays, max_depth: int, least: float, knots: Knots) -> None:
    """Write the first score of every leaf twice, with slope and intercept there, segment after segment.

    The trees split by the score itself. There are two knots per leaf, and at most as many leaves as rows with
    a weight, and at most ``ROOM / 2``.
    """
    scores, targets, weights, offsets = segments
    knot_offsets, knot_scores, knot_values = knots
    feature, threshold, left = np.empty(ROOM, np.intp), np.empty(ROOM), np.empty(ROOM, np.intp)
    lines, start, stack = np.empty((ROOM, 2)), np.empty(ROOM), np.empty(ROOM, np.intp)
    knot_offsets[0] = end = 0
    for k in range(len(offsets) - 1):
        rows = offsets[k] + np.flatnonzero(weights[offsets[k] : offsets[k + 1]] > 0.0)
        if len(rows) > 0:
            s, t, w = gather(scores, rows), gather(targets, rows), gather(weights, rows)
            grow(s.reshape((-1, 1)), s, t, w, max_depth, least, feature, threshold, left, lines)
            start[0], stack[0], size = -np.finfo(np.float64).max, 0, 1
            while size > 0:
                size -= 1
                at = stack[size]
                if feature[at] >= 0:
                    start[left[at]], start[left[at] + 1] = start[at], np.nextafter(threshold[at], np.inf)
                    stack[size], stack[size + 1] = left[at] + 1, left[at]
                    size += 2
                else:
                    knot_scores[end] = knot_scores[end + 1] = start[at]
                    knot_values[end], knot_values[end + 1] = lines[at, 0], lines[at, 1]
                    end += 2
        knot_offsets[k + 1] = end
