"""What training one node on all its rows, and without each fold, has in common for all kinds of rows.

*Member* 0 is trained on all rows of a node, member ``f + 1`` on those outside fold ``f``. Rows are sorted by
leaf, so that a node's rows are those from ``first`` to ``last``, the left side first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dichotomies._kernels.compile import kernel, vector_kernel
from dichotomies._kernels.newton.dual import multiply, solve_dual, sub_matrix
from dichotomies._kernels.newton.loss import dot

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray

#: Change of the scores by the last Newton step at scikit-learn's default tol, as a part of them; what it
#: leaves to do is about its square, which is in proportion to tol.
_CLOSE = 3e-2

#: Where a step costs next to nothing, one more leads to the last digits: up to this many rows.
FEW_ROWS, _VERY_CLOSE = 64, 1e-5

#: Rows beyond which no Gram matrix of them is made.
MOST_GRAM_ROWS = 1500

#: Where products cost next to nothing, up to so many rows times features, the last digits are had as well.
SMALL_PROBLEM, _SMALL_ACCURACY = 10_000, 1e-9


@vector_kernel
def accuracy_for(tol: float, size: int, accuracy: float) -> float:
    """The accuracy to ask of a node with so many rows times features, at the default tol `accuracy`."""
    scaled = accuracy * min(1.0, tol / 1e-4)
    return min(scaled, _SMALL_ACCURACY) if size <= SMALL_PROBLEM else scaled


class Nodes(NamedTuple):
    """The rows of every node.

    Attributes
    ----------
    first, split, last : (n_nodes,)
        Where a node's rows begin, its right side's begin, and end.
    weight : (n_rows,)
        Weight of each row; those of weight 0 are only scored.
    fold : (n_rows,)
        Fold of each row, 0 to ``n_members - 2``.
    n_members : int
        1 without folds.
    """

    first: IntArray
    split: IntArray
    last: IntArray
    weight: FloatArray
    fold: IntArray
    n_members: int


class Objective(NamedTuple):
    """What is minimised.

    Attributes
    ----------
    C : (n_nodes, n_grid)
        Inverse strengths of the penalty to try at each node, one after the other.
    left_factor, right_factor : (n_nodes,)
        Class weights.
    balanced : bool
        Whether both sides are to weigh the same, in place of the factors.
    free_intercept : bool
        Whether there is an intercept without penalty.
    intercept_scale : float
        The constant feature of an intercept with penalty; 0 without one.
    tol : float
        Largest derivative of the mean loss.
    max_iter : int
        Newton steps.
    """

    C: FloatArray
    left_factor: FloatArray
    right_factor: FloatArray
    balanced: bool
    free_intercept: bool
    intercept_scale: float
    tol: float
    max_iter: int


class Results(NamedTuple):
    """What becomes of it, apart from weights.

    Attributes
    ----------
    intercept, is_trained, n_steps : (n_members, n_nodes)
        Of the last C; a node with one side only is not trained, and its intercept the smoothed log-odds.
        Steps that did not lead to the optimum are counted negative, or 0.
    scores : (n_pairs,)
        Out-of-fold log-odds of every node's rows by the last C; NaN where the member was not trained.
    pair_offsets : (n_nodes,)
        Where each node's scores begin.
    nll : (n_nodes, n_grid)
        Out-of-fold loss of the node's rows, their weights taken into account; NaN where none was scored.
    """

    intercept: FloatArray
    is_trained: BoolArray
    n_steps: IntArray
    scores: FloatArray
    pair_offsets: IntArray
    nll: FloatArray


@kernel
def begin(k: int, nodes: Nodes, results: Results) -> None:
    """Write what a node answers that cannot be trained."""
    left, right = np.zeros(nodes.n_members), np.zeros(nodes.n_members)
    n_left, n_right = np.zeros(nodes.n_members, dtype=np.intp), np.zeros(nodes.n_members, dtype=np.intp)
    for i in range(nodes.first[k], nodes.last[k]):
        for member in range(nodes.n_members):
            if nodes.weight[i] > 0.0 and nodes.fold[i] != member - 1:
                if i < nodes.split[k]:
                    left[member] += nodes.weight[i]
                    n_left[member] += 1
                else:
                    right[member] += nodes.weight[i]
                    n_right[member] += 1
    for member in range(nodes.n_members):
        results.intercept[member, k] = np.log((left[member] + 1.0) / (right[member] + 1.0))
        results.is_trained[member, k] = n_left[member] > 0 and n_right[member] > 0
        results.n_steps[member, k] = 1


@kernel
def costs(k: int, member: int, C: float, nodes: Nodes, objective: Objective, out: FloatArray) -> float:
    """Write the cost of each row for a member, 0 of rows it must not see; return the sum."""
    first, split = nodes.first[k], nodes.split[k]
    left = right = 0.0
    for i in range(first, nodes.last[k]):
        seen = nodes.fold[i] != member - 1
        out[i - first] = nodes.weight[i] if seen else 0.0
        if i < split:
            left += out[i - first]
        else:
            right += out[i - first]
    of_left, of_right = objective.left_factor[k], objective.right_factor[k]
    if objective.balanced:
        of_left, of_right = (left + right) / (2.0 * left), (left + right) / (2.0 * right)
    for i in range(first, nodes.last[k]):
        out[i - first] *= C * (of_left if i < split else of_right)
    return float(C * (left * of_left + right * of_right))


@kernel
def sides(k: int, nodes: Nodes) -> FloatArray:
    """+1 for each row of the left side, -1 of the right."""
    y = np.full(nodes.last[k] - nodes.first[k], -1.0)
    y[: nodes.split[k] - nodes.first[k]] = 1.0
    return y


@kernel
def start_loss(k: int, grid: int, nodes: Nodes, results: Results) -> None:
    """Before scores of a C are kept: nothing was scored yet."""
    if nodes.n_members > 1:
        results.nll[k, grid] = np.nan
        offset = results.pair_offsets[k]
        results.scores[offset : offset + nodes.last[k] - nodes.first[k]] = np.nan


@kernel
def keep_score(k: int, grid: int, i: int, z: float, y: float, nodes: Nodes, results: Results) -> None:
    """Keep an out-of-fold score of a node's i-th row, and its loss."""
    results.scores[results.pair_offsets[k] + i] = z
    loss = max(-y * z, 0.0) + np.log1p(np.exp(-abs(z)))
    before = results.nll[k, grid]
    results.nll[k, grid] = (0.0 if np.isnan(before) else before) + nodes.weight[nodes.first[k] + i] * loss


