"""Logistic likelihoods of one intercept and one or two slopes, maximised by a safeguarded Newton method.

All parametric calibrators maximise the same function: with ``z_i = theta_0 + sum_j theta_j x_ji``, minimise
``sum_i w_i (log(1 + exp(z_i)) - t_i z_i)``, where the target ``t_i`` is `high` on the positive side and
`low` on the other. Targets strictly between 0 and 1 keep the optimum finite under perfect separation.
"""

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray
from dichotomies._kernels.compile import kernel, vector_kernel
from dichotomies._kernels.elementary import copy, dot, take_exponentials, take_logs

MAX_STEPS = 100
SMALLEST_STEP = 2.0**-40
CLOSE_ENOUGH = 1e-9  # decrease promised by the last step, as a part of the loss; it leaves about the square
CHUNK = 256  # rows worked on together
FLAT = 1e-12  # curvature that elimination leaves, as a part of what was there


@kernel
def softplus(z: float) -> float:
    """``log(1 + exp(z))`` without overflow."""
    return float(max(z, 0.0) + np.log1p(np.exp(-abs(z))))


@kernel
def platt_targets(targets: BoolArray, weights: FloatArray) -> tuple[float, float, float]:
    """Platt's targets of either side and their mean: ``1 / (N- + 2)``, ``(N+ + 1) / (N+ + 2)``.

    They are the posterior means of a coin that fell one way N times. N is a sum of weights. The mean is
    0.5 where no row has a weight.
    """
    positive = negative = 0.0
    for i in range(len(targets)):
        if targets[i]:
            positive += weights[i]
        else:
            negative += weights[i]
    low, high = 1.0 / (negative + 2.0), (positive + 1.0) / (positive + 2.0)
    total = positive + negative
    mean = 0.5 if total == 0.0 else (negative / total) * low + (positive / total) * high
    return low, high, mean


@kernel
def evaluate(
    features: FloatArray,
    targets: BoolArray,
    weights: FloatArray,
    low: float,
    high: float,
    theta: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
) -> float:
    """Write gradient (3,) and Hessian (3, 3), and return the loss; `features` has one or two rows.

    With one row of features, the second slope must be 0, and its derivatives mean nothing.
    """
    gradient[:] = 0.0
    hessian[:] = 0.0
    loss = 0.0
    z, tail = np.empty(min(len(targets), CHUNK)), np.empty(min(len(targets), CHUNK))
    for begin in range(0, len(targets), CHUNK):
        rows = slice(begin, min(begin + CHUNK, len(targets)))
        x1, x2 = features[0, rows], features[len(features) - 1, rows]
        own_z, own_tail = z[: len(x1)], tail[: len(x1)]
        score(x1, x2, theta, own_z, own_tail)
        take_exponentials(own_tail)
        loss += add_derivatives(
            x1, x2, targets[rows], weights[rows], low, high, own_z, own_tail, gradient, hessian
        )
        for i in range(len(own_tail)):
            own_tail[i] += 1.0
        take_logs(own_tail)
        loss += dot(weights[rows], own_tail)
    for i in range(3):
        for j in range(i):
            hessian[i, j] = hessian[j, i]
    return loss


@vector_kernel
def score(x1: FloatArray, x2: FloatArray, theta: FloatArray, z: FloatArray, minus: FloatArray) -> None:
    """Write the log-odds and minus their absolute value."""
    intercept, slope_1, slope_2 = theta[0], theta[1], theta[2]
    for i in range(len(z)):
        z[i] = intercept + slope_1 * x1[i] + slope_2 * x2[i]
    for i in range(len(z)):
        minus[i] = -abs(z[i])


