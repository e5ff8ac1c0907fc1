"""Limited-memory Newton steps for one logistic regression on centred rows, in single precision.

Steps divide by a diagonal of second derivatives, corrected by the last few differences of gradients (L-BFGS;
Nocedal & Wright, *Numerical Optimization*, algorithm 7.4). The parameters are weights and, last, the score of
the mean row, which hardly depends on the weights.

Loops rather than array expressions throughout: those take numba several times as long to compile.
"""

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray, SingleArray
from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.elementary import copy, dot, exponential

#: Differences of gradients remembered.
MEMORY = 8

#: Numbers of a block of rows, few enough to stay in a core's cache between two reads.
_BLOCK_SIZE = 2**16

#: A step is too long where the objective increases at its end by more than this part of its decrease at the
#: start.
_OVERSHOT = 0.5

_F = np.float32
_ONE = _F(1.0)


class Problem(NamedTuple):
    """The rows that a node's parameters are to fit.

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
    """Criteria to stop by.

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
    max_gradients : int
        Gradients after which to give up.
    """

    accuracy: float
    tolerance: float
    reach: float
    longest: float
    max_gradients: int


class Memory(NamedTuple):
    """Steps (MEMORY, p + 1), changes of the gradient by them, their products (MEMORY,), and how many (1,)."""

    steps: FloatArray
    changes: FloatArray
    products: FloatArray
    n_pairs: IntArray


@vector_kernel
def slopes(z: SingleArray, shift: np.float32, y: SingleArray, cost: SingleArray, out: SingleArray) -> float:
    """Shift scores, write minus the derivative of each row's loss by its score; return the sum of curvatures.

    Single precision throughout; the exponential is a polynomial, which vector instructions can take.
    """
    curvature = _F(0.0)
    for i in range(len(z)):
        z[i] += shift
        wrong = _ONE / (_ONE + exponential(y[i] * z[i]))
        out[i] = cost[i] * y[i] * wrong
        curvature += cost[i] * wrong * (_ONE - wrong)
    return float(curvature)


@vector_kernel
def gradient_at(problem: Problem, theta: FloatArray, z: SingleArray, out: FloatArray) -> float:
    """Write the rows' scores and minus the gradient; return the sum of curvatures. Reads the rows once."""
    rows, y, cost, mean, _ = problem
    n, p = rows.shape
    step = max(16, _BLOCK_SIZE // p)
    weights = np.empty(p, dtype=np.float32)
    copy(theta[:p], weights)
    shift = np.float32(theta[p] - dot(mean, theta[:p]))
    slope = np.empty(min(n, step), dtype=np.float32)
    sums = np.empty(p, dtype=np.float32)
    for j in range(p):
        out[j] = -theta[j]
    curvature = total = 0.0
    for i in range(0, n, step):
        block = rows[i : i + step]
        m = len(block)
        np.dot(block, weights, z[i : i + m])
        curvature += slopes(z[i : i + m], shift, y[i : i + m], cost[i : i + m], slope[:m])
        np.dot(block.T, slope[:m], sums)
        for j in range(m):
            total += slope[j]
        for j in range(p):
            out[j] += sums[j]
    for j in range(p):
        out[j] -= mean[j] * total
    out[p] = total
    return curvature


@vector_kernel
def quasi_newton(gradient: FloatArray, diagonal: FloatArray, memory: Memory, out: FloatArray) -> None:
    """Write the step for a gradient: the two loops of L-BFGS around a diagonal."""
    steps, changes, products, _ = memory
    n_pairs = memory.n_pairs[0]
    parts = np.empty(MEMORY)
    copy(gradient, out)
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
    """Test whether the parameters are near enough to the optimum."""
    p = len(theta) - 1
    square = steepest = energy = 0.0
    for j in range(p):
        square += theta[j] ** 2
        steepest += gradient[j] ** 2
        energy += gradient[j] ** 2 / diagonal[j]
    energy += gradient[p] ** 2 / diagonal[p]
    # Derivatives by the features are those along the axes, turned, and the means times that by the intercept.
    largest = np.sqrt(steepest) + goal.reach * abs(gradient[p])
    enough = goal.accuracy**2 * (square + 1e-2 * min(1.0, curvature))
    return bool(largest <= goal.tolerance and energy <= enough and square <= goal.longest**2)


@vector_kernel
def remember(memory: Memory, step: FloatArray, gradient: FloatArray, next_gradient: FloatArray) -> None:
    """Keep a step in place of the oldest, unless rounding made it useless."""
    at = memory.n_pairs[0] % MEMORY
    for j in range(len(step)):
        memory.steps[at, j] = step[j]
        memory.changes[at, j] = gradient[j] - next_gradient[j]
    memory.products[at] = dot(memory.steps[at], memory.changes[at])
    if memory.products[at] > 0.0:
        memory.n_pairs[0] += 1


@vector_kernel
def solve(
    problem: Problem,
    goal: Goal,
    theta: FloatArray,
    gradient: FloatArray,
    curvature: float,
    z: SingleArray,
    memory: Memory,
) -> int:
    """Improve `theta` (p + 1,) up to the optimum and write the rows' scores.

    Returns the number of gradients, negative where the optimum was not reached.

    Parameters
    ----------
    gradient, curvature
        Minus the gradient at `theta`, and the sum of curvatures.
    memory : Memory
        Of a similar problem, to start with.
    """
    p = len(theta) - 1
    scratch = np.empty((4, p + 1))
    next_gradient, step, diagonal, target = scratch[0], scratch[1], scratch[2], scratch[3]
    n_gradients = 1
    while True:
        for j in range(p):
            diagonal[j] = curvature * problem.variance[j] + 1.0
        diagonal[p] = curvature
        if is_reached(theta, gradient, diagonal, curvature, goal):
            return n_gradients
        quasi_newton(gradient, diagonal, memory, step)
        decrease, square = dot(gradient, step), dot(theta[:p], theta[:p])
        while True:
            if n_gradients >= goal.max_gradients or not decrease > 0.0 or square > goal.longest**2:
                return -n_gradients
            for j in range(p + 1):
                target[j] = theta[j] + step[j]
            curvature = gradient_at(problem, target, z, next_gradient)
            n_gradients += 1
            increase = -dot(next_gradient, step)
            if increase <= _OVERSHOT * decrease:
                break
            shorter = min(0.7, max(0.1, decrease / (decrease + increase)))
            for j in range(p + 1):
                step[j] *= shorter
            decrease *= shorter
        remember(memory, step, gradient, next_gradient)
        copy(next_gradient, gradient)
        copy(target, theta)


@vector_kernel
def inherit(memory: Memory, part: float, out: Memory) -> None:
    """Write the memory of a problem as it would be if only a part of its rows counted."""
    p = memory.steps.shape[1] - 1
    out.n_pairs[0] = memory.n_pairs[0]
    for i in range(min(memory.n_pairs[0], MEMORY)):
        for j in range(p):
            step = memory.steps[i, j]
            out.steps[i, j] = step
            out.changes[i, j] = part * (memory.changes[i, j] - step) + step
        out.steps[i, p] = memory.steps[i, p]
        out.changes[i, p] = part * memory.changes[i, p]
        out.products[i] = dot(out.steps[i], out.changes[i])


@vector_kernel
def empty_memory(n_parameters: int) -> Memory:
    """Room to remember."""
    shape = MEMORY, n_parameters
    return Memory(np.empty(shape), np.empty(shape), np.empty(MEMORY), np.zeros(1, dtype=np.intp))
