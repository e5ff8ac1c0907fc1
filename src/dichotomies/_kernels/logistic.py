"""Logistic likelihoods of one intercept and one or two slopes, maximised by a safeguarded Newton method.

All parametric calibrators maximise the same function: with ``z_i = theta_0 + sum_j theta_j x_ji``, minimise
``sum_i w_i (log(1 + exp(z_i)) - t_i z_i)``, where the target ``t_i`` is `high` on the positive side and
`low` on the other. Targets strictly between 0 and 1 keep the optimum finite under perfect separation.
"""

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._typing import BoolArray, FloatArray

MAX_STEPS = 100
SMALLEST_STEP = 2.0**-40
CLOSE_ENOUGH = 1e-9  # decrease promised by the last step, as a part of the loss; it leaves about the square
LARGE = 1e100
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

    The logarithms of rows of weight 1 are taken together, as that of a product: they would be half of
    the work.
    """
    two = len(features) == 2
    product = 1.0
    loss = g0 = g1 = g2 = h00 = h01 = h02 = h11 = h12 = h22 = 0.0
    for i in range(len(targets)):
        x1 = features[0, i]
        x2 = features[1, i] if two else 0.0
        target = high if targets[i] else low
        z = theta[0] + theta[1] * x1 + theta[2] * x2
        tail = np.exp(-abs(z))
        likelier = 1.0 / (1.0 + tail)
        p = likelier if z >= 0.0 else tail * likelier
        loss += weights[i] * (max(z, 0.0) - target * z)
        if weights[i] == 1.0:
            product *= 1.0 + tail
            if product > LARGE:
                loss += np.log(product)
                product = 1.0
        else:
            loss += weights[i] * np.log1p(tail)
        slope = weights[i] * (p - target)
        curve = weights[i] * tail * likelier * likelier
        g0, g1, g2 = g0 + slope, g1 + slope * x1, g2 + slope * x2
        h00, h01, h02 = h00 + curve, h01 + curve * x1, h02 + curve * x2
        h11, h12, h22 = h11 + curve * x1 * x1, h12 + curve * x1 * x2, h22 + curve * x2 * x2
    gradient[0], gradient[1], gradient[2] = g0, g1, g2
    hessian[0, 0], hessian[1, 1], hessian[2, 2] = h00, h11, h22
    hessian[0, 1] = hessian[1, 0] = h01
    hessian[0, 2] = hessian[2, 0] = h02
    hessian[1, 2] = hessian[2, 1] = h12
    return float(loss + np.log(product))


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
    slope of a feature that is constant, keeps the value it came with. Where `theta` is a worse start
    than to give every row the probability of `safe`, which has no slopes, that is the start.
    """
    gradient, step, hessian = np.empty(3), np.empty(3), np.empty((3, 3))
    loss = evaluate(features, targets, weights, low, high, theta, gradient, hessian)
    if theta[1] != 0.0 and not loss <= constant_loss(targets, weights, low, high, safe[0]):
        theta[:] = safe
        loss = evaluate(features, targets, weights, low, high, theta, gradient, hessian)
    for _ in range(MAX_STEPS):
        decrease = newton_step(gradient, hessian, active, step)
        if not decrease > CLOSE_ENOUGH * loss:
            theta -= step  # the last step is too small to be measured, and still squares the error
            return
        size = 1.0
        while True:
            trial = theta - size * step
            reached = evaluate(features, targets, weights, low, high, trial, gradient, hessian)
            if reached <= loss - 1e-4 * size * decrease:
                break
            size *= 0.5
            if size < SMALLEST_STEP:
                return
        theta[:] = trial
        loss = reached
