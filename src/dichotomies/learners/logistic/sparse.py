"""Nodes on sparse rows: written out where they are small, by kernels otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies._kernels.compile import csr_arrays
from dichotomies._kernels.newton.gram import FEW_ROWS
from dichotomies._kernels.newton.lanes import LANES
from dichotomies._kernels.newton.sparse import (
    Entries,
    Rows,
    count_active,
    train_by_sweeps,
    train_sparse_by_gram,
)
from dichotomies.learners.logistic.dense import MOST_GRAM_ROWS
from dichotomies.learners.weights import SparseWeights

if TYPE_CHECKING:
    from dichotomies._common.typing import IntArray
    from dichotomies._kernels.newton.node import Nodes, Results
    from dichotomies.learners.base import NodeScorer
    from dichotomies.learners.logistic.training import NodeTraining

#: A product with a sparse number costs about this many of the operations of a Cholesky factor, all the
#: products of a solution considered.
_SPARSE_COST = 60.0

#: Numbers up to which sparse rows, or the weights of their features, are written out in small problems.
_WRITTEN_OUT = 2**22


def train_sparse(training: NodeTraining, results: Results) -> list[NodeScorer]:
    """Train all nodes; return the members to keep."""
    task, every = training.task, np.arange(training.task.n_nodes)
    shape = task.n_nodes, task.rows.n_features
    size = (len(task.rows) + training.n_kept * task.n_nodes) * shape[1]
    if size <= _WRITTEN_OUT and training.is_small():
        return _by_feature(shape, _written_out(training, results), results)
    return _by_feature(shape, by_kernels(training, every, results), results)


def _entries(training: NodeTraining, active: IntArray) -> Entries:
    """Room for the weights of the features that are active at each node."""
    offsets = np.concatenate([[0], np.cumsum(active)])
    value = np.zeros((training.n_kept, offsets[-1]), dtype=training.X.dtype)
    return Entries(offsets, np.zeros(offsets[-1], dtype=np.int32), value)


def _rows(training: NodeTraining) -> Rows:
    return Rows(*csr_arrays(training.X), training.X.shape[1])


def _features(k: int, rows: Rows, nodes: Nodes) -> IntArray:
    """The features of a node's rows, as often as they occur."""
    return rows.indices[rows.indptr[nodes.first[k]] : rows.indptr[nodes.last[k]]]


def _written_out(training: NodeTraining, results: Results) -> Entries:
    """Train nodes of a small problem as if their rows were dense."""
    n_nodes, n_kept, X, rows = training.task.n_nodes, training.n_kept, training.X, _rows(training)
    active = np.zeros(n_nodes, dtype=np.intp)
    if n_kept:
        active[:] = [len(np.unique(_features(k, rows, training.nodes))) for k in range(n_nodes)]
    entries, weights = _entries(training, active), np.zeros((n_kept, n_nodes, X.shape[1]), dtype=X.dtype)
    training.by_newton(np.flatnonzero(results.is_trained[0]), X.toarray(), results, weights)
    for k in range(n_nodes) if n_kept else ():
        own = slice(entries.offsets[k], entries.offsets[k + 1])
        entries.feature[own] = np.unique(_features(k, rows, training.nodes))
        entries.value[:, own] = weights[:, k, entries.feature[own]]
    return entries


def by_kernels(training: NodeTraining, which: IntArray, results: Results) -> Entries:
    """Train nodes with few rows by their products, others by sweeps, and where those fail by rows."""
    nodes, n_kept, X, rows = training.nodes, training.n_kept, training.X, _rows(training)
    active = np.zeros(training.task.n_nodes, dtype=np.intp)
    if n_kept:
        training.in_batches(which, lambda some: count_active(some, rows, nodes, active))
    entries = _entries(training, active)
    size, is_trained = training.task.node_size[which], results.is_trained[0, which]
    n_numbers = (rows.indptr[nodes.last] - rows.indptr[nodes.first])[which]
    few = (size <= MOST_GRAM_ROWS) & (size.astype(float) ** 3 < _SPARSE_COST * (n_numbers + size))
    few |= size <= FEW_ROWS
    given = rows, nodes, training.objective, results, entries
    # Those that are not trained are visited as well, for their features, if these are kept.
    visited = few & is_trained | (~is_trained & (n_kept > 0))
    training.in_batches(which[visited], lambda some: train_sparse_by_gram(some, *given))
    swept = which[~few & is_trained]
    lanes = X.shape[1] + 1, LANES
    shape = lanes if training.n_members > 1 else lanes[:1]
    training.in_batches(swept, lambda some: train_by_sweeps(some, *given, np.empty(shape)))

    def train(k: int) -> None:
        active = np.unique(_features(k, rows, nodes))
        theta = training.by_products(k, X[nodes.first[k] : nodes.last[k]][:, active], results)
        if n_kept:
            here = slice(entries.offsets[k], entries.offsets[k + 1])
            entries.feature[here], entries.value[:, here] = active, theta[:n_kept]

    training.each(train, swept[(results.n_steps[:, swept] < 0).any(axis=0)])
    return entries


def _by_feature(shape: tuple[int, int], entries: Entries, results: Results) -> list[NodeScorer]:
    """Turn entries that are stored node by node around, so that they are stored feature by feature."""
    offsets, feature, value = entries
    members: list[NodeScorer] = []
    background = np.zeros(shape[0])
    index: Any = None
    for member in range(len(value)):
        turned = csr_array((value[member], feature, offsets), shape=shape).tocsc()
        index = turned if index is None else index  # the same for all members
        intercept, is_trained = results.intercept[member], results.is_trained[member]
        members.append(
            SparseWeights(intercept, background, is_trained, index.indptr, index.indices, turned.data)
        )
    return members