@vector_kernel
def add_derivatives(
    x1: FloatArray,
    x2: FloatArray,
    targets: BoolArray,
    weights: FloatArray,
    low: float,
    high: float,
    z: FloatArray,
    tail: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
) -> float:
    """Add to the gradient and to the upper half of the Hessian; return the loss but for its logarithms.

    `tail` is ``exp(-|z|)``.
    """
    loss = g0 = g1 = g2 = h00 = h01 = h02 = h11 = h12 = h22 = 0.0
    for i in range(len(z)):
        target = high if targets[i] else low
        likelier = 1.0 / (1.0 + tail[i])
        p = likelier if z[i] >= 0.0 else tail[i] * likelier
        loss += weights[i] * (max(z[i], 0.0) - target * z[i])
        slope = weights[i] * (p - target)
        curve = weights[i] * (tail[i] * (likelier * likelier))
        curve_1, curve_2 = curve * x1[i], curve * x2[i]
        g0, g1, g2 = g0 + slope, g1 + slope * x1[i], g2 + slope * x2[i]
        h00, h01, h02 = h00 + curve, h01 + curve_1, h02 + curve_2
        h11, h12, h22 = h11 + curve_1 * x1[i], h12 + curve_1 * x2[i], h22 + curve_2 * x2[i]
    gradient[0], gradient[1], gradient[2] = gradient[0] + g0, gradient[1] + g1, gradient[2] + g2
    hessian[0, 0], hessian[0, 1], hessian[0, 2] = (
        hessian[0, 0] + h00,
        hessian[0, 1] + h01,
        hessian[0, 2] + h02,
    )
    hessian[1, 1], hessian[1, 2], hessian[2, 2] = (
        hessian[1, 1] + h11,
        hessian[1, 2] + h12,
        hessian[2, 2] + h22,
    )
    return loss


@kernel
def newton_step(gradient: FloatArray, hessian: FloatArray, active: BoolArray, step: FloatArray) -> float:
    """Solve ``hessian @ step = gradient`` in the active, curved directions; return ``gradient @ step``."""
    left, right, live = hessian.copy(), gradient.copy(), active.copy()
    for j in range(len(step)):
        live[j] = active[j] and left[j, j] > FLAT * hessian[j, j]
        if live[j]:
            for i in range(j + 1, len(step)):
                ratio = left[i, j] / left[j, j]
                right[i] -= ratio * right[j]
                for k in range(j + 1, len(step)):
                    left[i, k] -= ratio * left[j, k]
    decrease = 0.0
    for j in range(len(step) - 1, -1, -1):
        step[j] = 0.0
        if live[j]:
            for i in range(j + 1, len(step)):
                right[j] -= left[j, i] * step[i]
            step[j] = right[j] / left[j, j]
            decrease += gradient[j] * step[j]
    return decrease


@kernel
def constant_loss(targets: BoolArray, weights: FloatArray, low: float, high: float, z: float) -> float:
    """The loss if all rows have log-odds `z`."""
    total = mean = 0.0
    for i in range(len(targets)):
        total += weights[i]
        mean += weights[i] * (high if targets[i] else low)
    return total * softplus(z) - mean * z


@kernel
def maximise(
    features: FloatArray,
    targets: BoolArray,
    weights: FloatArray,
    low: float,
    high: float,
    active: BoolArray,
    safe: FloatArray,
    theta: FloatArray,
) -> None:
    """Improve the active parameters of `theta` (3,) up to the optimum.

    Newton steps, halved until the loss falls enough (Lin, Lin & Weng, *A note on Platt's probabilistic
    outputs for support vector machines*, 2007). A direction in which the loss is flat, such as the
    slope of a constant feature, keeps its value. If `theta` is a worse start than `safe`, which has no
    slopes, `safe` is the start.
    """
    gradient, step, trial, hessian = np.empty(3), np.empty(3), np.empty(3), np.empty((3, 3))
    loss = evaluate(features, targets, weights, low, high, theta, gradient, hessian)
    if theta[1] != 0.0 and not loss <= constant_loss(targets, weights, low, high, safe[0]):
        copy(safe, theta)
        loss = evaluate(features, targets, weights, low, high, theta, gradient, hessian)
    for _ in range(MAX_STEPS):
        decrease = newton_step(gradient, hessian, active, step)
        if not decrease > CLOSE_ENOUGH * loss:
            for j in range(3):
                theta[j] -= step[j]  # the last step is too small to be measured, and still squares the error
            return
        size = 1.0
        while True:
            for j in range(3):
                trial[j] = theta[j] - size * step[j]
            reached = evaluate(features, targets, weights, low, high, trial, gradient, hessian)
            if reached <= loss - 1e-4 * size * decrease:
                break
            size *= 0.5
            if size < SMALLEST_STEP:
                return
        copy(trial, theta)
        loss = reached
