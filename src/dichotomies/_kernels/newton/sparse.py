"""Training nodes on sparse rows: all members of a node in one visit, many nodes in one call."""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.elementary import copy
from dichotomies._kernels.newton import gram
from dichotomies._kernels.newton.node import Nodes, Objective, Results, costs, keep_scores, sides
from dichotomies._kernels.newton.sweeps import ascend, empty_state, largest_derivatives, weights_of

#: Error of the parameters at scikit-learn's default tol, in the norm of the Hessian, as a part of them; in
#: proportion to tol otherwise. It leaves an objective nearer to the optimum than scikit-learn's solvers do.
_ACCURACY = 5e-3

#: Rows times features up to which products, and so the last digits, cost next to nothing.
_SMALL_NODE, _SMALL_ACCURACY = 10_000, 1e-9

#: Square of the constant feature that stands for a free intercept, as a part of a row's.
_SLACK = 0.3

_visit_by_gram = gram.visit


class Rows(NamedTuple):
    """The rows of a CSR matrix, sorted by leaf."""

    data: Any
    indices: IntArray
    indptr: IntArray
    n_features: int


class Entries(NamedTuple):
    """Weights of the features that are active at each node.

    Attributes
    ----------
    offsets : (n_nodes + 1,)
        Start of those of each node, and the end.
    feature : (n_entries,)
    value : (n_kept, n_entries)
        Weights of the first members.
    """

    offsets: IntArray
    feature: IntArray
    value: FloatArray


class Scratch(NamedTuple):
    """Room to renumber features.

    Attributes
    ----------
    number : (n_features,)
        -1 everywhere between two nodes.
    columns : (most numbers of a node,)
    active : (most features of a node,)
    """

    number: Any
    columns: Any
    active: Any


@vector_kernel
def empty_scratch(which: IntArray, rows: Rows, nodes: Nodes) -> Scratch:
    """Room for the largest of some nodes."""
    most = 0
    for k in which:
        most = max(most, rows.indptr[nodes.last[k]] - rows.indptr[nodes.first[k]])
    number = np.full(rows.n_features, -1, dtype=np.int32)
    return Scratch(number, np.empty(most, np.uint32), np.empty(min(most, rows.n_features), np.int32))


@vector_kernel
def take_node(k: int, rows: Rows, nodes: Nodes, scratch: Scratch, entries: Entries) -> Any:
    """The rows of a node with its features renumbered from 0, and how many there are.

    Unsigned numbers need no test whether they count from the end: products take half as long.
    """
    first, last = rows.indptr[nodes.first[k]], rows.indptr[nodes.last[k]]
    columns, n_active = scratch.columns[: last - first], 0
    for place in range(first, last):
        j = rows.indices[place]
        if scratch.number[j] < 0:
            scratch.number[j] = n_active
            scratch.active[n_active] = j
            n_active += 1
        columns[place - first] = scratch.number[j]
    for j in range(n_active):
        scratch.number[scratch.active[j]] = -1
    if len(entries.value):
        copy(scratch.active, entries.feature[entries.offsets[k] : entries.offsets[k] + n_active])
    places = np.empty(nodes.last[k] - nodes.first[k] + 1, dtype=np.uint64)
    for i in range(len(places)):
        places[i] = rows.indptr[nodes.first[k] + i] - first
    return (rows.data[first:last], columns, places), n_active


@vector_kernel
def count_active(which: IntArray, rows: Rows, nodes: Nodes, out: IntArray) -> None:
    """Write the number of features that occur at each of some nodes."""
    seen = np.full(rows.n_features, -1, dtype=np.int32)
    for k in which:
        count = 0
        for place in range(rows.indptr[nodes.first[k]], rows.indptr[nodes.last[k]]):
            if seen[rows.indices[place]] != k:
                seen[rows.indices[place]] = k
                count += 1
        out[k] = count


# ---------------------------------------------------------------------- few rows


@vector_kernel
def sparse_gram(X: Any, n_features: int, out: FloatArray) -> None:
    """Write products of sparse rows with one another, on and below the diagonal."""
    data, columns, indptr = X
    row = np.zeros(n_features)
    for i in range(len(out)):
        for place in range(indptr[i], indptr[i + 1]):
            row[columns[place]] += data[place]
        for j in range(i + 1):
            total = 0.0
            for place in range(indptr[j], indptr[j + 1]):
                total += data[place] * row[columns[place]]
            out[i, j] = total
        for place in range(indptr[i], indptr[i + 1]):
            row[columns[place]] = 0.0


