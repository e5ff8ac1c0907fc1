"""Logistic likelihoods of many segments maximised together in plain numpy; see `logistic` for the function.

All segments take their Newton steps side by side, so that the interpreter runs one loop over steps instead of
one over segments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.logistic import CLOSE_ENOUGH, FLAT, MAX_STEPS, SMALLEST_STEP

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
