"""Parametric calibration of all segments: Platt scaling, temperature, beta calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.isotonic import SegmentArrays
from dichotomies._kernels.logistic import (
    CLOSE_ENOUGH,
    FLAT,
    MAX_STEPS,
    SMALLEST_STEP,
    maximise,
    platt_targets,
    softplus,
)

#: Entries of the upper half of a 3 x 3 matrix.
_UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


@dataclass(frozen=True)
class SegmentRows:
    """Rows of m segments, none of them empty, with up to two features.

    Attributes
    ----------
    features : (1 or 2, n)
    targets : (n,)
        True on the positive side.
    weights : (n,)
    offsets : (m + 1,)
    """

    features: FloatArray
    targets: BoolArray
    weights: FloatArray
    offsets: IntArray

    @cached_property
    def of(self) -> IntArray:
        """Segment of each row."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def sums(self, values: Any) -> FloatArray:
        """Weighted sums over each segment; values (..., n)."""
        return np.asarray(np.add.reduceat(self.weights * values, self.offsets[:-1], axis=-1))

    def take(self, segments: BoolArray) -> SegmentRows:
        """Some of the segments."""
        rows = np.repeat(segments, np.diff(self.offsets))
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[segments])])
        return SegmentRows(self.features[:, rows], self.targets[rows], self.weights[rows], offsets)

    def platt_targets(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Targets of either side and their mean, (m,) each; see `logistic.platt_targets`."""
        total, positive = self.sums(np.ones(len(self.targets))), self.sums(self.targets)
        negative = total - positive
        low, high = 1.0 / (negative + 2.0), (positive + 1.0) / (positive + 2.0)
        mean = (negative * low + positive * high) / np.where(total > 0.0, total, 1.0)
        return low, high, np.where(total > 0.0, mean, 0.5)

    def standardised(self, equal: float, *, centred: bool) -> tuple[SegmentRows, FloatArray, FloatArray]:
        """Rows whose features have mean 0 and spread 1 in each segment, the means and the spreads.

        See `platt.standardise`.
        """
        of, values = self.of, self.features
        total = self.sums(np.ones(len(of)))
        safe = np.where(total > 0.0, total, 1.0)
        mean = self.sums(values) / safe if centred else np.zeros((len(values), len(total)))
        largest = np.maximum.reduceat(np.abs(values) * (self.weights > 0.0), self.offsets[:-1], axis=1)
        values = values - mean[:, of]
        spread = np.sqrt(self.sums(values * values) / safe)
        spread = np.where(spread <= equal * largest, 0.0, spread)
        values = np.where(spread[:, of] > 0.0, values / np.where(spread > 0.0, spread, 1.0)[:, of], 0.0)
        return replace(self, features=values), mean, spread

    def discriminant(self, theta: FloatArray) -> None:
        """Start from the discriminant of two normal distributions; see `platt.discriminate`."""
        total, of_1 = self.sums(np.ones(len(self.targets))), self.sums(self.targets)
        of_0 = total - of_1
        both = (of_0 > 0.0) & (of_1 > 0.0)
        total, of_0, of_1 = (np.where(both, each, 1.0) for each in (total, of_0, of_1))
        x = self.features[0]
        mean_0, mean_1 = self.sums(x * ~self.targets) / of_0, self.sums(x * self.targets) / of_1
        between = (mean_1 - mean_0) ** 2 * (of_0 / total) * (of_1 / total)
        slope = np.where(both, (mean_1 - mean_0) / np.maximum(1.0 - between, 0.01), 0.0)
        theta[:, 1] = slope
        theta[:, 0] -= slope * (mean_0 + mean_1) / 2

    def constant_loss(self, low: FloatArray, high: FloatArray, z: FloatArray) -> FloatArray:
        """Loss of each segment if all its rows have log-odds z (m,)."""
        total, positive = self.sums(np.ones(len(self.targets))), self.sums(self.targets)
        return np.asarray(total * np.logaddexp(0.0, z) - (positive * high + (total - positive) * low) * z)

    def derivatives(
        self, theta: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss (m,), gradient (3, m) and the upper half of the Hessian (6, m)."""
        of, weights = self.of, self.weights
        z = theta[:, 0][of]
        for feature, slope in zip(self.features, theta.T[1:], strict=False):
            z += slope[of] * feature
        tail = np.exp(-np.abs(z))
        likelier = 1.0 / (1.0 + tail)
        target = np.where(self.targets, high[of], low[of])
        error = weights * (np.where(z >= 0.0, likelier, tail * likelier) - target)
        curves = [weights * tail * likelier * likelier]
        curves += [curves[0] * x for x in self.features]
        second = [curves[j] * x for i, x in enumerate(self.features) for j in range(i + 1, len(curves))]
        loss = weights * (np.maximum(z, 0.0) - target * z + np.log(1.0 + tail))
        terms = [loss, error, *(error * x for x in self.features), *curves, *second]
        sums = np.array([np.add.reduceat(term, self.offsets[:-1]) for term in terms])
        n = len(self.features) + 1
        gradient, hessian = np.zeros((3, len(theta))), np.zeros((6, len(theta)))
        gradient[:n] = sums[1 : n + 1]
        hessian[[k for k, (_, j) in enumerate(_UPPER) if j < n]] = sums[n + 1 :]
        return sums[0], gradient, hessian


def maximise_segments(
    rows: SegmentRows,
    low: FloatArray,
    high: FloatArray,
    active: BoolArray,
    safe: FloatArray,
    theta: FloatArray,
) -> None:
    """Improve the active parameters of `theta` (m, 3) up to the optimum; see `logistic.maximise`.

    Parameters
    ----------
    active : (m, 3)
    safe : (m, 3)
        Parameters without slopes, to start from where `theta` is worse.
    """
    loss, gradient, hessian = rows.derivatives(theta, low, high)
    worse = (theta[:, 1] != 0.0) & ~(loss <= rows.constant_loss(low, high, safe[:, 0]))
    if worse.any():
        theta[worse] = safe[worse]
        loss, gradient, hessian = rows.derivatives(theta, low, high)
    where = np.arange(len(theta))  # of the segments still to be improved
    step, decrease = _newton_steps(gradient, hessian, active)
    size = np.ones(len(theta))
    for _ in range(MAX_STEPS):
        done = ~(decrease > CLOSE_ENOUGH * loss)
        theta[where[done]] -= step[done]  # the last step is too small to be measured
        done |= size < SMALLEST_STEP
        if done.any():
            live = ~done
            where, size, loss, rows = where[live], size[live], loss[live], rows.take(live)
            step, decrease = step[live], decrease[live]
        if not len(where):
            return
        trial = theta[where] - size[:, None] * step
        reached, gradient, hessian = rows.derivatives(trial, low[where], high[where])
        good = reached <= loss - 1e-4 * size * decrease
        theta[where[good]] = trial[good]
        size = np.where(good, 1.0, size / 2)
        loss = np.where(good, reached, loss)
        steps, decreases = _newton_steps(gradient, hessian, active[where])
        step, decrease = np.where(good[:, None], steps, step), np.where(good, decreases, decrease)


def _newton_steps(
    gradient: FloatArray, hessian: FloatArray, active: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Steps (m, 3) in the active, curved directions, and the products with the gradients (m,)."""
    m = gradient.shape[1]
    left, right = np.empty((3, 3, m)), gradient.copy()
    for (i, j), entries in zip(_UPPER, hessian, strict=True):
        left[i, j] = left[j, i] = entries
    live = np.empty((3, m), dtype=bool)
    for j in range(3):
        live[j] = active[:, j] & (left[j, j] > FLAT * hessian[(0, 3, 5)[j]])
        pivot = np.where(live[j], left[j, j], 1.0)
        for i in range(j + 1, 3):
            ratio = np.where(live[j], left[i, j], 0.0) / pivot
            right[i] -= ratio * right[j]
            left[i, j + 1 :] -= ratio * left[j, j + 1 :]
    step = np.zeros((3, m))
    for j in (2, 1, 0):
        rest = right[j] - (left[j, j + 1 :] * step[j + 1 :]).sum(axis=0)
        step[j] = np.where(live[j], rest / np.where(live[j], left[j, j], 1.0), 0.0)
    return step.T, np.asarray((step * gradient).sum(axis=0))


#: Values that differ by less than this part of their size count as equal.
EQUAL = 1e-12
#: Likewise for log p and log(1 - p), which determine one another nearer to 0.
EQUAL_LOGS = 1e-8


@kernel
def standardise(values: FloatArray, weights: FloatArray, centred: bool, equal: float) -> tuple[float, float]:
    """Shift and scale `values` in place to mean 0 and spread 1; return the mean and the spread.

    Not centred, the mean stays and 0 is returned for it. Values that are all equal become 0, and
    0 is returned for the spread.
    """
    total = mean = 0.0
    for i in range(len(values)):
        total += weights[i]
        if centred:
            mean += weights[i] * values[i]
    mean = mean / total if total > 0.0 else 0.0
    square = largest = 0.0
    for i in range(len(values)):
        values[i] -= mean
        square += weights[i] * values[i] * values[i]
        if weights[i] > 0.0:
            largest = max(largest, abs(values[i] + mean))
    spread = np.sqrt(square / total) if total > 0.0 else 0.0
    if spread <= equal * largest:
        values[:] = 0.0
        return mean, 0.0
    for i in range(len(values)):
        values[i] /= spread
    return mean, spread


@kernel
def discriminate(values: FloatArray, targets: BoolArray, weights: FloatArray, theta: FloatArray) -> None:
    """Start from the discriminant of two normal distributions, close to the optimum for many scores.

    `values` have mean 0 and spread 1, `theta` (3,) the log-odds of the sides as intercept. With one side
    absent it stays as it is.
    """
    weight, total = np.zeros(2), np.zeros(2)
    for i in range(len(values)):
        side = int(targets[i])
        weight[side] += weights[i]
        total[side] += weights[i] * values[i]
    if min(weight[0], weight[1]) <= 0.0:
        return
    mean_0, mean_1 = total[0] / weight[0], total[1] / weight[1]
    between = (mean_1 - mean_0) ** 2 * (weight[0] / weight.sum()) * (weight[1] / weight.sum())
    theta[1] = (mean_1 - mean_0) / max(1.0 - between, 0.01)
    theta[0] -= theta[1] * (mean_0 + mean_1) / 2


def plain_seconds(n_rows: int, n_segments: int) -> float:
    """Estimate how long plain code takes for `fit_affine` or `fit_beta`."""
    return 1e-5 * n_segments + 2e-6 * n_rows


@kernel
def fit_affine(segments: SegmentArrays, intercept: bool, out: FloatArray) -> None:
    """Write slope and intercept of every segment into `out` (m, 3).

    With an intercept this is Platt scaling; scores that are all equal get slope 0. Without, it is the
    inverse temperature, 0 where the optimum is negative and 1 where all scores are 0.
    """
    scores, targets, weights, offsets = segments
    for k in range(len(offsets) - 1):
        rows = slice(offsets[k], offsets[k + 1])
        out[k, 0], out[k, 1] = affine(scores[rows], targets[rows], weights[rows], intercept)
        out[k, 2] = 0.0


@fit_affine.plainly
def _fit_affine(segments: SegmentArrays, intercept: bool, out: FloatArray) -> None:
    scores, targets, weights, offsets = segments
    out[:] = 0.0 if intercept else [1.0, 0.0, 0.0]
    some = np.diff(offsets) > 0
    if not some.any():
        return
    rows = SegmentRows(scores[None], targets, weights, np.append(offsets[:-1][some], offsets[-1]))
    low, high, mean_target = rows.platt_targets()
    rows, mean, spread = rows.standardised(EQUAL, centred=intercept)
    safe = np.zeros((len(low), 3))
    if intercept:
        safe[:, 0] = np.log(mean_target / (1.0 - mean_target))
    theta, sloped = safe.copy(), spread[0] > 0.0
    if intercept:
        rows.discriminant(theta)
        theta[~sloped] = safe[~sloped]
    active = np.outer(sloped, [intercept, True, False])
    maximise_segments(rows, low, high, active, safe, theta)
    slope = np.where(sloped, theta[:, 1] / np.where(sloped, spread[0], 1.0), 0.0 if intercept else 1.0)
    slope = slope if intercept else np.maximum(slope, 0.0)
    out[some, 0], out[some, 1] = slope, theta[:, 0] - slope * mean[0]


@kernel
def affine(
    scores: FloatArray, targets: BoolArray, weights: FloatArray, intercept: bool
) -> tuple[float, float]:
    """Fit slope and intercept of one segment; see `fit_affine`."""
    active = np.array([intercept, True, False])
    low, high, mean_target = platt_targets(targets, weights)
    features = scores.copy().reshape((1, -1))
    mean, spread = standardise(features[0], weights, intercept, EQUAL)
    safe = np.zeros(3)
    if intercept:
        safe[0] = np.log(mean_target / (1.0 - mean_target))
    theta = safe.copy()
    if spread > 0.0:
        if intercept:
            discriminate(features[0], targets, weights, theta)
        maximise(features, targets, weights, low, high, active, safe, theta)
        theta[1] /= spread
    elif not intercept:
        theta[1] = 1.0
    if not intercept:
        theta[1] = max(theta[1], 0.0)
    return theta[1], theta[0] - theta[1] * mean


@kernel
def fit_beta(segments: SegmentArrays, out: FloatArray) -> None:
    """Write a, b and c of ``a log p - b log(1 - p) + c`` of every segment into `out` (m, 3)."""
    scores, targets, weights, offsets = segments
    for k in range(len(offsets) - 1):
        rows = slice(offsets[k], offsets[k + 1])
        features = np.empty((2, offsets[k + 1] - offsets[k]))
        log_sides(scores[rows], features)
        fit_slopes(features, targets[rows], weights[rows], EQUAL_LOGS, out[k])


@fit_beta.plainly
def _fit_beta(segments: SegmentArrays, out: FloatArray) -> None:
    scores = segments.scores
    features = np.stack([-np.logaddexp(0.0, -scores), np.logaddexp(0.0, scores)])
    _fit_slopes(features, segments, EQUAL_LOGS, out)


def _fit_slopes(features: FloatArray, segments: SegmentArrays, equal: float, out: FloatArray) -> None:
    """Write slopes >= 0 and intercept of every segment, in plain code; see `increasing_beta`."""
    _, targets, weights, offsets = segments
    out[:] = 0.0
    some = np.diff(offsets) > 0
    if not some.any():
        return
    rows = SegmentRows(features, targets, weights, np.append(offsets[:-1][some], offsets[-1]))
    low, high, mean_target = rows.platt_targets()
    rows, mean, spread = rows.standardised(equal, centred=True)
    start = np.zeros((len(low), 3))
    start[:, 0] = np.log(mean_target / (1.0 - mean_target))
    theta = start.copy()

    def refit(chosen: BoolArray, active: tuple[bool, bool, bool]) -> None:
        if chosen.any():
            own = start[chosen]
            given = np.broadcast_to(active, own.shape)
            maximise_segments(
                rows.take(chosen), low[chosen], high[chosen], given, own, own_theta := own.copy()
            )
            theta[chosen] = own_theta

    refit(np.ones(len(theta), dtype=bool), (True, True, True))
    negative_a, negative_b = theta[:, 1] < 0.0, theta[:, 2] < 0.0
    refit(negative_a, (True, False, True))
    refit(negative_b & (~negative_a | (theta[:, 2] < 0.0)), (True, True, False))
    theta = np.where(theta[:, 1:].min(axis=1, keepdims=True) < 0.0, start, theta)
    slopes = np.where(spread > 0.0, theta.T[1:] / np.where(spread > 0.0, spread, 1.0), 0.0)
    out[some] = np.column_stack([*slopes, theta[:, 0] - (slopes * mean).sum(axis=0)])


@kernel
def fit_slopes(
    features: FloatArray, targets: BoolArray, weights: FloatArray, equal: float, out: FloatArray
) -> None:
    """Write the slopes >= 0 of two features, which are standardised in place, and the intercept."""
    mean_a, spread_a = standardise(features[0], weights, True, equal)
    mean_b, spread_b = standardise(features[1], weights, True, equal)
    theta = increasing_beta(features, targets, weights)
    a = theta[1] / spread_a if spread_a > 0.0 else 0.0
    b = theta[2] / spread_b if spread_b > 0.0 else 0.0
    out[0], out[1], out[2] = a, b, theta[0] - a * mean_a - b * mean_b


@kernel
def log_sides(scores: FloatArray, out: FloatArray) -> None:
    """Write ``log p`` and ``-log(1 - p)``."""
    for i in range(len(scores)):
        out[0, i], out[1, i] = -softplus(-scores[i]), softplus(scores[i])


@kernel
def increasing_beta(features: FloatArray, targets: BoolArray, weights: FloatArray) -> FloatArray:
    """Fit intercept and two slopes >= 0: a slope that comes out negative is dropped and the rest refitted.

    That is the constrained optimum where one slope was negative. Where both were, the first is
    dropped, then the second instead, then both, until no slope is negative.
    """
    low, high, mean_target = platt_targets(targets, weights)
    start = np.array([np.log(mean_target / (1.0 - mean_target)), 0.0, 0.0])
    theta = start.copy()
    maximise(features, targets, weights, low, high, np.array([True, True, True]), start, theta)
    negative_a, negative_b = theta[1] < 0.0, theta[2] < 0.0
    if negative_a:
        theta = start.copy()
        maximise(features, targets, weights, low, high, np.array([True, False, True]), start, theta)
    if negative_b and (not negative_a or theta[2] < 0.0):
        theta = start.copy()
        maximise(features, targets, weights, low, high, np.array([True, True, False]), start, theta)
    return start if min(theta[1], theta[2]) < 0.0 else theta
