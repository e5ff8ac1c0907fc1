"""Limited-memory Newton steps along the principal axes of all rows, in single precision.

Along these axes the second derivatives at any node are nearly diagonal: about the node's curvature times the
variances, plus the penalty. Steps that divide by that diagonal, corrected by the last few differences of
gradients (L-BFGS; Nocedal & Wright, *Numerical Optimization*, algorithm 7.4), reach the optimum in few looks
at the rows, without a matrix of second derivatives at any node.

Rows are centred, so that single precision is spent on what differs between them. A node's parameters are its
weights along the axes and, last, the score of its mean row, which hardly depends on the weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.newton.loss import dot

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, SingleArray

#: Differences of gradients remembered.
MEMORY = 8

#: Rows of a block are few enough to stay in a core's cache between two looks at them, in numbers.
_BLOCK_SIZE = 2**16

#: A step is too long where the objective rises at its end by more than this part of its fall at the start.
_OVERSHOT = 0.5

_F = np.float32
_LOG2_E, _LN_2, _MOST = _F(1.4426950408889634), _F(0.6931471805599453), _F(100.0)
_ONE, _HALF, _SIXTH = _F(1.0), _F(1 / 2), _F(1 / 6)
_24TH, _120TH, _720TH = _F(1 / 24), _F(1 / 120), _F(1 / 720)


class Axes(NamedTuple):
    """All rows along their principal axes.

    Attributes
    ----------
    rows : (n_rows, p), single precision
        Centred; no rows where nodes are not to be trained this way.
    variance : (p,)
        Along each axis.
    basis : (p, p)
        The axes, in its columns.
    center : (p,)
        What was subtracted from the rows, along the axes.
    reach : float
        Largest absolute mean of a feature.
    radius : float
        Length of the longest centred row.
    """

    rows: SingleArray
    variance: FloatArray
    basis: FloatArray
    center: FloatArray
    reach: float
    radius: float


class Problem(NamedTuple):
    """What a node's parameters are to fit.

    Attributes
    ----------
    rows, y, cost : (n, p), (n,), (n,), single precision
        Rows along the axes, +1 on the left and -1 on the right, and costs, 0 for rows that are only scored.
    mean : (p,)
        The node's mean row.
    variance : (p,)
        Along each axis.
    """

    rows: SingleArray
    y: SingleArray
    cost: SingleArray
    mean: FloatArray
    variance: FloatArray


class Goal(NamedTuple):
    """When to stop.

    Attributes
    ----------
    accuracy : float
        Error of the parameters allowed, in the norm of the Hessian, as a part of them.
    tolerance : float
        Largest derivative allowed.
    reach : float
        Largest absolute mean of a feature at the node.
    longest : float
        Length of the weights beyond which to give up.
    max_looks : int
        Looks at the rows after which to give up.
    """

    accuracy: float
    tolerance: float
    reach: float
    longest: float
    max_looks: int


class Memory(NamedTuple):
    """Steps (MEMORY, p + 1), changes of the gradient by them, and their products (MEMORY,)."""

    steps: FloatArray
    changes: FloatArray
    products: FloatArray


@vector_kernel
def pull(z: SingleArray, shift: np.float32, y: SingleArray, cost: SingleArray, slope: SingleArray) -> float:
    """Shift scores, write each row's pull (minus the derivative by its score); return the sum of curvatures.

    Single precision throughout; the exponential is a polynomial, which vector instructions can take.
    """
    curvature = _F(0.0)
    for i in range(len(z)):
        z[i] += shift
        exponent = min(max(y[i] * z[i] * _LOG2_E, -_MOST), _MOST)
        whole = np.floor(exponent + _HALF)
        r = (exponent - whole) * _LN_2
        tail = _ONE + r * (_ONE + r * (_HALF + r * (_SIXTH + r * (_24TH + r * (_120TH + r * _720TH)))))
        tail *= np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)  # 2^whole
        wrong = _ONE / (_ONE + tail)
        slope[i] = cost[i] * y[i] * wrong
        curvature += cost[i] * wrong * (_ONE - wrong)
    return float(curvature)


@vector_kernel
def look(problem: Problem, theta: FloatArray, z: SingleArray, out: FloatArray) -> float:
    """Write the rows' scores and minus the gradient; return the sum of curvatures. Reads the rows once."""
    rows, y, cost, mean, _ = problem
    n, p = rows.shape
    step = max(16, _BLOCK_SIZE // p)
    weights = theta[:p].astype(np.float32)
    shift = np.float32(theta[p] - dot(mean, theta[:p]))
    slope = np.empty(min(n, step), dtype=np.float32)
    sums = np.empty(p, dtype=np.float32)
    out[:] = 0.0
    curvature = total = 0.0
    for i in range(0, n, step):
        block = rows[i : i + step]
        m = len(block)
        scores, pulls = z[i : i + m], slope[:m]
        np.dot(block, weights, scores)
        curvature += pull(scores, shift, y[i : i + m], cost[i : i + m], pulls)
        total += pulls.sum()
        np.dot(block.T, pulls, sums)
        for j in range(p):
            out[j] += sums[j]
    for j in range(p):
        out[j] -= mean[j] * total + theta[j]
    out[p] = total
    return curvature


@vector_kernel
def quasi_newton(
    gradient: FloatArray, diagonal: FloatArray, memory: Memory, n_pairs: int, out: FloatArray
) -> None:
    """Write the step for a gradient: the two loops of L-BFGS around a diagonal."""
    steps, changes, products = memory
    parts = np.empty(MEMORY)
    out[:] = gradient
    for back in range(n_pairs - 1, max(n_pairs - MEMORY, 0) - 1, -1):
        at = back % MEMORY
        parts[at] = dot(steps[at], out) / products[at]
        for j in range(len(out)):
            out[j] -= parts[at] * changes[at, j]
    for j in range(len(out)):
        out[j] /= diagonal[j]
    for back in range(max(n_pairs - MEMORY, 0), n_pairs):
        at = back % MEMORY
        part = parts[at] - dot(changes[at], out) / products[at]
        for j in range(len(out)):
            out[j] += part * steps[at, j]


@vector_kernel
def is_reached(
    theta: FloatArray, gradient: FloatArray, diagonal: FloatArray, curvature: float, goal: Goal
) -> bool:
    """Whether the parameters are near enough to the optimum."""
    p = len(theta) - 1
    square, steepest = dot(theta[:p], theta[:p]), dot(gradient[:p], gradient[:p])
    energy = 0.0
    for j in range(p + 1):
        energy += gradient[j] ** 2 / diagonal[j]
    # Derivatives by the features are those along the axes, turned, and the means times that by the intercept.
    largest = np.sqrt(steepest) + goal.reach * abs(gradient[p])
    enough = goal.accuracy**2 * (square + 1e-2 * min(1.0, curvature))
    return bool(largest <= goal.tolerance and energy <= enough and square <= goal.longest**2)


@vector_kernel
def remember(
    memory: Memory, n_pairs: int, step: FloatArray, gradient: FloatArray, next_gradient: FloatArray
) -> int:
    """Keep a step in place of the oldest, unless rounding made it useless; return the number of pairs."""
    at = n_pairs % MEMORY
    for j in range(len(step)):
        memory.steps[at, j] = step[j]
        memory.changes[at, j] = gradient[j] - next_gradient[j]
    memory.products[at] = dot(memory.steps[at], memory.changes[at])
    return n_pairs + 1 if memory.products[at] > 0.0 else n_pairs


@vector_kernel
def solve_along_axes(
    problem: Problem,
    goal: Goal,
    theta: FloatArray,
    gradient: FloatArray,
    curvature: float,
    z: SingleArray,
    memory: Memory,
    n_pairs: int,
) -> tuple[int, int]:
    """Improve `theta` (p + 1,) up to the optimum and write the rows' scores.

    Returns the number of looks at the rows, negative where the optimum was not reached, and of pairs in
    memory.

    Parameters
    ----------
    gradient, curvature
        Minus the gradient at `theta`, and the sum of curvatures.
    memory, n_pairs
        Of a similar problem, to start with.
    """
    p = len(theta) - 1
    next_gradient, step, diagonal, target = np.empty((4, p + 1))
    looks = 1
    while True:
        diagonal[:p] = curvature * problem.variance + 1.0
        diagonal[p] = curvature
        if is_reached(theta, gradient, diagonal, curvature, goal):
            return looks, n_pairs
        quasi_newton(gradient, diagonal, memory, n_pairs, step)
        fall = dot(gradient, step)
        while True:
            if looks >= goal.max_looks or not fall > 0.0 or dot(theta[:p], theta[:p]) > goal.longest**2:
                return -looks, n_pairs
            target[:] = theta + step
            curvature = look(problem, target, z, next_gradient)
            looks += 1
            rise = -dot(next_gradient, step)
            if rise <= _OVERSHOT * fall:
                break
            shorter = min(0.7, max(0.1, fall / (fall + rise)))
            step *= shorter
            fall *= shorter
        n_pairs = remember(memory, n_pairs, step, gradient, next_gradient)
        gradient[:] = next_gradient
        theta[:] = target
