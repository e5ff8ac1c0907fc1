"""Training nodes: all members of a node in one visit, batches of nodes in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.newton.axes_visit import visit_along_axes
from dichotomies._kernels.newton.blas import add_rows_gram
from dichotomies._kernels.newton.node import (
    FEW_ROWS,
    Nodes,
    Objective,
    Results,
    begin,
    costs,
    keep_score,
    sides,
    start_loss,
    visit_by_gram,
)
from dichotomies._kernels.newton.primal import solve_primal
from dichotomies._kernels.newton.rows import empty_preconditioner

if TYPE_CHECKING:
    from dichotomies._kernels.newton.axes import Axes
    from dichotomies._typing import FloatArray, IntArray

#: Rows beyond which no Gram matrix of them is made.
_MOST_GRAM_ROWS = 1500

#: A product with a sparse number costs about this many of the operations of a Cholesky factor, all the
#: products of a solution considered.
_SPARSE_COST = 60.0

#: Error of the parameters at scikit-learn's default tol, in the norm of the Hessian, as a part of them; in
#: proportion to tol otherwise. It leaves an objective several times nearer to the optimum than scikit-learn's
#: solvers do. A diagonal preconditioner underestimates it.
_ACCURACY = 1e-3
_DIAGONAL_ACCURACY = 5e-4

#: Where products cost next to nothing, up to so many rows times features, the last digits are had as well.
_SMALL_PROBLEM, _SMALL_ACCURACY = 10_000, 1e-9


@vector_kernel
def visit_by_rows(
    k: int, X: Any, n_features: int, nodes: Nodes, objective: Objective, results: Results
) -> FloatArray:
    """Train a node's members by products with its rows; return their parameters, (n_members, p + 1)."""
    y = sides(k, nodes)
    n = len(y)
    cost, z = np.empty(n), np.empty(n)
    theta = np.zeros((nodes.n_members, n_features + 1))
    penalty = np.ones(n_features + 1)
    penalty[-1] = 0.0 if objective.free_intercept else np.inf
    if objective.intercept_scale > 0.0:
        penalty[-1] = 1.0 / objective.intercept_scale**2
    factor = empty_preconditioner(X, n_features + 1)
    accuracy = (_ACCURACY if len(factor) > 1 else _DIAGONAL_ACCURACY) * min(1.0, objective.tol / 1e-4)
    if n * n_features <= _SMALL_PROBLEM:
        accuracy = min(accuracy, _SMALL_ACCURACY)
    for grid in range(objective.C.shape[1]):
        start_loss(k, grid, nodes, results)
        for member in range(nodes.n_members):
            if not results.is_trained[member, k]:
                continue
            total = costs(k, member, objective.C[k, grid], nodes, objective, cost)
            is_prepared = member > 0 and results.is_trained[0, k]
            if member > 0:
                theta[member] = theta[0]
            results.n_steps[member, k] = solve_primal(
                X, y, cost, penalty, objective.tol * total, objective.max_iter, theta[member], z, factor,
                is_prepared, accuracy,
            )  # fmt: skip
            results.intercept[member, k] = theta[member, n_features]
            if member > 0:
                for i in range(n):
                    if nodes.fold[nodes.first[k] + i] == member - 1:
                        keep_score(k, grid, i, z[i], y[i], nodes, results)
    return theta


@vector_kernel
def train_dense(
    first_node: int,
    last_node: int,
    X: FloatArray,
    axes: Axes,
    nodes: Nodes,
    objective: Objective,
    results: Results,
    weights: FloatArray,
) -> None:
    """Train a batch of nodes on dense rows.

    Parameters
    ----------
    X : (n_rows, n_features)
        Sorted by leaf.
    axes : Axes
        The same rows, or none.
    weights : (n_kept, n_nodes, n_features)
        Where to write the weights of the first members.
    """
    p = X.shape[1]
    for k in range(first_node, last_node):
        begin(k, nodes, results)
        if not results.is_trained[0, k]:
            start_loss(k, 0, nodes, results)
            continue
        rows = X[nodes.first[k] : nodes.last[k]]
        n = len(rows)
        if len(axes.rows) and n > FEW_ROWS and n * p > _SMALL_PROBLEM:
            is_trained, along = visit_along_axes(k, axes, nodes, objective, results)
            if is_trained:
                for member in range(len(weights)):
                    weights[member, k] = np.dot(axes.basis, along[member, :p])
                continue
        if n <= min(p, _MOST_GRAM_ROWS):
            gram = np.zeros((n, n), dtype=X.dtype)
            add_rows_gram(rows, gram)
            coefficients = visit_by_gram(k, gram.astype(np.float64), nodes, objective, results)
            for member in range(len(weights)):
                weights[member, k] = np.dot(rows.T, coefficients[member].astype(X.dtype))
        else:
            theta = visit_by_rows(k, rows, p, nodes, objective, results)
            for member in range(len(weights)):
                for j in range(p):
                    weights[member, k, j] = theta[member, j]


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
        if n <= _MOST_GRAM_ROWS and n * n * n < _SPARSE_COST * (last - first + n):
            gram = sparse_gram(rows[0], rows[1], rows[2], p)
            coefficients = visit_by_gram(k, gram, nodes, objective, results)
            for member in range(len(value)):
                weights_of_rows(rows[0], rows[1], rows[2], coefficients[member], value[member, offsets[k] :])
        else:
            theta = visit_by_rows(k, rows, p, nodes, objective, results)
            for member in range(len(value)):
                for j in range(p):
                    value[member, offsets[k] + j] = theta[member, j]


@vector_kernel
def weights_of_rows(
    data: FloatArray, columns: Any, indptr: Any, coefficients: FloatArray, out: FloatArray
) -> None:
    """Add rows times their coefficients, into the zeros of `out`."""
    for i in range(len(coefficients)):
        for place in range(indptr[i], indptr[i + 1]):
            out[columns[place]] += coefficients[i] * data[place]
