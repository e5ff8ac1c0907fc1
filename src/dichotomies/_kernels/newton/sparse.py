"""Training nodes on sparse rows: all members of a node in one visit, batches of nodes in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.newton.lanes import LANES
from dichotomies._kernels.newton.loss import evaluate
from dichotomies._kernels.newton.node import (
    MOST_GRAM_ROWS,
    Nodes,
    Objective,
    Results,
    accuracy_for,
    begin,
    costs,
    keep_score,
    sides,
    start_loss,
    visit_by_gram,
)
from dichotomies._kernels.newton.primal import solve_primal
from dichotomies._kernels.newton.rows import empty_preconditioner, product
from dichotomies._kernels.newton.sweeps import empty_state, look, rise, weights_of

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

#: A product with a sparse number costs about this many of the operations of a Cholesky factor, all the
#: products of a solution considered.
_SPARSE_COST = 60.0

#: Error of the parameters at scikit-learn's default tol, in the norm of the Hessian, as a part of them; in
#: proportion to tol otherwise. It leaves an objective nearer to the optimum than scikit-learn's solvers do.
#: The diagonal of the Hessian, by which Newton steps measure it, underestimates it.
_ACCURACY, _DIAGONAL_ACCURACY = 5e-3, 5e-4

#: Square of the constant feature that stands for a free intercept, as a part of a row's.
_SLACK = 0.3


@vector_kernel
def visit_by_sweeps(
    k: int, X: Any, n_features: int, nodes: Nodes, objective: Objective, results: Results
) -> FloatArray:
    """Train a node's members on sparse rows; return their parameters, (n_members, p + 1)."""
    theta = np.zeros((nodes.n_members, n_features + 1))
    for grid in range(objective.C.shape[1]):
        start_loss(k, grid, nodes, results)
    if nodes.n_members == 1:
        sweep_members(k, 0, X, np.zeros(n_features + 1), nodes, objective, results, theta)
    else:
        for first in range(0, nodes.n_members, LANES):
            w = np.zeros((n_features + 1, LANES))
            sweep_members(k, first, X, w, nodes, objective, results, theta)
    return theta


@vector_kernel
def sweep_members(
    k: int,
    first: int,
    X: Any,
    w: Any,
    nodes: Nodes,
    objective: Objective,
    results: Results,
    theta: FloatArray,
) -> None:
    """Train as many members as `w` has room for, one or four, and write their parameters."""
    y, is_free = sides(k, nodes), objective.free_intercept
    n, n_lanes = len(y), w.size // len(w)
    lanes, members = w.reshape(-1, n_lanes), range(first, min(first + n_lanes, nodes.n_members))
    state, order = empty_state(X, y, n_lanes), np.arange(n).astype(np.uint32)
    slack = _SLACK * state[:, 0].mean() if is_free else objective.intercept_scale**2
    accuracy = accuracy_for(objective.tol, n * len(w), _ACCURACY)
    tolerance, cost, z = np.zeros(n_lanes), np.empty(n), np.empty((n, n_lanes))
    for grid in range(objective.C.shape[1]):
        for member in members:
            if results.is_trained[member, k]:
                lane = member - first
                total = costs(k, member, objective.C[k, grid], nodes, objective, cost)
                tolerance[lane] = objective.tol * total
                state[:, 2 + 3 * lane] = cost
                if grid == 0 and is_free:
                    lanes[-1, lane] = results.intercept[member, k]
        if grid > 0:
            weights_of(X, slack, is_free, state, w)
        is_near = rise(X, order, is_free, slack, accuracy, state, w)
        most = look(X, is_free, slack, tolerance, state, w, z)
        for member in members:
            if results.is_trained[member, k]:
                lane = member - first
                theta[member], cost[:] = lanes[:, lane], state[:, 2 + 3 * lane]
                if not is_near or most[lane] > tolerance[lane]:
                    steps = polish(X, y, cost, tolerance[lane], objective, theta[member], z[:, lane])
                    results.n_steps[member, k] = steps
                finish(k, grid, member, theta[member, -1], z[:, lane], nodes, results)


@vector_kernel
def finish(
    k: int, grid: int, member: int, intercept: float, z: FloatArray, nodes: Nodes, results: Results
) -> None:
    """Keep what is known of a member: its intercept, and the scores of the rows it has not seen."""
    results.intercept[member, k] = intercept
    for i in range(len(z)):
        place = nodes.first[k] + i
        if member > 0 and nodes.fold[place] == member - 1:
            keep_score(k, grid, i, z[i], 1.0 if place < nodes.split[k] else -1.0, nodes, results)


@vector_kernel
def is_worse_than_zero(
    X: Any, y: FloatArray, cost: FloatArray, penalty: FloatArray, theta: FloatArray
) -> bool:
    """Whether no weights at all would be better: sweeps over large values can end far out.

    There all rows are as good as certain, without curvature, and Newton steps would not find back.
    """
    z, slope, curve = np.empty(len(y)), np.empty(len(y)), np.empty(len(y))
    product(X, theta, z)
    value = evaluate(z, y, cost, slope, curve)
    for j in range(len(theta)):
        if penalty[j] < np.inf:
            value += 0.5 * penalty[j] * theta[j] ** 2
    return bool(value > np.log(2.0) * cost.sum())


