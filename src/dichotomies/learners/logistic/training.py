"""Logistic regressions of all nodes, on all rows and without each fold, trained in batches of nodes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from dichotomies._common.parallel import even_batches, run
from dichotomies._kernels.newton.node import Nodes, Results
from dichotomies._kernels.newton.sparse import count_active, train_sparse
from dichotomies._kernels.newton.visit import train_dense
from dichotomies.learners.logistic.rotation import no_axes, principal_axes
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


@dataclass(frozen=True)
class Trained:
    """What came of training.

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
        objective = self.settings.objective(self.task.left_is_positive, self.C, self.task.rows.X.dtype)
        train = self._dense if isinstance(self.task.rows.X, np.ndarray) else self._sparse
        members = train(objective, results)
        self._warn_of(results)
        return Trained(members, results)

    def _empty_results(self) -> Results:
        n_nodes = self.task.n_nodes
        shape = self.n_members, n_nodes
        size = self.task.node_size
        return Results(
            intercept=np.empty(shape),
            is_trained=np.empty(shape, dtype=bool),
            n_steps=np.empty(shape, dtype=np.intp),
            scores=np.empty(0 if self.folds is None else size.sum()),
            pair_offsets=np.cumsum(size) - size,
            nll=np.full((n_nodes, self.C.shape[1]), np.nan),
        )

    @cached_property
    def _nodes(self) -> Nodes:
        task, order = self.task, self.task.row_order
        n_rows = len(order)
        place = task.leaf_offset.astype(np.intp)
        weight = np.ones(n_rows) if task.rows.weight is None else task.rows.weight[order]
        fold = np.zeros(n_rows, dtype=np.intp) if self.folds is None else self.folds[order].astype(np.intp)
        return Nodes(place[task.start], place[task.split], place[task.stop], weight, fold, self.n_members)

    def _dense(self, objective: Objective, results: Results) -> list[NodeScorer]:
        X = self.task.rows.features_of(self.task.row_order)
        weights = np.zeros((self.n_kept, self.task.n_nodes, X.shape[1]), dtype=X.dtype)
        axes = self._axes() if self._suits_axes(X) else no_axes(X)

        def train(batch: range) -> None:
            train_dense(batch.start, batch.stop, X, axes, self._nodes, objective, results, weights)

        self._in_batches(train, "training")
        return [
            DenseWeights(weights[member], results.intercept[member], results.is_trained[member])
            for member in range(self.n_kept)
        ]

    def _axes(self) -> Axes:
        """The rows along their principal axes, in the order of the leaves."""
        rows, n_jobs = self.task.rows, self.context.n_jobs
        axes = rows.remember("principal axes", lambda: principal_axes(rows.X, n_jobs))
        turned: Axes = axes._replace(rows=axes.rows.take(self.task.row_order, axis=0))
        return turned

    def _suits_axes(self, X: FloatArray) -> bool:
        """Whether single precision will do, and turning rows to their axes is less work than it saves."""
        n, p = X.shape
        if not self.settings.free_intercept or self.settings.tol < _LOOSE_TOL:
            return False
        pays = p * (n + _FINDING * p) < _SAVING * self.task.node_size.sum()
        return bool(pays and max(X.max(), -X.min()) < _LARGEST)

    def _sparse(self, objective: Objective, results: Results) -> list[NodeScorer]:
        X = self.task.rows.features_of(self.task.row_order)
        data, indices, indptr = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64)
        n_nodes, n_features = self.task.n_nodes, X.shape[1]
        active = np.zeros(n_nodes, dtype=np.intp)

        def count(batch: range) -> None:
            count_active(batch.start, batch.stop, indices, indptr, self._nodes, n_features, active)

        if self.n_kept:
            self._in_batches(count)
        offsets = np.concatenate([[0], np.cumsum(active)])
        feature = np.empty(offsets[-1], dtype=np.int32)
        value = np.zeros((self.n_kept, offsets[-1]), dtype=X.dtype)

        def train(batch: range) -> None:
            train_sparse(
                batch.start, batch.stop, data, indices, indptr, n_features, self._nodes, objective, results,
                offsets, feature, value,
            )  # fmt: skip

        self._in_batches(train, "training")
        return _by_feature((n_nodes, n_features), offsets, feature, value, results)

    def _in_batches(self, task: Callable[[range], None], what: str = "") -> None:
        _ = self._nodes  # so that workers need not each compute it
        n_jobs, n_nodes = self.context.n_jobs, self.task.n_nodes
        batches = [(batch,) for batch in even_batches(self.task.node_size, n_jobs)]
        progress = self.context.progress(f"{what} {n_nodes} nodes") if what else None
        run(task, batches, n_jobs=n_jobs, progress=progress, shared_memory=True)

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


def _by_feature(
    shape: tuple[int, int], offsets: IntArray, feature: IntArray, value: Any, results: Results
) -> list[NodeScorer]:
    """Turn entries that are stored node by node around, so that they are stored feature by feature."""
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
