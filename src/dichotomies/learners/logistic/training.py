"""Logistic regressions of all nodes, on all rows and without each fold, every node by the solver it suits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dichotomies._common.parallel import Context, even_batches, run
from dichotomies._kernels.compile import is_small
from dichotomies._kernels.newton.node import Nodes, Results
from dichotomies.learners.logistic import newton, truncated
from dichotomies.learners.logistic.dense import MOST_GRAM_ROWS, SMALL_NODE, by_kernels, suitable_axes
from dichotomies.learners.logistic.sparse import train_sparse
from dichotomies.learners.weights import DenseWeights

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies._kernels.newton.axes import Axes
    from dichotomies._kernels.newton.node import Objective
    from dichotomies.learners.base import NodeScorer
    from dichotomies.learners.logistic.learner import Settings
    from dichotomies.rows import NodeTask


class Solver(Protocol):
    """An algorithm that improves the parameters of some nodes."""

    def solve(self, own: IntArray, cost: FloatArray, theta: FloatArray) -> tuple[FloatArray, IntArray]:
        """Find the optimum for other costs, starting from `theta`, which is overwritten.

        Parameters
        ----------
        own : (n_own,)
            Places of the nodes to improve.
        cost : (n_own, n)
            Of each row, 0 for those that are only scored.
        theta : (n_own, q)
            Parameters.

        Returns
        -------
        scores : (n_own, n)
        n_steps : (n_own,)
            Negative, or 0, where the optimum was not reached.
        """


@dataclass(frozen=True)
class Members:
    """The rows of some nodes, padded to one length, and the members of cross-fitting that may see them.

    Trains them by solvers in plain numpy; kernels have the same loop over strengths of the penalty and
    members inside.

    Attributes
    ----------
    which : (n_nodes,)
        Numbers of the nodes.
    place : (n_nodes, n)
        Places of the rows in the order of leaves.
    is_row : (n_nodes, n)
        False for padding.
    y : (n_nodes, n)
        +1 on the left and -1 on the right.
    weight : (n_nodes, n)
        0 as padding.
    fold : (n_nodes, n)
    """

    which: IntArray
    place: IntArray
    is_row: BoolArray
    y: FloatArray
    weight: FloatArray
    fold: IntArray

    @classmethod
    def of(cls, which: IntArray, nodes: Nodes) -> Members:
        """Collect the rows of some nodes."""
        first, last = nodes.first[which][:, None], nodes.last[which][:, None]
        place = first + np.arange((last - first).max())
        is_row = place < last
        place = np.where(is_row, place, first)
        y = np.where(place < nodes.split[which][:, None], 1.0, -1.0)
        return cls(which, place, is_row, y, np.where(is_row, nodes.weight[place], 0.0), nodes.fold[place])

    def train(
        self, solver: Solver, n_parameters: int, nodes: Nodes, objective: Objective, results: Results
    ) -> FloatArray:
        """Train all members; return their parameters (n_members, n_nodes, n_parameters) for the last C."""
        theta = np.zeros((nodes.n_members, len(self.which), n_parameters))
        z = np.full((nodes.n_members, *self.y.shape), np.nan)
        for grid in range(objective.C.shape[1]):
            for member in range(nodes.n_members):
                if member:
                    theta[member] = theta[0]
                own = np.flatnonzero(results.is_trained[member, self.which])
                parameters = theta[member, own]
                scores, n_steps = solver.solve(own, self._costs(own, member, grid, objective), parameters)
                theta[member, own], z[member, own] = parameters, scores
                results.n_steps[member, self.which[own]] = n_steps
            if nodes.n_members > 1:
                self._keep_scores(grid, z[1:], results)
        return theta

    def _costs(self, own: IntArray, member: int, grid: int, objective: Objective) -> FloatArray:
        which, is_left = self.which[own], self.y[own] > 0
        seen = np.where(self.fold[own] != member - 1, self.weight[own], 0.0)
        left, right = objective.left_factor[which], objective.right_factor[which]
        if objective.balanced:
            of_left, of_right = (
                np.where(is_left, seen, 0.0).sum(axis=1),
                np.where(is_left, 0.0, seen).sum(axis=1),
            )
            left, right = (of_left + of_right) / (2.0 * of_left), (of_left + of_right) / (2.0 * of_right)
        factor = np.where(is_left, left[:, None], right[:, None])
        costs: FloatArray = objective.C[which, grid][:, None] * factor * seen
        return costs

    def _keep_scores(self, grid: int, z: FloatArray, results: Results) -> None:
        """Keep every row's score by the member that has not seen it, and the loss of a node's rows."""
        score = np.take_along_axis(z, self.fold[None], axis=0)[0]
        margin = self.y * score
        losses = self.weight * (np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin))))
        for i, k in enumerate(self.which):
            own = score[i, self.is_row[i]]
            results.scores[results.pair_offsets[k] : results.pair_offsets[k] + len(own)] = own
            if not np.isnan(own).all():
                results.nll[k, grid] = np.nansum(losses[i])


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
        Number of members whose weights are kept.
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
        results = self._results()
        members = self._dense(results) if self.is_dense else train_sparse(self, results)
        self._warn_of(results)
        return Trained(members, results)

    @property
    def is_dense(self) -> bool:
        """True if the rows are dense."""
        return isinstance(self.task.rows.base, np.ndarray)

    @cached_property
    def X(self) -> Any:  # noqa: N802
        """Features of the rows, sorted by leaf."""
        return self.task.rows.features_of(self.task.row_order)

    @cached_property
    def axes(self) -> Axes | None:
        """The rows along their principal axes, sorted by leaf; None where nodes are not solved along them."""
        axes = suitable_axes(self)
        return None if axes is None else axes._replace(rows=axes.rows.take(self.task.row_order, axis=0))

    @cached_property
    def objective(self) -> Objective:
        """The objective at each node."""
        return self.settings.objective(self.task.left_is_positive, self.C, self.task.rows.base.dtype)

    def _results(self) -> Results:
        """Results before training: which members have both sides, what the others answer, no scores yet."""
        size = self.task.node_size if self.folds is not None else np.zeros(self.task.n_nodes, dtype=np.intp)
        nodes = self.nodes
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
            scores=np.full(size.sum(), np.nan),
            pair_offsets=np.cumsum(size) - size,
            nll=np.full(self.C.shape, np.nan),
        )

    @cached_property
    def nodes(self) -> Nodes:
        """Places of the nodes' rows in the order of leaves, with weights and folds, as kernels take them."""
        task, order = self.task, self.task.row_order
        n_rows = len(order)
        place = task.leaf_offset.astype(np.intp)
        weight = np.ones(n_rows) if task.rows.weight is None else task.rows.weight[order]
        fold = np.zeros(n_rows, dtype=np.intp) if self.folds is None else self.folds[order].astype(np.intp)
        return Nodes(place[task.start], place[task.split], place[task.stop], weight, fold, self.n_members)

    def is_small(self) -> bool:
        """Return True if plain code is to be preferred, see `dichotomies._kernels.compile.is_small`."""
        n_problems = self.n_members * self.C.shape[1]
        rows = self.task.rows
        return is_small(len(rows), _plain_seconds(self.task.node_size, rows.n_features, n_problems))

    # ------------------------------------------------------------------ dense rows

    def _dense(self, results: Results) -> list[NodeScorer]:
        shape = self.n_kept, self.task.n_nodes, self.task.rows.n_features
        weights: FloatArray = np.zeros(shape, self.task.rows.base.dtype)
        self.solve_dense(np.flatnonzero(results.is_trained[0]), results, weights)
        return [
            DenseWeights(weights[member], results.intercept[member], results.is_trained[member])
            for member in range(self.n_kept)
        ]

    def solve_dense(self, which: IntArray, results: Results, weights: FloatArray) -> None:
        """Train some nodes on dense rows, each by the solver it suits."""
        is_small = self.is_small()
        if is_small:
            left = self.by_rows(which, self.X.astype(np.float64, copy=False), results, weights)
        else:
            left = by_kernels(self, which, results, weights)
        if len(left):
            X = self.X.astype(np.float64, copy=False) if is_small else self.X
            self.by_newton(left, X, results, weights)

    def by_newton(self, which: IntArray, X: FloatArray, results: Results, weights: FloatArray) -> None:
        """Train nodes by matrices of second derivatives, in plain numpy."""
        batches = newton.batches(which, self.task.node_size, X.shape[1])

        def train(batch: IntArray) -> None:
            members = Members.of(batch, self.nodes)
            solver = newton.Batch.of(members, X, self.objective)
            theta = members.train(solver, solver.design.shape[2], self.nodes, self.objective, results)
            for member in range(self.n_members):
                of_features, intercept = solver.weights(theta[member])
                own = results.is_trained[member, batch]
                results.intercept[member, batch[own]] = intercept[own]
                if member < self.n_kept:
                    weights[member, batch[own]] = of_features[own]

        self.each(train, batches)

    def by_products(self, k: int, X: Any, results: Results) -> FloatArray:
        """Train a node by products with its rows (n, p), dense or sparse; return weights (n_members, p)."""
        members = Members.of(np.array([k]), self.nodes)
        rows = truncated.Rows.of(X, self.objective)
        solver = truncated.OneNode(rows, members.y[0], self.objective)
        theta = members.train(solver, len(rows.penalty), self.nodes, self.objective, results)[:, 0]
        own = results.is_trained[:, k]
        results.intercept[own, k] = theta[own, -1]
        return theta[:, :-1]

    def by_rows(self, which: IntArray, X: FloatArray, results: Results, weights: FloatArray) -> IntArray:
        """Train large nodes by products with their rows; return those that are left to others."""
        size = self.task.node_size[which]
        is_large = (size * X.shape[1] > SMALL_NODE) & (size > min(X.shape[1], MOST_GRAM_ROWS))

        def train(k: int) -> None:
            rows = X[self.nodes.first[k] : self.nodes.last[k]]
            weights[:, k] = self.by_products(k, rows, results)[: self.n_kept]

        self.each(train, which[is_large])
        left: IntArray = which[~is_large]
        return left

    # ------------------------------------------------------------------ in batches

    def in_batches(self, which: IntArray, task: Callable[[IntArray], None]) -> None:
        """Call a kernel for some nodes, in batches of about the same number of rows."""
        if len(which):
            batches = even_batches(self.task.node_size[which], self.context.n_jobs)
            self.each(task, [which[batch.start : batch.stop] for batch in batches])

    def each(self, task: Callable[[Any], None], batches: Any) -> None:
        """Call a function for each node, or batch of nodes."""
        _ = self.nodes, self.objective  # so that workers need not each compute them
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


def _plain_seconds(n_rows: IntArray, n_features: int, n_problems: int) -> float:
    """Estimate how long nodes with these numbers of rows take without kernels."""
    width = np.minimum(n_rows, n_features) + 1
    per_step = 2e-5 + 4e-8 * n_rows + 6e-11 * (n_rows * width * width + width**3)
    reduction = np.where(n_rows <= n_features, 2e-10 * n_rows * n_rows * n_features, 0.0)
    return float((8 * n_problems * per_step + reduction).sum())
