"""Training a node's members along the principal axes of all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.newton.axes import MEMORY, Axes, Goal, Memory, Problem, look, solve_along_axes
from dichotomies._kernels.newton.loss import dot
from dichotomies._kernels.newton.node import Nodes, Objective, Results, costs, keep_score, sides, start_loss

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, SingleArray

#: As `visit.py` has it.
_ACCURACY = 1e-3

#: Looks at the rows after which matrices of second derivatives are the better way.
_MAX_LOOKS = 80

#: Length of the weights times that of the longest row, beyond which single precision knows scores worse than
#: to four digits.
_LARGEST_SCORE = 1e-4 * 2.0**23


@vector_kernel
def weighted_sum(rows: SingleArray, weight: SingleArray, out: FloatArray) -> None:
    """``rows' weight``, by blocks."""
    out[:] = 0.0
    for i in range(0, len(rows), 256):
        sums = np.dot(rows[i : i + 256].T, weight[i : i + 256])
        for j in range(len(out)):
            out[j] += sums[j]


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
    left, right = np.empty((2, p))
    weighted_sum(rows[:n_left], cost[:n_left], left)
    weighted_sum(rows[n_left:], cost[n_left:], right)
    of_left, of_right = cost[:n_left].astype(np.float64).sum(), cost[n_left:].astype(np.float64).sum()
    part = of_left / (of_left + of_right)
    for j in range(p):
        mean[j] = (left[j] + right[j]) / (of_left + of_right)
        gradient[j] = (1.0 - part) * left[j] - part * right[j]
    theta[:] = 0.0
    theta[p] = np.log(of_left / of_right)
    gradient[p] = 0.0
    return float((of_left + of_right) * part * (1.0 - part))


@vector_kernel
def inherit(memory: Memory, n_pairs: int, part: float, out: Memory) -> None:
    """What is remembered of a problem, as it would be if only a part of its rows counted."""
    p = memory.steps.shape[1] - 1
    for i in range(min(n_pairs, MEMORY)):
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
    return Memory(np.empty((MEMORY, n_parameters)), np.empty((MEMORY, n_parameters)), np.empty(MEMORY))


@vector_kernel
def visit_along_axes(  # noqa: C901 - two loops in one another
    k: int, axes: Axes, nodes: Nodes, objective: Objective, results: Results
) -> tuple[bool, FloatArray]:
    """Train a node's members; return whether all reached the optimum, and their weights along the axes."""
    rows = axes.rows[nodes.first[k] : nodes.last[k]]
    n, p = rows.shape
    y, cost64 = sides(k, nodes), np.empty(n)
    signs, cost, z = y.astype(np.float32), np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    theta, mean, gradient = np.zeros((nodes.n_members, p + 1)), np.empty(p), np.empty(p + 1)
    memory, of_fold = empty_memory(p + 1), empty_memory(p + 1)
    problem = Problem(rows, signs, cost, mean, axes.variance)
    accuracy, longest = _ACCURACY * min(1.0, objective.tol / 1e-4), _LARGEST_SCORE / axes.radius
    max_looks = min(_MAX_LOOKS, objective.max_iter)
    whole, n_pairs, reach = 1.0, 0, 0.0
    for grid in range(objective.C.shape[1]):
        start_loss(k, grid, nodes, results)
        for member in range(nodes.n_members):
            if not results.is_trained[member, k]:
                continue
            total = costs(k, member, objective.C[k, grid], nodes, objective, cost64)
            cost[:] = cost64
            used, pairs = memory, 0
            if member > 0:
                theta[member] = theta[0]
                inherit(memory, n_pairs, total / whole, of_fold)
                used, pairs = of_fold, n_pairs
            if member == 0 and grid == 0:
                curvature = start(rows, cost, nodes.split[k] - nodes.first[k], mean, theta[0], gradient)
                reach = axes.reach + np.sqrt(dot(mean, mean))
            else:
                curvature = look(problem, theta[member], z, gradient)
            goal = Goal(accuracy, objective.tol * total, reach, longest, max_looks)
            looks, pairs = solve_along_axes(problem, goal, theta[member], gradient, curvature, z, used, pairs)
            if looks < 0:
                return False, theta
            if member == 0:
                whole, n_pairs = total, pairs
            weights = theta[member, :p]
            results.n_steps[member, k] = looks
            results.intercept[member, k] = theta[member, p] - dot(mean, weights) - dot(axes.center, weights)
            if member > 0:
                for i in range(n):
                    if nodes.fold[nodes.first[k] + i] == member - 1:
                        keep_score(k, grid, i, z[i], y[i], nodes, results)
    return True, theta
