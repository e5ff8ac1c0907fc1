"""Logistic regressions at nodes along the principal axes of all rows, in single precision.

Along these axes the second derivatives at any node are nearly diagonal: about the node's curvature times the
variances, plus the penalty. Limited-memory Newton steps (`lbfgs`) that start from that diagonal reach the
optimum after few gradients, without a matrix of second derivatives at any node. Rows are centred, so that
single precision is spent on what differs between them.
"""

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray, SingleArray
from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.elementary import copy, dot
from dichotomies._kernels.newton.lbfgs import Goal, Memory, Problem, empty_memory, gradient_at, inherit, solve
from dichotomies._kernels.newton.node import Nodes, Objective, Results, costs, keep_scores, sides

#: Error of the parameters at scikit-learn's default tol, in the norm of the Hessian, as a part of them.
_ACCURACY = 1e-3

#: Gradients after which matrices of second derivatives are the better way.
_MAX_GRADIENTS = 80

#: Length of the weights times that of the longest row, beyond which single precision knows scores worse than
#: to four digits.
_LARGEST_SCORE = 1e-4 * 2.0**23


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
        Row that was subtracted, along the axes.
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


@vector_kernel
def train_along_axes(
    which: IntArray, axes: Axes, nodes: Nodes, objective: Objective, results: Results, out: FloatArray
) -> None:
    """Train some nodes.

    Parameters
    ----------
    which : (n_chosen,)
        Their numbers.
    out : (n_kept, n_nodes, p)
        Written: weights of the first members along the axes.
    """
    p = axes.rows.shape[1]
    theta = np.empty((nodes.n_members, p + 1))
    memory, of_fold = empty_memory(p + 1), empty_memory(p + 1)
    for k in which:
        if visit(k, axes, nodes, objective, results, theta, memory, of_fold):
            for member in range(len(out)):
                copy(theta[member, :p], out[member, k])
