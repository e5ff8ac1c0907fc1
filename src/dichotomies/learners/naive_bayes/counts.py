"""Weights of nodes from counts of features: of all of them for dense rows, of active ones for sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_array

from dichotomies._common.parallel import Context, run
from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.naive_bayes import (
    BERNOULLI,
    LEAVES,
    MERGED,
    NORMALISED,
    ROUNDING,
    Counts,
    KeptWeights,
    Models,
    SparseRows,
    Visits,
    Workspace,
    visit_nodes,
)
from dichotomies.learners.naive_bayes.smoothing import NodeTrainer, Sides, Smoothing
from dichotomies.learners.weights import DenseWeights, SparseWeights
from dichotomies.rows import NodeTask

#: Weights, at most, that are kept of a batch of sparse nodes before they are put together.
_BATCH = 2**22


@dataclass(frozen=True)
class DenseTrainer(NodeTrainer):
    """Nodes from the counts of all features."""

    smoothing: Smoothing

    def weights(self, fold: int | None, context: Context) -> DenseWeights:  # noqa: ARG002 - as of the others
        """Train the nodes on all rows, or on all but those of a fold."""
        sides, counts = self.sides(fold), self.side_sums(self.without(self.known.counts(dense=True), fold))
        prior = self.smoothing.prior.log_odds(self.task.left_is_positive, sides)
        weight, intercept = self._weights_of(counts, sides)
        weight[~sides.is_trained] = 0.0
        intercept = np.where(sides.is_trained, prior + intercept, sides.constant)
        return DenseWeights(weight, intercept, sides.is_trained)

    def _weights_of(self, counts: FloatArray, sides: Sides) -> tuple[FloatArray, FloatArray]:
        """Compute weights and intercepts from counts (n_nodes, 2, n_features), which are overwritten."""
        rows, alpha = sides.weight[:, :, None], self.smoothing.alphas(counts.shape[2])
        if self.smoothing.rule == BERNOULLI:
            total = rows + 2 * alpha[0]
            absent = rows - counts
            absent[(absent < 0) & (absent > -ROUNDING * rows)] = 0.0
            absent = np.log(np.add(absent, alpha, out=absent))
            logs = np.log(np.add(counts, alpha, out=counts), out=counts)
            logs -= absent
            never = (absent - np.log(total)).sum(axis=2)
            return logs[:, 0] - logs[:, 1], never[:, 0] - never[:, 1]
        counts += alpha
        logs = np.log(np.divide(counts, counts.sum(axis=2, keepdims=True), out=counts), out=counts)
        if self.smoothing.rule == NORMALISED:
            logs /= -logs.sum(axis=2, keepdims=True)
        return logs[:, 0] - logs[:, 1], np.zeros(len(logs))


@dataclass(frozen=True)
class SparseTrainer(NodeTrainer):
    """Nodes from the counts of active features, merged from the leaves up.

    The models of all folds are made at each node from the same list of active features.
    """

    smoothing: Smoothing

    def weights(self, fold: int | None, context: Context) -> SparseWeights:
        """Train the nodes on all rows, or on all but those of a fold."""
        indices: Any = np.empty(0, dtype=np.int32)  # of the types of other rows: the kernel is compiled once
        nowhere, nothing = np.empty(0, dtype=np.intp), np.empty(0)
        rows = SparseRows(nothing, indices, nowhere, nowhere, nowhere, nothing, nowhere)
        weights = self._visit([fold], rows, nothing, context, keeps=True)
        assert weights is not None
        return weights

    def out_of_fold(
        self, X: Any, context: Context, *, with_full: bool
    ) -> tuple[FloatArray, SparseWeights | None]:
        """Out-of-fold scores of `task.own_pairs()` and, if `with_full`, the weights from all rows."""
        task = self.task
        assert task.rows.fold is not None
        by_leaf = X[task.row_order]
        rows = SparseRows(
            by_leaf.data.astype(np.float64, copy=False),
            by_leaf.indices.astype(np.int32, copy=False),
            by_leaf.indptr.astype(np.intp, copy=False),
            task.leaf_offset,
            task.rows.fold[task.row_order].astype(np.intp, copy=False),
            np.asarray(by_leaf.sum(axis=1, dtype=np.float64)).ravel(),
            np.concatenate([[0], np.cumsum(task.node_size)]),
        )
        out, folds = np.empty(rows.pair_offset[-1]), range(self.known.n_folds)
        left_out: list[int | None] = [*folds, None] if with_full else [*folds]
        return out, self._visit(left_out, rows, out, context, keeps=with_full)

    def _visit(
        self,
        left_out: Sequence[int | None],
        rows: SparseRows,
        out: FloatArray,
        context: Context,
        *,
        keeps: bool,
    ) -> SparseWeights | None:
        """Visit all nodes, with a worker for some of the models; return the weights of the last model."""
        counts = csr_array(self.known.taken(self.task.tree.leaf_order).counts())
        offsets, features = counts.indptr.astype(np.intp), counts.indices.astype(np.int32, copy=False)
        given = Counts(self.known.n_folds, offsets, features, counts.data)
        plan = _VisitPlan.of(self.task, offsets[:: self.known.n_folds], counts.shape[1])
        sides, models = self._models(left_out)
        sizes = np.zeros(self.task.n_nodes, dtype=np.intp)

        def work(own: range, keeps: bool) -> list[tuple[Any, FloatArray]]:
            part = Models(*models[:2], *(each[own.start : own.stop] for each in models[2:]))  # type: ignore[arg-type]
            space = Workspace.blank(len(own), counts.shape[1], plan.n_pending, plan.n_active)
            found = []
            for i, (visits, most) in enumerate(plan.batches):
                room = most if keeps else 0
                kept = KeptWeights(sizes, np.empty(room, dtype=np.int32), np.empty(room))
                n = visit_nodes(visits, given, part, rows, space, kept, out)
                found.append((kept.feature[:n].copy(), kept.value[:n].copy()))
                if progress is not None and own.start == 0:
                    progress.show((i + 1) / len(plan.batches))
            return found

        edges = np.linspace(0, len(left_out), min(len(left_out), effective_n_jobs(context.n_jobs)) + 1)
        parts = [range(a, b) for a, b in pairwise(edges.astype(int).tolist())]
        arguments = [(part, keeps and part.stop == len(left_out)) for part in parts]
        what = "scoring out of fold at" if len(out) else "training"
        progress = context.progress(f"{what} {self.task.n_nodes} nodes")
        found = run(work, arguments, n_jobs=context.n_jobs, shared_memory=True)[-1]
        if not keeps:
            return None
        feature, value = (np.concatenate(each) for each in zip(*found, strict=True))
        trained, is_trained = plan.trained, sides.is_trained
        begin = np.concatenate([[0], np.cumsum(sizes[trained])])
        place = np.empty_like(trained)
        place[trained] = np.arange(len(trained))
        entries = csr_array((value, feature, begin), (len(trained), counts.shape[1]))[place].tocsc()
        return SparseWeights(
            np.where(is_trained, models.intercept[-1], sides.constant),
            np.where(is_trained, models.background[-1], 0.0),
            is_trained,
            entries.indptr.astype(np.intp),
            np.asarray(entries.indices),
            entries.data,
        )

    def _models(self, left_out: Sequence[int | None]) -> tuple[Sides, Models]:
        """Sides of the last model, and the parameters of all models that do not depend on active features."""
        alpha = self.smoothing.alphas(self.known.n_features)
        of_group = self.known.counts().sum(axis=1)[:, None]
        sides = [self.sides(fold) for fold in left_out]
        sums = [self.side_sums(self.without(of_group, fold))[:, :, 0] for fold in left_out]
        positive = self.task.left_is_positive
        made = [self.smoothing.background(positive, *each, alpha) for each in zip(sides, sums, strict=True)]
        intercept, background, of_side = (np.stack(each) for each in zip(*made, strict=True))
        folds = np.array([-1 if fold is None else fold for fold in left_out])
        is_trained = np.stack([each.is_trained for each in sides])
        models = Models(self.smoothing.rule, alpha, folds, of_side, intercept, background, is_trained)
        return sides[-1], models


@dataclass(frozen=True)
class _VisitPlan:
    """Visits in post-order.

    Attributes
    ----------
    batches : list of (Visits, int)
        With the number of weights, at most, that the last model of their nodes has.
    n_pending, n_active : int
        Number of pending subtrees, and of their active features, at most.
    trained : (n_nodes,)
        The nodes of the task in the order of their visits.
    """

    batches: list[tuple[Visits, int]]
    n_pending: int
    n_active: int
    trained: IntArray

    @classmethod
    def of(cls, task: NodeTask, offsets: IntArray, n_features: int) -> _VisitPlan:
        """Plan the visits; `offsets` (n_leaves + 1,) delimit the active features of leaves."""
        tree = task.tree
        place = np.full(tree.n_nodes, MERGED)
        place[slice(None) if task.nodes is None else task.nodes] = np.arange(task.n_nodes)
        is_visited = place >= 0  # or above a node that is trained
        for k in range(tree.n_nodes - 1, 0, -1):  # parents come first
            is_visited[tree.parent[k]] |= is_visited[k]

        def bound(start: IntArray, stop: IntArray) -> IntArray:
            """Active features of some leaves, at most."""
            most: IntArray = np.minimum(offsets[stop] - offsets[start], n_features)
            return most

        # of the nodes: number, first leaf, end, and change in the number of active features that are pending
        own = np.flatnonzero(is_visited)
        start, split, stop = tree.start[own], tree.split[own], tree.stop[own]
        grown = bound(start, stop) - bound(start, split) - bound(split, stop)
        parts = [(place[own], start, stop, grown)]
        for child, first, last in ((tree.left[own], start, split), (tree.right[own], split, stop)):
            is_pushed = (child < 0) | ~is_visited[np.maximum(child, 0)]
            begin, end = first[is_pushed], last[is_pushed]
            parts.append((np.full(len(begin), LEAVES), begin, end, bound(begin, end)))
        node, start, stop, grown = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((-start, stop))
        visits = Visits(node[order], start[order], stop[order])
        n_pending = np.cumsum(np.where(visits.node == LEAVES, 1, -1)).max(initial=0) + 1
        n_active = int(np.cumsum(grown[order]).max(initial=0))
        size = np.where(visits.node >= 0, bound(visits.start, visits.stop), 0)
        batch = np.cumsum(size) // _BATCH
        edges = [0, *(np.flatnonzero(np.diff(batch)) + 1).tolist(), len(size)]
        batches = [
            (Visits(*(each[a:b] for each in visits)), int(size[a:b].sum())) for a, b in pairwise(edges)
        ]
        return cls(batches, int(n_pending), n_active, visits.node[visits.node >= 0])
