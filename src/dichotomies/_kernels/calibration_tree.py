"""Trees with Platt scaling at the leaves, grown by score tests."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.score_maps import LARGEST, Knots
from dichotomies._kernels.segments import SegmentArrays

MOST_NODES = 64

#: Writes slope and intercept of every segment; `dichotomies._kernels.platt.fit_affine`.
Fit = Callable[[SegmentArrays, bool, FloatArray], None]


class Limits(NamedTuple):
    """What bounds a tree: its depth, and the least weight of a leaf."""

    max_depth: int
    min_weight: float


class GrownTree(NamedTuple):
    """A tree of at most `MOST_NODES` nodes.

    Node k sends rows with ``X[:, feature[k]] <= threshold[k]`` to node ``left[k]`` and the others to the next
    one; the feature of a leaf is -1. `lines` are slope and intercept at each node.
    """

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    lines: FloatArray


@np.errstate(all="ignore")  # extreme scores
def row_terms(rows: SegmentArrays, line: FloatArray) -> FloatArray:
    """Terms (n, 6) whose sums decide about a split: weight, gradient (2), curvature (3) of the likelihood.

    Derivatives are those by intercept and slope, for scores of mean 0 and spread 1.
    """
    scores, targets, weights, _ = rows
    positive, total = weights[targets].sum(), weights.sum()
    low, high = 1.0 / (total - positive + 2.0), (positive + 1.0) / (positive + 2.0)
    u = scores - weights @ scores / total
    spread = np.sqrt(weights @ (u * u) / total)
    u = u / spread if spread > 1e-12 * np.abs(scores).max() else np.zeros(len(u))
    p = 1.0 / (1.0 + np.exp(-(line[0] * scores + line[1])))
    residual, curve = weights * (np.where(targets, high, low) - p), weights * p * (1.0 - p)
    return np.column_stack([weights, residual, residual * u, curve, curve * u, curve * u * u])


@np.errstate(all="ignore")  # extreme scores
def best_split(values: FloatArray, terms: FloatArray, least: float) -> tuple[float, float]:
    """Threshold on `values` with the largest gain, and the gain; 0 if no side has the `least` weight.

    The gain in log-likelihood is that of one Newton step on either side with a standard normal prior,
    ``s' (h + 1)^-1 s / 2``.
    """
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
    low, high = ordered[best], ordered[best + 1]
    middle = 0.5 * low + 0.5 * high
    return float(middle if middle < high else low), float(gain[best])


def propose(X: FloatArray, terms: FloatArray, least: float) -> tuple[int, float]:
    """Feature and threshold with the largest gain; feature -1 if there is none."""
    feature, threshold, gain = -1, 0.0, 0.0
    for j in range(X.shape[1]):
        at, reached = best_split(X[:, j], terms, least)
        if reached > gain:
            feature, threshold, gain = j, at, reached
    return feature, threshold


def _taken(rows: SegmentArrays, chosen: IntArray) -> SegmentArrays:
    scores, targets, weights, _ = rows
    return SegmentArrays(scores[chosen], targets[chosen], weights[chosen], np.array([0, len(chosen)]))


def _fit_lines(rows: SegmentArrays, sides: list[IntArray], fit: Fit) -> tuple[FloatArray, FloatArray]:
    """Slope and intercept of some rows, for each side, and their negative log-likelihood."""
    parts = [_taken(rows, side) for side in sides]
    offsets = np.cumsum([0, *map(len, sides)])
    scores, targets, weights = (np.concatenate(each) for each in list(zip(*parts, strict=True))[:3])
    lines = np.empty((len(sides), 3))
    fit(SegmentArrays(scores, targets, weights, offsets), True, lines)
    slope, intercept, _ = np.repeat(lines, np.diff(offsets), axis=0).T
    z = slope * scores + intercept
    loss = weights * np.logaddexp(0.0, np.where(targets, -z, z))
    return lines[:, :2], np.add.reduceat(loss, offsets[:-1])


@np.errstate(all="ignore")  # extreme scores
def grow(X: FloatArray, rows: SegmentArrays, limits: Limits, fit: Fit) -> GrownTree:
    """Grow a tree over rows with positive weights, of which there is one segment.

    A split stays if it lowers the negative log-likelihood by more than ``1.5 log(n) + log(n_features)``, n
    being the node's weight: BIC's price for a threshold and two more parameters, and for the choice of the
    feature.
    """
    members = [np.arange(len(X))]
    lines, losses = (list(each) for each in _fit_lines(rows, members, fit))
    depth: list[int] = [0]
    feature: list[int] = []
    threshold: list[float] = []
    left: list[int] = []
    while len(feature) < len(members):
        k, own = len(feature), members[len(feature)]
        split, at, child = -1, 0.0, 0
        if depth[k] < limits.max_depth and len(members) + 2 <= MOST_NODES and len(own) > 1:
            own_rows = _taken(rows, own)
            j, value = propose(X[own], row_terms(own_rows, lines[k]), limits.min_weight)
            if j >= 0:
                goes_right = X[own, j] > value
                sides = [own[~goes_right], own[goes_right]]
                new_lines, new_losses = _fit_lines(rows, sides, fit)
                price = 1.5 * np.log(own_rows.weights.sum()) + np.log(X.shape[1])
                if losses[k] - new_losses.sum() > price:
                    split, at, child = j, value, len(members)
                    members += sides
                    lines += list(new_lines)
                    losses += list(new_losses)
                    depth += [depth[k] + 1] * 2
        feature.append(split)
        threshold.append(at)
        left.append(child)
    return GrownTree(np.array(feature), np.array(threshold), np.array(left), np.array(lines))


def _leaves(tree: GrownTree) -> tuple[FloatArray, FloatArray]:
    """The first score of every leaf of a tree over scores, increasing, and slope and intercept there."""
    starts, lines = [], []
    stack: list[tuple[int, float]] = [(0, float(-LARGEST))]
    while stack:
        k, start = stack.pop()
        if tree.feature[k] >= 0:
            middle = float(np.nextafter(tree.threshold[k], np.inf))
            stack += [(tree.left[k] + 1, middle), (tree.left[k], start)]
        else:
            starts.append(start)
            lines.append(tree.lines[k])
    return np.array(starts), np.array(lines)


def grow_on_scores(segments: SegmentArrays, limits: Limits, fit: Fit) -> Knots:
    """The first score of every leaf twice, with slope and intercept there; trees split by the score."""
    offsets, scores, values = [0], [np.empty(0)], [np.empty(0)]
    for begin, end in zip(segments.offsets[:-1], segments.offsets[1:], strict=True):
        chosen = begin + np.flatnonzero(segments.weights[begin:end] > 0.0)
        n_leaves = 0
        if len(chosen):
            rows = _taken(segments, chosen)
            starts, lines = _leaves(grow(rows.scores[:, None], rows, limits, fit))
            scores.append(np.repeat(starts, 2))
            values.append(lines.ravel())
            n_leaves = len(starts)
        offsets.append(offsets[-1] + 2 * n_leaves)
    return Knots(np.array(offsets), np.concatenate(scores), np.concatenate(values))
