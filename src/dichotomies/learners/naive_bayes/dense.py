"""Counts of dense rows: sums of every feature over every class, and the resulting node weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dichotomies._common.parallel import Context, even_batches, run
from dichotomies._common.typing import FloatArray
from dichotomies._kernels.compile import is_small
from dichotomies._kernels.naive_bayes.class_counts import GroupedRows, dense_group_sums
from dichotomies._kernels.naive_bayes.sparse_nodes import BERNOULLI, NORMALISED, ROUNDING
from dichotomies._kernels.weights import score_own_rows
from dichotomies.learners.naive_bayes.class_statistics import ClassStatistics
from dichotomies.learners.naive_bayes.groups import Groups, Sides
from dichotomies.learners.naive_bayes.smoothing import Smoothing
from dichotomies.learners.weights import DenseWeights
from dichotomies.rows import NodeTask


@dataclass(frozen=True)
class DenseCounts:
    """Feature counts of each group.

    Attributes
    ----------
    count : (n_groups, n_features)
        Weighted sum of each feature over the rows of the group.
    """

    smoothing: Smoothing
    groups: Groups
    alpha: FloatArray
    count: FloatArray

    @classmethod
    def of(
        cls, smoothing: Smoothing, groups: Groups, rows: GroupedRows, X: Any, context: Context
    ) -> DenseCounts:
        """Count, in one pass over the rows."""
        count = np.zeros((len(groups.size), X.shape[1]))

        sums = dense_group_sums.when(is_small(len(X), 1e-8 * X.size + 1e-5 * len(count)))

        def add(batch: range) -> None:
            sums(X, rows, batch.start, batch.stop, count)

        batches = [(batch,) for batch in even_batches(groups.size, context.n_jobs)]
        run(add, batches, n_jobs=context.n_jobs, shared_memory=True)
        return cls(smoothing, groups, smoothing.alphas(X.shape[1]), count)

    @classmethod
    def restored(cls, smoothing: Smoothing, groups: Groups, known: ClassStatistics) -> DenseCounts:
        """Take over statistics in the order of the groups."""
        return cls(smoothing, groups, smoothing.alphas(known.n_features), known.counts(dense=True))

    kind: ClassVar = "counts"

    def tables(self) -> list[Any]:
        """See `ClassStatistics`."""
        return [self.count]

    def of_task(self, task: NodeTask) -> DenseCounts:
        """Reorder the counts to the leaves of another tree."""
        groups, now = self.groups.of_task(task)
        return replace(self, groups=groups, count=self.count[now])

    def weights(self, fold: int | None, context: Context) -> DenseWeights:  # noqa: ARG002 - as SparseCounts
        """Train the nodes on all rows, or on all but those of a fold."""
        sides = self.groups.sides(fold)
        counts = self.groups.side_sums(self.groups.without(self.count, fold))
        prior = self.smoothing.prior.log_odds(self.groups.task.left_is_positive, sides)
        weight, intercept = self._weights_of(counts, sides)
        weight[~sides.is_trained] = 0.0
        intercept = np.where(sides.is_trained, prior + intercept, sides.constant)
        return DenseWeights(weight, intercept, sides.is_trained)

    def _weights_of(self, counts: FloatArray, sides: Sides) -> tuple[FloatArray, FloatArray]:
        """Compute weights and intercepts from counts (n_nodes, 2, n_features), which are overwritten."""
        rows = sides.weight[:, :, None]
        total = rows + 2 * self.alpha[0]
        if self.smoothing.rule == BERNOULLI:
            absent = rows - counts
            absent[(absent < 0) & (absent > -ROUNDING * rows)] = 0.0
            absent = np.log(np.add(absent, self.alpha, out=absent))
            logs = np.log(np.add(counts, self.alpha, out=counts), out=counts)
            logs -= absent
            never = (absent - np.log(total)).sum(axis=2)
            return logs[:, 0] - logs[:, 1], never[:, 0] - never[:, 1]
        counts += self.alpha
        total = counts.sum(axis=2, keepdims=True)
        logs = np.log(np.divide(counts, total, out=counts), out=counts)
        if self.smoothing.rule == NORMALISED:
            logs /= -logs.sum(axis=2, keepdims=True)
        return logs[:, 0] - logs[:, 1], np.zeros(len(logs))

    def out_of_fold(
        self, task: NodeTask, X: Any, context: Context, *, with_full: bool
    ) -> tuple[FloatArray, DenseWeights | None]:
        """Out-of-fold scores of `task.own_pairs()` and, where `with_full`, the weights from all rows."""
        folds = task.rows.fold
        assert folds is not None
        pairs = np.concatenate([[0], np.cumsum(task.node_size)])
        out = np.full(pairs[-1], np.nan)
        first = task.leaf_offset[task.start]
        progress = context.progress(f"scoring out of fold at {task.n_nodes} nodes")
        batches = [(batch,) for batch in even_batches(task.node_size, context.n_jobs)]
        seconds = 1e-8 * len(out) * X.shape[1] + 3e-5 * task.n_nodes
        score_rows = score_own_rows.when(is_small(len(X), seconds))
        for fold in range(self.groups.n_folds):
            member = self.weights(fold, context)

            def score(batch: range, fold: int = fold, member: DenseWeights = member) -> None:
                weights, intercept, is_trained = member.weights, member.intercept, member.is_trained
                span = batch.start, batch.stop, first, pairs, out
                score_rows(X, task.row_order, folds, fold, weights, intercept, is_trained, *span)

            is_last = fold == self.groups.n_folds - 1
            run(
                score,
                batches,
                n_jobs=context.n_jobs,
                progress=progress if is_last else None,
                shared_memory=True,
            )
        return out, self.weights(None, context) if with_full else None
