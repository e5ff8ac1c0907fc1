"""Trees with Platt scaling at the leaves, grown by score tests."""

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.logistic import platt_targets
from dichotomies._kernels.platt import EQUAL, affine, standardise

ROOM = 64  # nodes that a tree may have


@kernel
def hard_nll(scores: FloatArray, targets: BoolArray, weights: FloatArray, line: FloatArray) -> float:
    """Negative log-likelihood of log-odds ``line[0] * scores + line[1]``."""
    z = line[0] * scores + line[1]
    z = np.where(targets, -z, z)
    return float(np.sum(weights * (np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))))))


@kernel
def row_terms(scores: FloatArray, targets: BoolArray, weights: FloatArray, line: FloatArray) -> FloatArray:
    """Terms (6, n) whose sums decide about a split: weight, gradient (2), curvature (3) of the likelihood.

    Derivatives are those by intercept and slope, for scores of mean 0 and spread 1.
    """
    low, high, _ = platt_targets(targets, weights)
    u = scores.copy()
    standardise(u, weights, True, EQUAL)
    p = 1.0 / (1.0 + np.exp(-(line[0] * scores + line[1])))
    terms = np.empty((6, len(u)))
    terms[0] = weights
    terms[1] = weights * (np.where(targets, high, low) - p)
    terms[2] = terms[1] * u
    terms[3] = weights * p * (1.0 - p)
    terms[4] = terms[3] * u
    terms[5] = terms[4] * u
    return terms


@kernel
def newton_gain(
    s0: FloatArray, s1: FloatArray, h00: FloatArray, h01: FloatArray, h11: FloatArray
) -> FloatArray:
    """Gain in log-likelihood by one Newton step with a standard normal prior: ``s' (h + 1)^-1 s / 2``."""
    a, d = h00 + 1.0, h11 + 1.0
    return 0.5 * (d * s0 * s0 - 2.0 * h01 * s0 * s1 + a * s1 * s1) / (a * d - h01 * h01)


@kernel
def best_split(values: FloatArray, terms: FloatArray, least: float) -> tuple[float, float]:
    """Threshold on `values` with the largest gain, and the gain; 0 if no side has the `least` weight."""
    order = np.argsort(values, kind="mergesort")
    ordered, n = values[order], len(order)
    left = np.empty((6, n - 1))
    for j in range(6):
        left[j] = np.cumsum(terms[j][order])[:-1]
    right = np.empty((6, n - 1))
    for j in range(6):
        right[j] = terms[j].sum() - left[j]
    gain = newton_gain(left[1], left[2], left[3], left[4], left[5])
    gain += newton_gain(right[1], right[2], right[3], right[4], right[5])
    allowed = (ordered[1:] > ordered[:-1]) & (left[0] >= least) & (right[0] >= least)
    gain = np.where(allowed, gain, 0.0)
    best = int(np.argmax(gain))
    middle = 0.5 * ordered[best] + 0.5 * ordered[best + 1]
    return (middle if middle < ordered[best + 1] else ordered[best]), gain[best]


@kernel
def propose(X: FloatArray, rows: IntArray, terms: FloatArray, least: float) -> tuple[int, float]:
    """Feature and threshold with the largest gain; feature -1 if there is none."""
    feature, threshold, gain = -1, 0.0, 0.0
    if len(rows) > 1:
        for j in range(X.shape[1]):
            at, reached = best_split(X[rows, j], terms, least)
            if reached > gain:
                feature, threshold, gain = j, at, reached
    return feature, threshold


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
    lines[0] = affine(scores, targets, weights, True)
    loss[0] = hard_nll(scores, targets, weights, lines[0])
    n_nodes, k = 1, 0
    while k < n_nodes:
        feature[k], threshold[k], left[k] = -1, 0.0, 0
        if depth[k] < max_depth and n_nodes + 2 <= ROOM:
            rows = np.flatnonzero(node == k)
            s, t, w = scores[rows], targets[rows], weights[rows]
            j, at = propose(X, rows, row_terms(s, t, w, lines[k]), least)
            if j >= 0:
                goes_right = X[rows, j] > at
                for side in range(2):
                    mine = goes_right == (side == 1)
                    lines[n_nodes + side] = affine(s[mine], t[mine], w[mine], True)
                    loss[n_nodes + side] = hard_nll(s[mine], t[mine], w[mine], lines[n_nodes + side])
                price = 1.5 * np.log(w.sum()) + np.log(X.shape[1])
                if loss[k] - loss[n_nodes] - loss[n_nodes + 1] > price:
                    feature[k], threshold[k], left[k] = j, at, n_nodes
                    depth[n_nodes] = depth[n_nodes + 1] = depth[k] + 1
                    node[rows] = n_nodes + goes_right
                    n_nodes += 2
        k += 1
    return n_nodes


@kernel(seconds=15)
def grow_on_scores(
    scores: FloatArray,
    targets: BoolArray,
    weights: FloatArray,
    offsets: IntArray,
    max_depth: int,
    least: float,
    knot_offsets: IntArray,
    knot_scores: FloatArray,
    knot_values: FloatArray,
) -> None:
    """Write the first score of every leaf twice, with slope and intercept there, segment after segment.

    The trees split by the score itself. `knot_scores` and `knot_values` need room for two knots per leaf:
    there are at most as many leaves as rows with a weight, and at most ``ROOM / 2``.
    """
    feature, threshold, left = np.empty(ROOM, np.intp), np.empty(ROOM), np.empty(ROOM, np.intp)
    lines, start, stack = np.empty((ROOM, 2)), np.empty(ROOM), np.empty(ROOM, np.intp)
    knot_offsets[0] = end = 0
    for k in range(len(offsets) - 1):
        rows = offsets[k] + np.flatnonzero(weights[offsets[k] : offsets[k + 1]] > 0.0)
        if len(rows) > 0:
            s, t, w = scores[rows], targets[rows], weights[rows]
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
