"""Platt scaling: a logistic function of the score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.isotonic import SegmentArrays
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.persistence import CATALOGUE, Estimator
from dichotomies.rows.segments import Segments

_MAX_STEPS, _SMALLEST_STEP = 100, 2.0**-40
#: Decrease promised by the last step, as a part of the loss; it leaves about the square.
_CLOSE_ENOUGH = 1e-9
#: Curvature that elimination leaves, as a part of what was there, below which a direction is flat.
_FLAT = 1e-12

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
        """Platt's targets ``1 / (N- + 2)`` and ``(N+ + 1) / (N+ + 2)``, and their mean, (m,) each.

        They are the posterior means of a coin that fell one way N times. N is a sum of weights.
        """
        total, positive = self.sums(np.ones(len(self.targets))), self.sums(self.targets)
        negative = total - positive
        low, high = 1.0 / (negative + 2.0), (positive + 1.0) / (positive + 2.0)
        mean = (negative * low + positive * high) / np.where(total > 0.0, total, 1.0)
        return low, high, np.where(total > 0.0, mean, 0.5)

    def standardised(self, equal: float, *, centred: bool) -> tuple[SegmentRows, FloatArray, FloatArray]:
        """Rows whose features have mean 0 and spread 1 in each segment, the means and the spreads.

        Not centred, the mean counts as 0. Values that are all equal become 0, with a spread of 0.
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
        """Start from the discriminant of two normal distributions, close to the optimum for many scores."""
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
    """Improve the active parameters of `theta` (m, 3) up to the optimum.

    Newton steps, halved until the loss falls enough (Lin, Lin & Weng, *A note on Platt's probabilistic
    outputs for support vector machines*, 2007). A direction in which the loss is flat, such as the slope of
    a constant feature, keeps its value.

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
    for _ in range(_MAX_STEPS):
        done = ~(decrease > _CLOSE_ENOUGH * loss)
        theta[where[done]] -= step[done]  # the last step is too small to be measured
        done |= size < _SMALLEST_STEP
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
        live[j] = active[:, j] & (left[j, j] > _FLAT * hessian[(0, 3, 5)[j]])
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


@np.errstate(all="ignore")  # extreme scores
def fit_affine(segments: SegmentArrays, intercept: bool) -> FloatArray:
    """Slope and intercept of every segment, (m, 3).

    With an intercept this is Platt scaling; scores that are all equal get slope 0. Without, it is the
    inverse temperature, 0 where the optimum is negative and 1 where all scores are 0.
    """
    scores, targets, weights, offsets = segments
    out = np.tile([0.0 if intercept else 1.0, 0.0, 0.0], (len(offsets) - 1, 1))
    some = np.diff(offsets) > 0
    if not some.any():
        return out
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
    return out


@np.errstate(all="ignore")  # extreme scores
def fit_beta(segments: SegmentArrays) -> FloatArray:
    """a, b and c of ``a log p - b log(1 - p) + c`` of every segment, (m, 3).

    A slope that comes out negative is dropped and the rest refitted, which is the constrained optimum where
    one slope was negative. Where both were, the first is dropped, then the second instead, then both, until
    no slope is negative.
    """
    scores, targets, weights, offsets = segments
    features = np.stack([-np.logaddexp(0.0, -scores), np.logaddexp(0.0, scores)])
    out = np.zeros((len(offsets) - 1, 3))
    some = np.diff(offsets) > 0
    if not some.any():
        return out
    rows = SegmentRows(features, targets, weights, np.append(offsets[:-1][some], offsets[-1]))
    low, high, mean_target = rows.platt_targets()
    rows, mean, spread = rows.standardised(EQUAL_LOGS, centred=True)
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
    return out


@BINARY.register("temperature")
class BinaryTemperature(BinaryCalibrator):
    """Temperature scaling: one factor >= 0 for all log-odds, by maximum likelihood.

    It suits scores that are only over- or under-confident. Platt's targets, as in `PlattScaling`, keep the
    factor finite if all scores have the right sign. A factor that would be negative is set to 0; if all
    scores are 0, it is 1.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger, *On calibration of modern neural networks*, ICML 2017.

    Examples
    --------
    >>> from dichotomies.calibrators.binary import BinaryTemperature
    >>> sure = BinaryTemperature().fit([9.0, 8.0, -7.0, -9.0, -8.0], [1, 0, 0, 0, 1])
    >>> sure.predict_log_odds([9.0]).round(2)
    array([0.28])
    """

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        maps = ScoreMaps.affine(fit_affine(segments.arrays, False), "temperature")
        return maps.identity_where_empty(segments)


@BINARY.register("beta")
class BetaCalibration(BinaryCalibrator):
    """Beta calibration: log-odds ``a log p - b log(1 - p) + c`` with a, b >= 0, by maximum likelihood.

    Scores are log-odds: ``p = 1 / (1 + exp(-score))``. A negative a or b is set to 0 and the others are
    refitted, as in the paper. Platt's targets, as in `PlattScaling`, keep the parameters finite. With a = b
    this is Platt scaling.

    References
    ----------
    Kull, Silva Filho & Flach, *Beta calibration: a well-founded and easily implemented improvement on
    logistic calibration for binary classifiers*, AISTATS 2017.

    Examples
    --------
    >>> from dichotomies.calibrators.binary import BetaCalibration
    >>> beta = BetaCalibration().fit([3.0, 2.0, 1.0, -1.0, -2.0, -3.0], [1, 0, 1, 0, 1, 0])
    >>> beta.predict_proba([0.0]).round(2)
    array([[0.5, 0.5]])
    """

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        return ScoreMaps.beta(fit_beta(segments.arrays), "beta").identity_where_empty(segments)


@BINARY.register("platt")
class PlattScaling(BinaryCalibrator):
    """Platt scaling: slope and intercept by maximum likelihood with Platt's prior-corrected targets.

    The targets are ``(N+ + 1) / (N+ + 2)`` on the positive side and ``1 / (N- + 2)`` on the other, which
    keeps the parameters finite under perfect separation and with one side absent. If all scores are equal,
    the slope is 0. It is negative if positive rows have lower scores.

    References
    ----------
    Platt, *Probabilistic outputs for support vector machines*, 1999; Lin, Lin & Weng, *A note on Platt's
    probabilistic outputs for support vector machines*, 2007.

    Examples
    --------
    >>> from dichotomies.calibrators.binary import PlattScaling
    >>> platt = PlattScaling().fit([5.0, -4.0, 1.0], [1, 0, 0])
    >>> platt.maps_.parameters.round(5).tolist()
    [[0.20261, -0.65237, 0.0]]
    >>> platt.predict_proba([2.0]).round(3)
    array([[0.561, 0.439]])
    """

    is_monotone: ClassVar[bool] = False

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        return ScoreMaps.affine(fit_affine(segments.arrays, True), "platt").identity_where_empty(segments)


# quadratic scaling of earlier versions: what it was fitted to is in its maps
CATALOGUE.retire("binary-calibrator/quadratic", PlattScaling, Estimator())
