"""Limited-memory Newton steps along the principal axes of all rows, in single precision.

Along these axes the second derivatives at any node are nearly diagonal: about the node's curvature times the
variances, plus the penalty. Steps that divide by that diagonal, corrected by the last few differences of
gradients (L-BFGS; Nocedal & Wright, *Numerical Optimization*, algorithm 7.4), reach the optimum after few
gradients, without a matrix of second derivatives at any node.

Rows are centred, so that single precision is spent on what differs between them. A node's parameters are its
weights along the axes and, last, the score of its mean row, which hardly depends on the weights.

Loops rather than array expressions throughout: those take numba several times as long to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.elementary import copy, dot, exponential
from dichotomies._kernels.newton.node import Nodes, Objective, Results, costs, keep_scores, sides

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray, SingleArray

#: Error of the parameters at scikit-learn's default tol, in the norm of the Hessian, as a part of them.
_ACCURACY = 1e-3

#: Gradients after which matrices of second derivatives are the better way.
_MAX_GRADIENTS = 80

#: Length of the weights times that of the longest row, beyond which single precision knows scores worse than
#: to four digits.
_LARGEST_SCORE = 1e-4 * 2.0**23

#: Differences of gradients remembered.
MEMORY = 8

#: Numbers of a block of rows, few enough to stay in a core's cache between two reads.
_BLOCK_SIZE = 2**16

#: A step is too long where the objective increases at its end by more than this part of its decrease at the
#: start.
_OVERSHOT = 0.5

_F = np.float32
_ONE = _F(1.0)


class Axes(NamedTuple):
    """All rows along their principal axes.

    Attributes
    ----------
    rows : (n_rows, p), single precision
        Centred.
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
def weighted_sum(rows: SingleArray, weight: SingleArray, out: FloatArray) -> float:
    """Write ``rows' weight``, by blocks; return the sum of the weights."""
    sums = np.empty(rows.shape[1], dtype=np.float32)
    total = 0.0
    out[:] = 0.0
    for i in range(0, len(rows), 256):
        np.dot(rows[i : i + 256].T, weight[i : i + 256], sums)
        for j in range(len(out)):
            out[j] += sums[j]
        for j in range(i, min(i + 256, len(rows))):
            total += weight[j]
    return total


@vector_kernel
def start(
    rows: SingleArray,
    cost: SingleArray,
    n_left: int,
    mean: FloatArray,
    theta: FloatArray,
    gradient: FloatArray,
) -> float:
    """Write the mean row, the best parameters without features and minus the gradient there.

    Returns the sum of curvatures.
    """
    p = rows.shape[1]
    sums = np.empty((2, p))
    of_left = weighted_sum(rows[:n_left], cost[:n_left], sums[0])
    of_right = weighted_sum(rows[n_left:], cost[n_left:], sums[1])
    part = of_left / (of_left + of_right)
    for j in range(p):
        mean[j] = (sums[0, j] + sums[1, j]) / (of_left + of_right)
        gradient[j] = (1.0 - part) * sums[0, j] - part * sums[1, j]
        theta[j] = 0.0
    theta[p] = np.log(of_left / of_right)
    gradient[p] = 0.0
    return float((of_left + of_right) * part * (1.0 - part))


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


@vector_kernel
def visit(
    k: int,
    axes: Axes,
    nodes: Nodes,
    objective: Objective,
    results: Results,
    theta: FloatArray,
    memory: Memory,
    of_fold: Memory,
) -> bool:
    """Train a node's members and write their parameters (n_members, p + 1); False if one did not converge."""
    rows = axes.rows[nodes.first[k] : nodes.last[k]]
    n, p = rows.shape
    y, cost64 = sides(k, nodes), np.empty(n)
    single = np.empty((3, n), dtype=np.float32)
    signs, cost, z = single[0], single[1], single[2]
    copy(y, signs)
    mean, gradient = np.empty(p), np.empty(p + 1)
    problem = Problem(rows, signs, cost, mean, axes.variance)
    accuracy, longest = _ACCURACY * min(1.0, objective.tol / 1e-4), _LARGEST_SCORE / axes.radius
    max_gradients = min(_MAX_GRADIENTS, objective.max_iter)
    whole, reach = 1.0, 0.0
    memory.n_pairs[0] = 0
    for grid in range(objective.C.shape[1]):
        for member in range(nodes.n_members):
            if not results.is_trained[member, k]:
                continue
            total = costs(k, member, objective.C[k, grid], nodes, objective, cost64)
            copy(cost64, cost)
            if member > 0:
                copy(theta[0], theta[member])
                inherit(memory, total / whole, of_fold)
            if member == 0 and grid == 0:
                curvature = start(rows, cost, nodes.split[k] - nodes.first[k], mean, theta[0], gradient)
                reach = axes.reach + np.sqrt(dot(mean, mean))
            else:
                curvature = gradient_at(problem, theta[member], z, gradient)
            goal = Goal(accuracy, objective.tol * total, reach, longest, max_gradients)
            used = memory if member == 0 else of_fold
            n_gradients = solve(problem, goal, theta[member], gradient, curvature, z, used)
            results.n_steps[member, k] = n_gradients
            if n_gradients < 0:
                return False
            if member == 0:
                whole = total
            shift = dot(mean, theta[member, :p]) + dot(axes.center, theta[member, :p])
            results.intercept[member, k] = theta[member, p] - shift
            keep_scores(k, grid, member, z, nodes, results)
    return True


@vector_kernel(seconds=8)
def train_along_axes(
    which: IntArray, axes: Axes, nodes: Nodes, objective: Objective, results: Results, out: FloatArray
) -> None:
    """Train some nodes.

    Parameters
    ----------
    which : (n_chosen,)
        Their numbers.
    out : (n_kept, n_nodes, p)
        Where to write the weights of the first members along the axes.
    """
    p = axes.rows.shape[1]
    theta = np.empty((nodes.n_members, p + 1))
    memory, of_fold = empty_memory(p + 1), empty_memory(p + 1)
    for k in which:
        if visit(k, axes, nodes, objective, results, theta, memory, of_fold):
            for member in range(len(out)):
                copy(theta[member, :p], out[member, k])
