"""Newton's method in function space, for nodes with fewer rows than features.

By the representer theorem ``w = X' a``; everything is written with the Gram matrix ``K = X X'``. A step
solves ``(K + W^-1) a + b 1 = z + W^-1 g`` and ``1' a = 0`` with the curvatures W and pulls g of the rows, by
a Cholesky factor of ``B = I + W^1/2 K W^1/2`` (Rasmussen & Williams, *Gaussian Processes for Machine
Learning*, algorithm 3.1), whose eigenvalues are never below 1. A penalised intercept is a constant added
to K.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.newton.blas import factorise, solve_backward, solve_forward
from dichotomies._kernels.newton.loss import dot, evaluate, largest, loss_along

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

_SMALLEST_STEP = 2.0**-60  # where all rows are saturated, a free intercept can be sent very far
_NEGLIGIBLE = 1e-11  # decrease, as a part of the objective, that rounding errors may hide


@vector_kernel
def newton_target(
    K: FloatArray,
    z: FloatArray,
    slope: FloatArray,
    curve: FloatArray,
    free_intercept: bool,
    factor: FloatArray,
    a: FloatArray,
    ones: FloatArray,
) -> tuple[bool, float]:
    """Write the coefficients `a` after a full step; return whether it could be taken, and the intercept."""
    n = len(z)
    for i in range(n):
        root = np.sqrt(curve[i])
        ones[i] = root
        a[i] = root * z[i] + slope[i] / root
    for i in range(n):
        row, out, root = K[i], factor[i], ones[i]
        for j in range(i + 1):
            out[j] = row[j] * root * ones[j]
        out[i] += 1.0
    if not factorise(factor):
        return False, 0.0
    solve_forward(factor, a)
    intercept = 0.0
    if free_intercept:
        solve_forward(factor, ones)
        intercept = dot(ones, a) / dot(ones, ones)
        for i in range(n):
            a[i] -= intercept * ones[i]
    solve_backward(factor, a)
    for i in range(n):
        a[i] *= np.sqrt(curve[i])
    return True, intercept


@vector_kernel
def multiply(K: FloatArray, a: FloatArray, intercept: float, out: FloatArray) -> None:
    """``K a + b``."""
    for i in range(len(out)):
        out[i] = dot(K[i], a) + intercept


@vector_kernel
def gradient_norm(K: FloatArray, a: FloatArray, slope: FloatArray, free: bool, rest: FloatArray) -> float:
    """A bound of the largest derivative: the norm of ``X' (a - g)``, and the sum of pulls."""
    total = pulls = 0.0
    for i in range(len(a)):
        rest[i] = a[i] - slope[i]
        pulls += slope[i]
    for i in range(len(a)):
        total += rest[i] * dot(K[i], rest)
    norm = np.sqrt(max(total, 0.0))
    return float(max(norm, abs(pulls)) if free else norm)


@vector_kernel
def fallback(y: FloatArray, cost: FloatArray, free_intercept: bool) -> float:
    """The log-odds of the sides, the best answer without features."""
    left = right = 0.0
    for i in range(len(y)):
        if y[i] > 0.0:
            left += cost[i]
        else:
            right += cost[i]
    return float(np.log(left / right)) if free_intercept else 0.0


@vector_kernel
def solve_dual(  # noqa: C901 - one loop, told once
    K: FloatArray,
    y: FloatArray,
    cost: FloatArray,
    free_intercept: bool,
    tolerance: float,
    close: float,
    max_iter: int,
    a: FloatArray,
    work: FloatArray,
    factor: FloatArray,
) -> tuple[int, float]:
    """Find the optimum: write its coefficients `a` (n,); return the number of steps, and the intercept.

    The number is negative, or 0, where the optimum was not reached.

    Parameters
    ----------
    K : (n, n)
        Gram matrix; all costs are positive.
    tolerance : float
        Largest derivative allowed.
    close : float
        A step that moves scores by less than this part of them is the last: what it leaves to do is about
        its square.
    work : (6, n)
        Scratch, but its first row holds scores of the rows by a similar model, from which to start.
    factor : (n, n)
        Scratch.
    """
    z, slope, curve, target, step, ones = work[0], work[1], work[2], work[3], work[4], work[5]
    plain = fallback(y, cost, free_intercept)
    evaluate(z, y, cost, slope, curve)
    # Where the similar model had other rows, its weights are not in the span of these; those one step from
    # it are.
    solved, intercept = newton_target(K, z, slope, curve, free_intercept, factor, a, ones)
    multiply(K, a, intercept, z)
    loss = evaluate(z, y, cost, slope, curve)
    penalty = 0.5 * (dot(a, z) - intercept * a.sum())
    step[:] = 0.0
    target[:] = plain
    if max_iter < 1 or not solved or not loss + penalty <= loss_along(target, step, 0.0, y, cost):
        a[:] = 0.0
        z[:] = plain
        intercept, penalty = plain, 0.0
        loss = evaluate(z, y, cost, slope, curve)
    for taken in range(2, max_iter + 1):
        solved, to = newton_target(K, z, slope, curve, free_intercept, factor, target, ones)
        if not solved:
            return -taken, intercept
        multiply(K, target, to, step)
        for i in range(len(a)):
            step[i] -= z[i]
            target[i] -= a[i]
        change = to - intercept
        # The penalty along the step is a parabola; the loss has to be looked up.
        bend = 0.5 * (dot(target, step) - change * target.sum())
        lean = dot(a, step) - change * a.sum()
        decrease = dot(slope, step) - lean
        size, before = 1.0, loss + penalty
        while size > _SMALLEST_STEP and decrease > _NEGLIGIBLE * before:
            after = loss_along(z, step, size, y, cost) + penalty + size * lean + size * size * bend
            if after <= before - 1e-4 * size * decrease:
                break
            size *= 0.5
        if size <= _SMALLEST_STEP:
            return -taken, intercept
        for i in range(len(a)):
            a[i] += size * target[i]
            z[i] += size * step[i]
        intercept += size * change
        loss = evaluate(z, y, cost, slope, curve)
        penalty += size * lean + size * size * bend
        is_close = size == 1.0 and largest(step) <= close * min(1.0, largest(z))
        if is_close or decrease <= _NEGLIGIBLE * before:
            if gradient_norm(K, a, slope, free_intercept, ones) <= tolerance:
                return taken, intercept
            if largest(step) <= 1e-10 * largest(z):
                return taken, intercept  # as good as rounding allows
    return -max_iter, intercept


@vector_kernel
def sub_matrix(K: FloatArray, kept: IntArray, out: FloatArray) -> None:
    """The rows and columns `kept`."""
    for i in range(len(kept)):
        row = K[kept[i]]
        for j in range(len(kept)):
            out[i, j] = row[kept[j]]