@vector_kernel
def polish(
    X: Any,
    y: FloatArray,
    cost: FloatArray,
    tolerance: float,
    objective: Objective,
    theta: FloatArray,
    z: FloatArray,
) -> int:
    """Improve parameters by Newton steps and write the rows' scores; return the number of steps."""
    penalty, scores = np.ones(len(theta)), np.empty(len(y))
    penalty[-1] = 0.0 if objective.free_intercept else np.inf
    if objective.intercept_scale > 0.0:
        penalty[-1] = 1.0 / objective.intercept_scale**2
    accuracy = accuracy_for(objective.tol, len(y) * len(theta), _DIAGONAL_ACCURACY)
    if is_worse_than_zero(X, y, cost, penalty, theta):
        theta[:] = 0.0
    n_steps = solve_primal(
        X, y, cost, penalty, tolerance, objective.max_iter, theta, scores,
        empty_preconditioner(X, len(theta)), False, accuracy,
    )  # fmt: skip
    z[:] = scores
    return n_steps


@vector_kernel
def renumber(indices: Any, number: Any, columns: Any, active: Any) -> int:
    """Number the features that occur from 0, in `columns`; return how many there are.

    Parameters
    ----------
    number : (n_features,)
        -1 everywhere, and left so.
    active : (at least as many as occur,)
        Where to write their original numbers.
    """
    n_active = 0
    for place in range(len(indices)):
        j = indices[place]
        if number[j] < 0:
            number[j] = n_active
            active[n_active] = j
            n_active += 1
        columns[place] = number[j]
    for j in range(n_active):
        number[active[j]] = -1
    return n_active


@vector_kernel
def sparse_gram(data: FloatArray, columns: Any, indptr: Any, n_features: int) -> FloatArray:
    """Products of sparse rows with one another, on and below the diagonal."""
    n = len(indptr) - 1
    out, row = np.empty((n, n)), np.zeros(n_features)
    for i in range(n):
        for place in range(indptr[i], indptr[i + 1]):
            row[columns[place]] += data[place]
        for j in range(i + 1):
            total = 0.0
            for place in range(indptr[j], indptr[j + 1]):
                total += data[place] * row[columns[place]]
            out[i, j] = total
        for place in range(indptr[i], indptr[i + 1]):
            row[columns[place]] = 0.0
    return out


@vector_kernel
def weights_of_rows(
    data: FloatArray, columns: Any, indptr: Any, coefficients: FloatArray, out: FloatArray
) -> None:
    """Add rows times their coefficients, into the zeros of `out`."""
    for i in range(len(coefficients)):
        for place in range(indptr[i], indptr[i + 1]):
            out[columns[place]] += coefficients[i] * data[place]


@vector_kernel
def count_active(
    first_node: int, last_node: int, indices: IntArray, indptr: IntArray, nodes: Nodes, n_features: int,
    out: IntArray,
) -> None:  # fmt: skip
    """Write the number of features that occur at each node of a batch."""
    seen = np.full(n_features, -1, dtype=np.int32)
    for k in range(first_node, last_node):
        count = 0
        for place in range(indptr[nodes.first[k]], indptr[nodes.last[k]]):
            if seen[indices[place]] != k:
                seen[indices[place]] = k
                count += 1
        out[k] = count


@vector_kernel
def train_sparse(
    first_node: int,
    last_node: int,
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    n_features: int,
    nodes: Nodes,
    objective: Objective,
    results: Results,
    offsets: IntArray,
    feature: IntArray,
    value: FloatArray,
) -> None:
    """Train a batch of nodes on the rows of a CSR matrix, sorted by leaf.

    Parameters
    ----------
    offsets : (n_nodes + 1,)
        Where the active features of each node begin.
    feature : (n_entries,)
        Where to write them.
    value : (n_kept, n_entries)
        Where to write their weights for the first members.
    """
    number = np.full(n_features, -1, dtype=np.int32)
    most = 0
    for k in range(first_node, last_node):
        most = max(most, indptr[nodes.last[k]] - indptr[nodes.first[k]])
    scratch, active_scratch = np.empty(most, dtype=np.uint32), np.empty(min(most, n_features), dtype=np.int32)
    for k in range(first_node, last_node):
        begin(k, nodes, results)
        first, last = indptr[nodes.first[k]], indptr[nodes.last[k]]
        columns = scratch[: last - first]
        p = renumber(indices[first:last], number, columns, active_scratch)
        if len(value):
            feature[offsets[k] : offsets[k] + p] = active_scratch[:p]
        if not results.is_trained[0, k]:
            start_loss(k, 0, nodes, results)
            value[:, offsets[k] : offsets[k + 1]] = 0.0
            continue
        n = nodes.last[k] - nodes.first[k]
        # Unsigned numbers need no look whether they count from the end: products take half as long.
        places = (indptr[nodes.first[k] : nodes.last[k] + 1] - first).astype(np.uint64)
        rows = (data[first:last], columns, places)
        if n <= MOST_GRAM_ROWS and n * n * n < _SPARSE_COST * (last - first + n):
            gram = sparse_gram(rows[0], rows[1], rows[2], p)
            coefficients = visit_by_gram(k, gram, nodes, objective, results)
            for member in range(len(value)):
                weights_of_rows(rows[0], rows[1], rows[2], coefficients[member], value[member, offsets[k] :])
        else:
            theta = visit_by_sweeps(k, rows, p, nodes, objective, results)
            for member in range(len(value)):
                for j in range(p):
                    value[member, offsets[k] + j] = theta[member, j]