@vector_kernel
def train_sparse_by_gram(
    which: IntArray, rows: Rows, nodes: Nodes, objective: Objective, results: Results, entries: Entries
) -> None:
    """Train nodes with few rows by products of their rows."""
    scratch = empty_scratch(which, rows, nodes)
    for k in which:
        X, n_active = take_node(k, rows, nodes, scratch, entries)
        if not results.is_trained[0, k]:  # it may have any number of rows, all on one side
            continue
        data, columns, indptr = X
        n = len(indptr) - 1
        products, coefficients = np.empty((n, n)), np.zeros((nodes.n_members, n))
        sparse_gram(X, n_active, products)
        _visit_by_gram(k, products, nodes, objective, results, coefficients)
        for member in range(len(entries.value)):
            out = entries.value[member, entries.offsets[k] :]
            for i in range(n):
                for place in range(indptr[i], indptr[i + 1]):
                    out[columns[place]] += coefficients[member, i] * data[place]


# ---------------------------------------------------------------------- many rows


@vector_kernel
def sweep_members(  # noqa: C901 - one loop, told once
    k: int,
    first: int,
    X: Any,
    w: Any,
    nodes: Nodes,
    objective: Objective,
    results: Results,
    theta: FloatArray,
) -> None:
    """Train as many members as `w` has room for, one or four, and write their parameters.

    Where sweeps do not lead to the optimum, steps are counted negative.
    """
    y, is_free = sides(k, nodes), objective.free_intercept
    n, n_lanes = len(y), w.size // len(w)
    lanes, members = w.reshape(-1, n_lanes), range(first, min(first + n_lanes, nodes.n_members))
    state, order, mean_square = empty_state(X, y, n_lanes), np.empty(n, dtype=np.uint32), 0.0
    for i in range(n):
        order[i] = i
        mean_square += state[i, 0] / n
    slack = _SLACK * mean_square if is_free else objective.intercept_scale**2
    accuracy = _ACCURACY * min(1.0, objective.tol / 1e-4)
    if n * len(w) <= _SMALL_NODE:
        accuracy = min(accuracy, _SMALL_ACCURACY)
    tolerance, cost, z = np.zeros(n_lanes), np.empty(n), np.empty((n, n_lanes))
    for grid in range(objective.C.shape[1]):
        for member in members:
            if results.is_trained[member, k]:
                lane = member - first
                total = costs(k, member, objective.C[k, grid], nodes, objective, cost)
                tolerance[lane] = objective.tol * total
                for i in range(n):
                    state[i, 2 + 3 * lane] = cost[i]
                if grid == 0 and is_free:
                    lanes[-1, lane] = results.intercept[member, k]
        if grid > 0:
            weights_of(X, slack, is_free, state, w)
        is_near = ascend(X, order, is_free, slack, accuracy, state, w)
        most = largest_derivatives(X, is_free, slack, tolerance, state, w, z)
        for member in members:
            if results.is_trained[member, k]:
                lane = member - first
                for j in range(len(lanes)):
                    theta[member, j] = lanes[j, lane]
                if not is_near or most[lane] > tolerance[lane]:
                    results.n_steps[member, k] = -1
                results.intercept[member, k] = theta[member, len(lanes) - 1]
                keep_scores(k, grid, member, z[:, lane], nodes, results)


@vector_kernel
def train_by_sweeps(
    which: IntArray,
    rows: Rows,
    nodes: Nodes,
    objective: Objective,
    results: Results,
    entries: Entries,
    lanes: Any,
) -> None:
    """Train nodes with many rows by dual coordinate ascent.

    Parameters
    ----------
    lanes : (n_features + 1,) or (n_features + 1, 4)
        Room for the weights of one member, or of four that are trained at a time.
    """
    scratch = empty_scratch(which, rows, nodes)
    n_lanes = lanes.size // len(lanes)
    for k in which:
        X, n_active = take_node(k, rows, nodes, scratch, entries)
        theta = np.zeros((nodes.n_members, n_active + 1))
        for first in range(0, nodes.n_members, n_lanes):
            w = lanes[: n_active + 1]
            w.reshape(-1)[:] = 0.0
            sweep_members(k, first, X, w, nodes, objective, results, theta)
        for member in range(len(entries.value)):
            copy(theta[member], entries.value[member, entries.offsets[k] : entries.offsets[k] + n_active])
