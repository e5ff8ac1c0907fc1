"""Truncated Newton steps by preconditioned conjugate gradients, for nodes with many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.newton.loss import dot, evaluate, largest, loss_along
from dichotomies._kernels.newton.rows import (
    curved_product,
    precondition,
    prepare,
    product,
    transposed_product,
)

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray

_MAX_PRODUCTS = 250
_SMALLEST_STEP = 2.0**-60
_NEGLIGIBLE = 1e-12  # decrease, as a part of the objective, that rounding errors may hide


@vector_kernel
def conjugate_gradients(
    X: Any,
    curve: FloatArray,
    penalty: FloatArray,
    factor: FloatArray,
    residual: FloatArray,
    enough: float,
    has_intercept: bool,
    step: FloatArray,
    scores: FloatArray,
) -> int:
    """Solve ``(X' D X + penalty) step = residual`` until ``residual' M^-1 residual <= enough``.

    Writes the step and its scores ``X step``, overwrites the residual, returns the number of products.
    """
    n_parameters = len(step)
    direction, image, better = np.empty(n_parameters), np.empty(n_parameters), np.empty(n_parameters)
    along = np.empty(len(scores))
    step[:] = 0.0
    scores[:] = 0.0
    precondition(factor, residual, better)
    direction[:] = better
    energy = dot(residual, better)
    for products in range(1, _MAX_PRODUCTS + 1):
        if not has_intercept:
            direction[-1] = 0.0
        curved_product(X, curve, direction, along, image)
        for j in range(n_parameters):
            image[j] += penalty[j] * direction[j]
        size = energy / dot(direction, image)
        for j in range(n_parameters):
            step[j] += size * direction[j]
            residual[j] -= size * image[j]
        if not has_intercept:
            residual[-1] = 0.0
        for i in range(len(scores)):
            scores[i] += size * along[i]
        precondition(factor, residual, better)
        last, energy = energy, dot(residual, better)
        if energy <= enough:
            return products
        for j in range(n_parameters):
            direction[j] = better[j] + energy / last * direction[j]
    return _MAX_PRODUCTS


@vector_kernel
def refresh_after(n: int, p: int, factor: FloatArray) -> float:
    """Products of a step after which it pays to make a preconditioner anew; one costs this many products."""
    if len(factor) == 1:
        return 0.0
    sampled = min(n, 64 * n / p + 8 * p)
    return float(1.5 + (sampled * p / 40.0 + p * p / 60.0) / n)


@vector_kernel
def backtrack(
    z: FloatArray,
    scores: FloatArray,
    y: FloatArray,
    cost: FloatArray,
    loss: float,
    decrease: float,
    lean: float,
    bend: float,
) -> float:
    """Halve a step until the objective falls in proportion to it (Armijo's rule); return its size.

    Parameters
    ----------
    z, scores : (n,)
        Scores of the rows, and what a whole step adds to them.
    loss, decrease : float
        The loss now, and how fast the objective falls along the step.
    lean, bend : float
        What a step of size s adds to the penalty is ``s lean + s^2 bend``.
    """
    size = 1.0
    while size > _SMALLEST_STEP:
        change = loss_along(z, scores, size, y, cost) - loss + size * lean + size * size * bend
        if change <= -1e-4 * size * decrease:
            break
        size *= 0.5
    return size


@vector_kernel
def solve_primal(  # noqa: C901 - one loop, told once
    X: Any,
    y: FloatArray,
    cost: FloatArray,
    penalty: FloatArray,
    tolerance: float,
    max_iter: int,
    theta: FloatArray,
    z: FloatArray,
    factor: FloatArray,
    is_prepared: bool,
    accuracy: float,
) -> int:
    """Improve `theta` (p + 1,) up to the optimum and write the rows' scores; return the number of steps.

    The number counts the last look as one; it is negative, or 0, where the optimum was not reached.

    Parameters
    ----------
    X : array (n, p) or tuple of a CSR matrix's arrays
        See `newton_rows`.
    cost : (n,)
        0 for rows that are only scored.
    penalty : (p + 1,)
        Penalty of each parameter; infinite for an intercept that is to stay 0.
    tolerance : float
        Largest derivative allowed.
    factor : (p + 1, p + 1) or (1, p + 1)
        Preconditioner, kept for the next call.
    is_prepared : bool
        Whether it comes prepared, by a similar problem.
    accuracy : float
        Error of the parameters allowed, in the norm of the Hessian, as a part of them.
    """
    n, n_parameters = len(z), len(theta)
    slope, curve, scores = np.empty(n), np.empty(n), np.empty(n)
    gradient, better, step = np.empty(n_parameters), np.empty(n_parameters), np.empty(n_parameters)
    has_intercept = penalty[-1] < np.inf
    bounded = penalty.copy()
    if not has_intercept:
        bounded[-1] = 1.0
    expensive = refresh_after(n, n_parameters, factor)
    products = 0 if is_prepared else _MAX_PRODUCTS
    product(X, theta, z)
    loss = evaluate(z, y, cost, slope, curve)
    first_energy = stalled = 0.0
    for iteration in range(max_iter + 1):
        transposed_product(X, slope, gradient)
        if not has_intercept:
            gradient[-1] = 0.0
        for j in range(n_parameters):
            gradient[j] -= bounded[j] * theta[j]
        if products > expensive:
            prepare(X, curve, bounded, factor)
        precondition(factor, gradient, better)
        energy = dot(gradient, better)
        square = dot(theta, theta) - theta[-1] ** 2
        target = accuracy**2 * (square + 1e-2 * min(1.0, curve.sum()))
        if (largest(gradient) <= tolerance and energy <= target) or stalled >= 2:
            return iteration + 1
        if iteration == max_iter:
            break
        first_energy = max(first_energy, energy)
        forcing = min(1e-2, max(1e-6, energy / first_energy))
        products = conjugate_gradients(
            X, curve, bounded, factor, gradient.copy(), max(forcing * energy, 0.3 * target), has_intercept,
            step, scores,
        )  # fmt: skip
        decrease, before = dot(gradient, step), loss + 0.5 * dot(bounded * theta, theta)
        is_negligible = decrease <= _NEGLIGIBLE * before
        size = 1.0
        if not is_negligible:
            lean, bend = dot(bounded * theta, step), 0.5 * dot(bounded * step, step)
            size = backtrack(z, scores, y, cost, loss, decrease, lean, bend)
        if size <= _SMALLEST_STEP:
            return -iteration - 1
        stalled += is_negligible
        for j in range(n_parameters):
            theta[j] += size * step[j]
        for i in range(n):
            z[i] += size * scores[i]
        loss = evaluate(z, y, cost, slope, curve)
    return -max_iter
