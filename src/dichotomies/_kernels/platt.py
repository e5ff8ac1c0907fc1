"""Parametric calibration of all segments: Platt and quadratic scaling, temperature, beta calibration."""

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.logistic import maximise, platt_targets, softplus
from dichotomies._kernels.score_maps import share_of_range

#: Values that differ by less than this part of their size count as equal.
EQUAL = 1e-12
#: Likewise for log p and log(1 - p): nearer to 0 they say nothing that the other one does not.
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


@standardise.plainly
def _standardise(values: FloatArray, weights: FloatArray, centred: bool, equal: float) -> tuple[float, float]:
    total = weights.sum()
    mean = weights @ values / total if centred and total > 0.0 else 0.0
    largest = np.abs(values[weights > 0.0]).max(initial=0.0)
    values -= mean
    spread = np.sqrt(weights @ (values * values) / total) if total > 0.0 else 0.0
    if spread <= equal * largest:
        values[:] = 0.0
        return mean, 0.0
    values /= spread
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


@discriminate.plainly
def _discriminate(values: FloatArray, targets: BoolArray, weights: FloatArray, theta: FloatArray) -> None:
    of_0, of_1 = weights[~targets], weights[targets]
    total = of_0.sum() + of_1.sum()
    if not (of_0.sum() > 0.0 and of_1.sum() > 0.0):
        return
    mean_0, mean_1 = of_0 @ values[~targets] / of_0.sum(), of_1 @ values[targets] / of_1.sum()
    between = (mean_1 - mean_0) ** 2 * (of_0.sum() / total) * (of_1.sum() / total)
    theta[1] = (mean_1 - mean_0) / max(1.0 - between, 0.01)
    theta[0] -= theta[1] * (mean_0 + mean_1) / 2


def plain_seconds(n_rows: int, n_segments: int) -> float:
    """Estimate how long plain code takes for `fit_affine`, `fit_beta` or `fit_quadratic`."""
    return 1e-3 * n_segments + 1e-6 * n_rows


@kernel(seconds=5)
def fit_affine(
    scores: FloatArray,
    targets: BoolArray,
    weights: FloatArray,
    offsets: IntArray,
    intercept: bool,
    out: FloatArray,
) -> None:
    """Write slope and intercept of every segment into `out` (m, 3).

    With an intercept this is Platt scaling; scores that are all equal get slope 0. Without, it is the
    inverse temperature, 0 where the optimum is negative and 1 where all scores are 0.
    """
    for k in range(len(offsets) - 1):
        rows = slice(offsets[k], offsets[k + 1])
        out[k, 0], out[k, 1] = affine(scores[rows], targets[rows], weights[rows], intercept)
        out[k, 2] = 0.0


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


@kernel(seconds=5)
def fit_beta(
    scores: FloatArray, targets: BoolArray, weights: FloatArray, offsets: IntArray, out: FloatArray
) -> None:
    """Write a, b and c of ``a log p - b log(1 - p) + c`` of every segment into `out` (m, 3)."""
    for k in range(len(offsets) - 1):
        rows = slice(offsets[k], offsets[k + 1])
        features = np.empty((2, offsets[k + 1] - offsets[k]))
        log_sides(scores[rows], features)
        fit_slopes(features, targets[rows], weights[rows], EQUAL_LOGS, out[k])


@kernel(seconds=5)
def fit_quadratic(
    scores: FloatArray,
    targets: BoolArray,
    weights: FloatArray,
    offsets: IntArray,
    ends: FloatArray,
    out: FloatArray,
) -> None:
    """Write a, b and c of ``b t^2 / 2 - a (1 - t)^2 / 2 + c`` of every segment into `out` (m, 3).

    `ends` (2 m,) are the lowest and the highest score of each segment, between which t goes from 0 to 1.
    """
    for k in range(len(offsets) - 1):
        rows = slice(offsets[k], offsets[k + 1])
        features = np.empty((2, offsets[k + 1] - offsets[k]))
        end_parabolas(scores[rows], ends[2 * k], ends[2 * k + 1], features)
        fit_slopes(features, targets[rows], weights[rows], EQUAL, out[k])


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
def end_parabolas(scores: FloatArray, low: float, high: float, out: FloatArray) -> None:
    """Write ``-(1 - t)^2 / 2`` and ``t^2 / 2`` for scores from `low` (t = 0) to `high` (t = 1)."""
    for i in range(len(scores)):
        t = min(max(share_of_range(scores[i], low, high), 0.0), 1.0)
        out[0, i], out[1, i] = -0.5 * (1.0 - t) ** 2, 0.5 * t * t


@end_parabolas.plainly
def _end_parabolas(scores: FloatArray, low: float, high: float, out: FloatArray) -> None:
    t = np.clip((scores - low) / (high - low), 0.0, 1.0) if high > low else np.zeros(len(scores))
    out[0], out[1] = -0.5 * (1.0 - t) ** 2, 0.5 * t * t


@kernel
def log_sides(scores: FloatArray, out: FloatArray) -> None:
    """Write ``log p`` and ``-log(1 - p)``."""
    for i in range(len(scores)):
        out[0, i], out[1, i] = -softplus(-scores[i]), softplus(scores[i])


@log_sides.plainly
def _log_sides(scores: FloatArray, out: FloatArray) -> None:
    out[0], out[1] = -np.logaddexp(0.0, -scores), np.logaddexp(0.0, scores)


@kernel
def increasing_beta(features: FloatArray, targets: BoolArray, weights: FloatArray) -> FloatArray:
    """Fit intercept and two slopes >= 0: a slope that comes out negative is dropped and the rest refitted.

    That is the constrained optimum where one slope was negative. Where both were, the first is
    dropped, then the second instead, then both, until what is left is not negative.
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
