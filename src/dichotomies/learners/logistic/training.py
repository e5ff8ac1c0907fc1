"""Logistic regressions of all nodes, on all rows and without each fold, every node by the solver it suits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from dichotomies._common.parallel import even_batches, run
from dichotomies._kernels.compile import csr_arrays, is_small
from dichotomies._kernels.newton.axes import train_along_axes
from dichotomies._kernels.newton.gram import FEW_ROWS, train_by_gram
from dichotomies._kernels.newton.lanes import LANES
from dichotomies._kernels.newton.node import Nodes, Results
from dichotomies._kernels.newton.sparse import (
    Entries,
    Rows,
    count_active,
    train_by_sweeps,
    train_sparse_by_gram,
)
from dichotomies.learners.logistic import newton, truncated
from dichotomies.learners.logistic.rotation import principal_axes
from dichotomies.learners.weights import DenseWeights, SparseWeights

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies._common.parallel import Context
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies._kernels.newton.axes import Axes
    from dichotomies._kernels.newton.node import Objective
    from dichotomies.learners.base import NodeScorer
    from dichotomies.learners.logistic.settings import Settings
    from dichotomies.rows import NodeTask

#: Single precision does down to this tol, and for features up to this size.
_LOOSE_TOL, _LARGEST = 1e-5, 1e15

#: Turning rows to their principal axes is work of 1 per number and axis, finding the axes so much per number
#: of their matrix and axis; and so much is saved per number in the rows of a node.
_FINDING, _SAVING = 32, 256

#: Rows times features of a node up to which matrices of second derivatives cost next to nothing.
_SMALL_NODE = 10_000

#: Rows beyond which no Gram matrix of them is made.
_MOST_GRAM_ROWS = 1500

#: A product with a sparse number costs about this many of the operations of a Cholesky factor, all the
#: products of a solution considered.
_SPARSE_COST = 60.0

#: Numbers up to which sparse rows, or the weights of their features, are written out in small problems.
_WRITTEN_OUT = 2**22


@dataclass(frozen=True)
class Trained:
    """Trained members and their results.

    Attributes
    ----------
    members : list of NodeScorer
        As many as were to be kept: trained on all rows, then without each fold.
    results : Results
        Out-of-fold scores and losses.
    """

    members: list[NodeScorer]
    results: Results


@dataclass(frozen=True)
class NodeTraining:
    """Logistic regressions at the nodes of a tree.

    Attributes
    ----------
    C : (n_nodes, n_grid)
        Inverse strengths of the penalty to try at each node; scores and weights are those of the last.
    folds : (n_rows,) or None
        The fold of each row.
    n_kept : int
        How many members' weights to keep.
    """

    task: NodeTask
    settings: Settings
    C: FloatArray
    folds: IntArray | None
    n_kept: int
    context: Context

    @cached_property
    def n_members(self) -> int:
        """One for all rows, and one per fold."""
        return 1 if self.folds is None else int(self.folds.max()) + 2

    def run(self) -> Trained:
        """Train all nodes."""
        results = self._empty_results()
        train = self._dense if isinstance(self.task.rows.X, np.ndarray) else self._sparse
        members = train(results)
        self._warn_of(results)
        return Trained(members, results)

    @cached_property
    def _objective(self) -> Objective:
        return self.settings.objective(self.task.left_is_positive, self.C, self.task.rows.X.dtype)

    def _empty_results(self) -> Results:
        """Results before training: which members have both sides, and what the others answer."""
        size, nodes = self.task.node_size, self._nodes
        left, right, n_left, n_right = np.empty((4, self.n_members, self.task.n_nodes))
        edges = np.stack([nodes.first, nodes.split, nodes.last])
        for member in range(self.n_members):
            seen = np.where(nodes.fold != member - 1, nodes.weight, 0.0)
            weight, count = (np.append(0.0, np.cumsum(each))[edges] for each in (seen, seen > 0))
            left[member], right[member] = np.maximum(np.diff(weight, axis=0), 0.0)
            n_left[member], n_right[member] = np.diff(count, axis=0)
        return Results(
            intercept=np.log((left + 1.0) / (right + 1.0)),
            is_trained=(n_left > 0) & (n_right > 0),
            n_steps=np.ones(left.shape, dtype=np.intp),
            scores=np.full(0 if self.folds is None else size.sum(), np.nan),
            pair_offsets=np.cumsum(size) - size,
            nll=np.full(self.C.shape, np.nan),
        )

    @cached_property
    def _nodes(self) -> Nodes:
        task, order = self.task, self.task.row_order
        n_rows = len(order)
        place = task.leaf_offset.astype(np.intp)
        weight = np.ones(n_rows) if task.rows.weight is None else task.rows.weight[order]
        fold = np.zeros(n_rows, dtype=np.intp) if self.folds is None else self.folds[order].astype(np.intp)
        return Nodes(place[task.start], place[task.split], place[task.stop], weight, fold, self.n_members)

    def _is_small(self) -> bool:
        n_problems = self.n_members * self.C.shape[1]
        n_rows, n_features = self.task.rows.X.shape
        return is_small(n_rows, newton.seconds(self.task.node_size, n_features, n_problems))

    # ------------------------------------------------------------------ dense rows

    def _dense(self, results: Results) -> list[NodeScorer]:
        X = self.task.rows.X
        weights = np.zeros((self.n_kept, self.task.n_nodes, X.shape[1]), dtype=X.dtype)
        self._solve_dense(np.flatnonzero(results.is_trained[0]), results, weights)
        return [
            DenseWeights(weights[member], results.intercept[member], results.is_trained[member])
            for member in range(self.n_kept)
        ]

    def _solve_dense(self, which: IntArray, results: Results, weights: FloatArray) -> None:
        """Train some nodes on dense rows, each by the solver it suits."""
        X = self.task.rows.features_of(self.task.row_order)
        if self._is_small():
            X = X.astype(np.float64, copy=False)
        else:
            which = self._along_axes(which, X, results, weights)
            which = self._by_gram(which, X, results, weights)
        which = self._by_rows(which, X, results, weights)
        self._by_newton(which, X, results, weights)

    def _by_newton(self, which: IntArray, X: FloatArray, results: Results, weights: FloatArray) -> None:
        """Train nodes by matrices of second derivatives, in plain numpy."""
        batches = newton.batches(which, self.task.node_size, X.shape[1])

        def train(batch: IntArray) -> None:
            newton.train(batch, X, self._nodes, self._objective, results, weights)

        self._run(train, batches)

    def _along_axes(self, which: IntArray, X: FloatArray, results: Results, weights: FloatArray) -> IntArray:
        """Train large nodes in single precision; return those that are left to others."""
        size, p = self.task.node_size, X.shape[1]
        is_large = (size[which] > FEW_ROWS) & (size[which] * p > _SMALL_NODE)
        if not is_large.any() or not self._suits_axes(X):
            return which
        axes, along = self._axes(), np.zeros((self.n_kept, self.task.n_nodes, p))
        chosen = which[is_large]
        self._in_batches(
            chosen, lambda some: train_along_axes(some, axes, self._nodes, self._objective, results, along)
        )
        for member in range(self.n_kept):
            weights[member, chosen] = along[member, chosen] @ axes.basis.T
        return np.concatenate([which[~is_large], chosen[(results.n_steps[:, chosen] < 0).any(axis=0)]])

    def _axes(self) -> Axes:
        """The rows along their principal axes, in the order of the leaves."""
        rows, n_jobs = self.task.rows, self.context.n_jobs
        axes = rows.remember("principal axes", lambda: principal_axes(rows.X, n_jobs))
        turned: Axes = axes._replace(rows=axes.rows.take(self.task.row_order, axis=0))
        return turned

    def _suits_axes(self, X: FloatArray) -> bool:
        """Test that single precision will do, and turning rows to their axes is less work than it saves."""
        n, p = X.shape
        if not self.settings.free_intercept or self.settings.tol < _LOOSE_TOL:
            return False
        pays = p * (n + _FINDING * p) < _SAVING * self.task.node_size.sum()
        return bool(pays and max(X.max(), -X.min()) < _LARGEST)

    def _by_gram(self, which: IntArray, X: FloatArray, results: Results, weights: FloatArray) -> IntArray:
        """Train nodes with fewer rows than features; return those that are left to others."""
        fits = self.task.node_size[which] <= min(X.shape[1], _MOST_GRAM_ROWS)
        self._in_batches(
            which[fits], lambda some: train_by_gram(some, X, self._nodes, self._objective, results, weights)
        )
        left: IntArray = which[~fits]
        return left

    def _by_rows(self, which: IntArray, X: FloatArray, results: Results, weights: FloatArray) -> IntArray:
        """Train large nodes by products with their rows; return those that are left to others."""
        size = self.task.node_size[which]
        is_large = (size * X.shape[1] > _SMALL_NODE) & (size > min(X.shape[1], _MOST_GRAM_ROWS))

        def train(k: int) -> None:
            rows = X[self._nodes.first[k] : self._nodes.last[k]]
            weights[:, k] = truncated.train(k, rows, self._nodes, self._objective, results)[: self.n_kept]

        self._run(train, which[is_large])
        left: IntArray = which[~is_large]
        return left

    # ------------------------------------------------------------------ sparse rows

    def _sparse(self, results: Results) -> list[NodeScorer]:
        X = self.task.rows.features_of(self.task.row_order)
        rows = Rows(*csr_arrays(X), X.shape[1])
        size = (X.shape[0] + self.n_kept * self.task.n_nodes) * X.shape[1]
        small = size <= _WRITTEN_OUT and self._is_small()
        entries = self._entries(rows, small=small)
        if small:
            self._written_out(X, rows, results, entries)
        else:
            self._by_kernels(X, rows, results, entries)
        return _by_feature((self.task.n_nodes, X.shape[1]), entries, results)

    def _entries(self, rows: Rows, *, small: bool) -> Entries:
        """Room for the weights of the features that are active at each node."""
        active = np.zeros(self.task.n_nodes, dtype=np.intp)
        every = np.arange(self.task.n_nodes)
        if self.n_kept and small:
            active[:] = [len(np.unique(self._features(k, rows))) for k in every.tolist()]
        elif self.n_kept:
            self._in_batches(every, lambda some: count_active(some, rows, self._nodes, active))
        offsets = np.concatenate([[0], np.cumsum(active)])
        value = np.zeros((self.n_kept, offsets[-1]), dtype=rows.data.dtype)
        return Entries(offsets, np.zeros(offsets[-1], dtype=np.int32), value)

    def _features(self, k: int, rows: Rows) -> IntArray:
        """The features of a node's rows, as often as they occur."""
        return rows.indices[rows.indptr[self._nodes.first[k]] : rows.indptr[self._nodes.last[k]]]

    def _written_out(self, X: Any, rows: Rows, results: Results, entries: Entries) -> None:
        """Train nodes of a small problem as if their rows were dense."""
        weights = np.zeros((self.n_kept, self.task.n_nodes, X.shape[1]), dtype=X.dtype)
        self._by_newton(np.flatnonzero(results.is_trained[0]), X.toarray(), results, weights)
        for k in range(self.task.n_nodes) if self.n_kept else ():
            own = slice(entries.offsets[k], entries.offsets[k + 1])
            entries.feature[own] = np.unique(self._features(k, rows))
            entries.value[:, own] = weights[:, k, entries.feature[own]]

    def _by_kernels(self, X: Any, rows: Rows, results: Results, entries: Entries) -> None:
        """Train nodes with few rows by their products, others by sweeps, and where those fail by rows."""
        size, is_trained = self.task.node_size, results.is_trained[0]
        n_numbers = rows.indptr[self._nodes.last] - rows.indptr[self._nodes.first]
        few = (size <= _MOST_GRAM_ROWS) & (size.astype(float) ** 3 < _SPARSE_COST * (n_numbers + size))
        few |= size <= FEW_ROWS
        given = rows, self._nodes, self._objective, results, entries
        # Those that are not trained are visited as well, for their features, if these are kept.
        visited = few & is_trained | (~is_trained & (self.n_kept > 0))
        self._in_batches(np.flatnonzero(visited), lambda some: train_sparse_by_gram(some, *given))
        swept = np.flatnonzero(~few & is_trained)
        lanes = X.shape[1] + 1, LANES
        shape = lanes if self.n_members > 1 else lanes[:1]
        self._in_batches(swept, lambda some: train_by_sweeps(some, *given, np.empty(shape)))

        def train(k: int) -> None:
            active = np.unique(self._features(k, rows))
            own = X[self._nodes.first[k] : self._nodes.last[k]][:, active]
            theta = truncated.train(k, own, self._nodes, self._objective, results)
            if self.n_kept:
                here = slice(entries.offsets[k], entries.offsets[k + 1])
                entries.feature[here], entries.value[:, here] = active, theta[: self.n_kept]

        self._run(train, swept[(results.n_steps[:, swept] < 0).any(axis=0)])

    # ------------------------------------------------------------------ in batches

    def _in_batches(self, which: IntArray, task: Callable[[IntArray], None]) -> None:
        """Call a kernel for some nodes, in batches of about the same number of rows."""
        if len(which):
            batches = even_batches(self.task.node_size[which], self.context.n_jobs)
            self._run(task, [which[batch.start : batch.stop] for batch in batches])

    def _run(self, task: Callable[[Any], None], batches: Any) -> None:
        _ = self._nodes, self._objective  # so that workers need not each compute them
        if len(batches):
            progress = self.context.progress(f"training {self.task.n_nodes} nodes")
            each = [(batch,) for batch in batches]
            run(task, each, n_jobs=self.context.n_jobs, progress=progress, shared_memory=True)

    def _warn_of(self, results: Results) -> None:
        """Once for all nodes."""
        count = int((results.n_steps <= 0).sum())
        if count:
            of = "" if self.n_members == 1 else ", each trained on all rows and without each fold"
            warnings.warn(
                f"Logistic regression did not converge {count} times at {self.task.n_nodes} nodes{of}, "
                f"within max_iter={self.settings.max_iter} Newton steps. Scale the features, lower C, or "
                "raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )


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
