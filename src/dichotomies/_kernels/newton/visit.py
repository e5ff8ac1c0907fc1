"""Training nodes on dense rows: all members of a node in one visit, batches of nodes in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.newton.axes_visit import visit_along_axes
from dichotomies._kernels.newton.blas import add_rows_gram
from dichotomies._kernels.newton.node import (
    FEW_ROWS,
    MOST_GRAM_ROWS,
    SMALL_PROBLEM,
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
from dichotomies._kernels.newton.rows import empty_preconditioner

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray
    from dichotomies._kernels.newton.axes import Axes

#: Error of the parameters at scikit-learn's default tol, in the norm of the Hessian, as a part of them; in
#: proportion to tol otherwise. It leaves an objective several times nearer to the optimum than scikit-learn's
#: solvers do. A diagonal preconditioner underestimates it.
_ACCURACY = 1e-3
_DIAGONAL_ACCURACY = 5e-4


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
    at_default = _ACCURACY if len(factor) > 1 else _DIAGONAL_ACCURACY
    accuracy = accuracy_for(objective.tol, n * n_features, at_default)
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
def centre_rows(rows: FloatArray, is_free: bool) -> tuple[FloatArray, FloatArray]:
    """The rows in double precision, less their mean where a free intercept can make up for it; and the mean.

    Inner products of rows far from zero would have few digits left for what sets them apart.
    """
    centred, centre = rows.astype(np.float64), np.zeros(rows.shape[1])
    if is_free:
        for i in range(len(rows)):
            centre += centred[i]
        centre /= len(rows)
        for i in range(len(rows)):
            centred[i] -= centre
    return centred, centre


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
        if len(axes.rows) and n > FEW_ROWS and n * p > SMALL_PROBLEM:
            is_trained, along = visit_along_axes(k, axes, nodes, objective, results)
            if is_trained:
                for member in range(len(weights)):
                    weights[member, k] = np.dot(axes.basis, along[member, :p])
                continue
        if n <= min(p, MOST_GRAM_ROWS):
            centred, centre = centre_rows(rows, objective.free_intercept)
            gram = np.zeros((n, n))
            add_rows_gram(centred, gram)
            coefficients = visit_by_gram(k, gram, nodes, objective, results)
            for member in range(len(weights)):
                weights[member, k] = np.dot(centred.T, coefficients[member])
                results.intercept[member, k] -= np.dot(centre, weights[member, k].astype(np.float64))
        else:
            theta = visit_by_rows(k, rows, p, nodes, objective, results)
            for member in range(len(weights)):
                for j in range(p):
                    weights[member, k, j] = theta[member, j]
