"""Newton's method in function space, for nodes with fewer rows than features.

By the representer theorem ``w = X' a``; everything is written with the Gram matrix ``K = X X'``. A step
solves ``(K + W^-1) a + b 1 = z + W^-1 g`` and ``1' a = 0`` with the curvatures W and slopes g of the rows, by
a Cholesky factor of ``B = I + W^1/2 K W^1/2`` (Rasmussen & Williams, *Gaussian Processes for Machine
Learning*, algorithm 3.1), whose eigenvalues are never below 1. A penalised intercept is a constant added
to K.
"""

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.elementary import copy, dot
from dichotomies._kernels.newton.blas import factorise, solve_backward, solve_forward
from dichotomies._kernels.newton.loss import evaluate, largest, loss_along
from dichotomies._kernels.newton.node import Nodes, Objective, Results, costs, keep_scores, sides

#: Change of the scores by the last Newton step at scikit-learn's default tol, as a part of them; what it
#: leaves to do is about its square, which is in proportion to tol.
_CLOSE = 3e-2

#: Rows up to which one more step, for the last digits, costs next to nothing.
FEW_ROWS, _VERY_CLOSE = 64, 1e-5

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
        root = ones[i]
        for j in range(i + 1):
            factor[i, j] = K[i, j] * root * ones[j]
        factor[i, i] += 1.0
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
def multiply(K: FloatArray, a: FloatArray, intercept: float, out: FloatArray) -> float:
    """Write ``K a + b``; return the sum of `a`."""
    total = 0.0
    for i in range(len(out)):
        out[i] = dot(K[i], a) + intercept
        total += a[i]
    return total


@vector_kernel
def gradient_norm(K: FloatArray, a: FloatArray, slope: FloatArray, free: bool, rest: FloatArray) -> float:
    """A bound of the largest derivative: the norm of ``X' (a - g)``, and the sum of slopes."""
    total = slopes = 0.0
    for i in range(len(a)):
        rest[i] = a[i] - slope[i]
        slopes += slope[i]
    for i in range(len(a)):
        total += rest[i] * dot(K[i], rest)
    norm = np.sqrt(max(total, 0.0))
    return float(max(norm, abs(slopes)) if free else norm)


@vector_kernel
def restart(
    y: FloatArray, cost: FloatArray, free: bool, z: FloatArray, slope: FloatArray, curve: FloatArray
) -> tuple[float, float]:
    """Evaluate the best answer without features: the log-odds of the sides; return the loss and them."""
    left = right = 0.0
    for i in range(len(y)):
        if y[i] > 0.0:
            left += cost[i]
        else:
            right += cost[i]
    plain = np.log(left / right) if free else 0.0
    z[:] = plain
    return evaluate(z, y, cost, slope, curve), plain


