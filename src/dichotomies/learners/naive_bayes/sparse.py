"""Counts of sparse rows: the active features of each class, and the node weights that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.gathering import take_segments
from dichotomies._common.parallel import Context, even_batches, run
from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.naive_bayes.class_counts import GroupedRows, sum_active
from dichotomies._kernels.naive_bayes.sparse_models import SparseRows
from dichotomies._kernels.naive_bayes.sparse_sides import Counts
from dichotomies.learners.naive_bayes.bottom_up import BottomUpPass, RequestedOutputs
from dichotomies.learners.naive_bayes.class_statistics import ClassStatistics
from dichotomies.learners.naive_bayes.groups import Groups, Sides
from dichotomies.learners.naive_bayes.smoothing import Background, Smoothing
from dichotomies.learners.weights import SparseWeights
from dichotomies.rows import NodeTask


@dataclass(frozen=True)
class SparseCounts:
    """Active features of each group and their counts.

    Attributes
    ----------
    offsets : (n_groups + 1,)
        Start of each group's features, and the end.
    feature, count : (n_active,)
        A feature and its weighted sum over the rows of the group.
    """

    smoothing: Smoothing
    groups: Groups
    alpha: FloatArray
    offsets: IntArray
    feature: IntArray
    count: FloatArray

    @classmethod
    def of(
        cls, smoothing: Smoothing, groups: Groups, rows: GroupedRows, X: Any, context: Context
    ) -> SparseCounts:
        """Count, in one pass over the rows."""
        nonzeros = np.concatenate([[0], np.cumsum(np.diff(X.indptr)[rows.rows])])
        sizes = np.empty(len(groups.size), dtype=np.int64)

        def add(batch: range) -> tuple[Any, FloatArray]:
            first, last = rows.offsets[batch.start], rows.offsets[batch.stop]
            room = nonzeros[last] - nonzeros[first]
            feature, total = np.empty(room, dtype=np.int32), np.empty(room)
            entry_of = np.full(X.shape[1], -1)
            given = X.data, X.indices, X.indptr, rows, batch.start, batch.stop
            n = sum_active(*given, sizes, entry_of, feature, total)
            return feature[:n].copy(), total[:n].copy()

        batches = [(batch,) for batch in even_batches(groups.size, context.n_jobs)]
        feature, total = zip(*run(add, batches, n_jobs=context.n_jobs, shared_memory=True), strict=True)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        alpha = smoothing.alphas(X.shape[1])
        return cls(smoothing, groups, alpha, offsets, np.concatenate(feature), np.concatenate(total))

    @classmethod
    def restored(cls, smoothing: Smoothing, groups: Groups, known: ClassStatistics) -> SparseCounts:
        """Take over statistics in the order of the groups."""
        counts = csr_array(known.counts())
        feature: Any = counts.indices.astype(np.int32)
        offsets = counts.indptr.astype(np.intp)
        return cls(smoothing, groups, smoothing.alphas(known.n_features), offsets, feature, counts.data)

    kind: ClassVar = "sparse-counts"

    def tables(self) -> list[Any]:
        """See `ClassStatistics`."""
        return [self.count, self.feature, self.offsets]

    def of_task(self, task: NodeTask) -> SparseCounts:
        """Reorder the counts to the leaves of another tree."""
        groups, now = self.groups.of_task(task)
        offsets, places = take_segments(self.offsets, now)
        feature, count = self.feature[places], self.count[places]
        return replace(self, groups=groups, offsets=offsets, feature=feature, count=count)

    @property
    def task(self) -> NodeTask:
        """The nodes."""
        return self.groups.task

    @property
    def active(self) -> Counts:
        """The counts in the form kernels take."""
        return Counts(self.groups.n_folds, self.offsets, self.feature, self.count)

    @cached_property
    def _group_total(self) -> FloatArray:
        """Sum over all features, per group."""
        sums, some = np.zeros(len(self.offsets) - 1), np.diff(self.offsets) > 0
        sums[some] = np.add.reduceat(self.count, self.offsets[:-1][some])
        return sums[:, None]

    def background(self, fold: int | None = None) -> tuple[Sides, Background]:
        """Compute the nodes' parameters that do not depend on active features, leaving out a fold."""
        sides = self.groups.sides(fold)
        counts = self.groups.side_sums(self.groups.without(self._group_total, fold))[:, :, 0]
        return sides, self.smoothing.background(self.task.left_is_positive, sides, counts, self.alpha)

    def weights(self, fold: int | None, context: Context) -> SparseWeights:
        """Train the nodes on all rows, or on all but those of a fold."""
        bottom_up, title = BottomUpPass.of(self, [fold]), f"training {self.task.n_nodes} nodes"
        visited = bottom_up.visit_all(RequestedOutputs.weights_only(), context, title)
        return bottom_up.weights(visited)

    def out_of_fold(
        self, task: NodeTask, X: Any, context: Context, *, with_full: bool
    ) -> tuple[FloatArray, SparseWeights | None]:
        """Out-of-fold scores of `task.own_pairs()` and, where `with_full`, the weights from all rows."""
        assert task.rows.fold is not None
        by_leaf = X[task.row_order]
        rows = SparseRows(
            by_leaf.data,
            by_leaf.indices,
            by_leaf.indptr,
            task.leaf_offset,
            task.rows.fold[task.row_order],
            np.asarray(by_leaf.sum(axis=1, dtype=np.float64)).ravel(),
            np.concatenate([[0], np.cumsum(task.node_size)]),
            self.groups.size.sum() == len(task.row_order),
        )
        out = np.empty(rows.pair_offset[-1])
        left_out: list[int | None] = list(range(self.groups.n_folds))
        bottom_up = BottomUpPass.of(self, [*left_out, None] if with_full else left_out)
        requested = RequestedOutputs(rows, out, with_full)
        visited = bottom_up.visit_all(requested, context, f"scoring out of fold at {self.task.n_nodes} nodes")
        return out, bottom_up.weights(visited) if with_full else None