@vector_kernel
def visit_by_gram(  # noqa: C901 - three loops in one another
    k: int, K: FloatArray, nodes: Nodes, objective: Objective, results: Results
) -> FloatArray:
    """Train a node's members by the Gram matrix (n, n) of its rows, complete below the diagonal.

    Returns
    -------
    (n_members, n)
        Coefficients of the rows in the weights, for the last C.
    """
    n = len(K)
    constant = objective.intercept_scale**2
    for i in range(n):
        for j in range(i + 1):
            K[i, j] += constant
            K[j, i] = K[i, j]
    y, cost = sides(k, nodes), np.empty(n)
    coefficients = np.zeros((nodes.n_members, n))
    space, part, work = np.empty(n * n), np.empty(n * n), np.empty(6 * n)
    kept = np.empty(n, dtype=np.intp)
    a, targets, kept_cost = np.empty(n), np.empty(n), np.empty(n)
    close = _CLOSE * min(1.0, np.sqrt(objective.tol / 1e-4))
    if n <= FEW_ROWS:
        close = min(close, _VERY_CLOSE)
    start = np.zeros(n)  # scores to start from; what all rows gave, once there is such
    for grid in range(objective.C.shape[1]):
        start_loss(k, grid, nodes, results)
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
            sub_matrix(K, kept[:m], view)
            n_steps, b = solve_dual(
                view, targets[:m], kept_cost[:m], objective.free_intercept, objective.tol * total, close,
                objective.max_iter, a[:m], work[: 6 * m].reshape(6, m), space[: m * m].reshape(m, m),
            )  # fmt: skip
            coefficients[member] = 0.0
            for i in range(m):
                coefficients[member, kept[i]] = a[i]
            if member == 0:
                multiply(K, coefficients[0], b, start)
            else:
                for i in range(n):
                    if nodes.fold[nodes.first[k] + i] == member - 1:
                        z = dot(K[i], coefficients[member]) + b
                        keep_score(k, grid, i, z, y[i], nodes, results)
            results.intercept[member, k] = b + constant * coefficients[member].sum()
            results.n_steps[member, k] = n_steps
    return coefficients