@vector_kernel
def solve(  # noqa: C901 - one loop, told once
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
    n = len(a)
    copy(z, step)
    at_rest, _ = restart(y, cost, free_intercept, z, slope, curve)
    evaluate(step, y, cost, slope, curve)
    # Where the similar model had other rows, its weights are not in the span of these; those one step from
    # it are.
    solved, intercept = newton_target(K, step, slope, curve, free_intercept, factor, a, ones)
    total = multiply(K, a, intercept, z)
    loss = evaluate(z, y, cost, slope, curve)
    penalty = 0.5 * (dot(a, z) - intercept * total)
    if max_iter < 1 or not solved or not loss + penalty <= at_rest:
        a[:] = 0.0
        loss, intercept = restart(y, cost, free_intercept, z, slope, curve)
        total = penalty = 0.0
    for taken in range(2, max_iter + 1):
        solved, to = newton_target(K, z, slope, curve, free_intercept, factor, target, ones)
        if not solved:
            return -taken, intercept
        change, moved = to - intercept, multiply(K, target, to, step) - total
        for i in range(n):
            step[i] -= z[i]
            target[i] -= a[i]
        # The penalty along the step is a parabola; the loss has to be computed.
        bend = 0.5 * (dot(target, step) - change * moved)
        lean = dot(a, step) - change * total
        decrease = dot(slope, step) - lean
        size, before = 1.0, loss + penalty
        while size > _SMALLEST_STEP and decrease > _NEGLIGIBLE * before:
            after = loss_along(z, step, size, y, cost) + penalty + size * lean + size * size * bend
            if after <= before - 1e-4 * size * decrease:
                break
            size *= 0.5
        if size <= _SMALLEST_STEP:
            return -taken, intercept
        for i in range(n):
            a[i] += size * target[i]
            z[i] += size * step[i]
        intercept += size * change
        total += size * moved
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
def visit(  # noqa: C901 - three loops in one another
    k: int, K: FloatArray, nodes: Nodes, objective: Objective, results: Results, coefficients: FloatArray
) -> None:
    """Train a node's members by the Gram matrix (n, n) of its rows, complete below the diagonal.

    Parameters
    ----------
    coefficients : (n_members, n)
        Written: coefficients of the rows in the weights, for the last C.
    """
    n = len(K)
    constant = objective.intercept_scale**2
    for i in range(n):
        for j in range(i + 1):
            K[i, j] += constant
            K[j, i] = K[i, j]
    y, cost = sides(k, nodes), np.empty(n)
    space, part, work = np.empty(n * n), np.empty(n * n), np.empty(6 * n)
    kept, kept_cost = np.empty(n, dtype=np.intp), np.empty(n)
    a, targets = np.empty(n), np.empty(n)
    close = _CLOSE * min(1.0, np.sqrt(objective.tol / 1e-4))
    if n <= FEW_ROWS:
        close = min(close, _VERY_CLOSE)
    start, z = np.zeros(n), np.empty(n)  # scores to start from: those of all rows, once they are known
    for grid in range(objective.C.shape[1]):
        for member in range(nodes.n_members):
            if not results.is_trained[member, k]:
                continue
            total = costs(k, member, objective.C[k, grid], nodes, objective, cost)
            m = 0
            for i in range(n):
                if cost[i] > 0.0:
                    kept[m], targets[m], kept_cost[m], work[m] = i, y[i], cost[i], start[i]
                    m += 1
            view = part[: m * m].reshape(m, m)
            for i in range(m):
                for j in range(m):
                    view[i, j] = K[kept[i], kept[j]]
            n_steps, b = solve(
                view, targets[:m], kept_cost[:m], objective.free_intercept, objective.tol * total, close,
                objective.max_iter, a[:m], work[: 6 * m].reshape(6, m), space[: m * m].reshape(m, m),
            )  # fmt: skip
            own = coefficients[member]
            own[:] = 0.0
            for i in range(m):
                own[kept[i]] = a[i]
            used = start if member == 0 else z
            in_all = multiply(K, own, b, used)
            keep_scores(k, grid, member, used, nodes, results)
            results.intercept[member, k] = b + constant * in_all
            results.n_steps[member, k] = n_steps


@vector_kernel
def centre_rows(rows: Any, is_free: bool, centred: FloatArray, centre: FloatArray) -> None:
    """Write the rows in double precision, less their mean where a free intercept makes up for it; and that.

    Inner products of rows far from zero would have few digits left for what sets them apart.
    """
    n, p = rows.shape
    centre[:] = 0.0
    for i in range(n):
        for j in range(p):
            centred[i, j] = rows[i, j]
    if is_free:
        for i in range(n):
            for j in range(p):
                centre[j] += centred[i, j]
        for i in range(n):
            for j in range(p):
                centred[i, j] -= centre[j] / n


@vector_kernel
def train_by_gram(
    which: IntArray, X: Any, nodes: Nodes, objective: Objective, results: Results, weights: Any
) -> None:
    """Train some nodes on dense rows.

    Parameters
    ----------
    which : (n_chosen,)
        Their numbers.
    X : (n_rows, n_features)
        Sorted by leaf.
    weights : (n_kept, n_nodes, n_features)
        Written: weights of the first members.
    """
    p = X.shape[1]
    centre, total = np.empty(p), np.empty(p)
    for k in which:
        rows = X[nodes.first[k] : nodes.last[k]]
        n = len(rows)
        centred, coefficients = np.empty((n, p)), np.zeros((nodes.n_members, n))
        centre_rows(rows, objective.free_intercept, centred, centre)
        gram = np.dot(centred, centred.T)
        visit(k, gram, nodes, objective, results, coefficients)
        for member in range(len(weights)):
            np.dot(centred.T, coefficients[member], total)
            copy(total, weights[member, k])
            results.intercept[member, k] -= dot(centre, total) / n
