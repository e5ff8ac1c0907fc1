"""Counts of sparse rows: the features that each class has seen, and from them the nodes' weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._common.parallel import even_batches, run
from dichotomies._kernels.naive_bayes.class_counts import sum_active
from dichotomies._kernels.naive_bayes.sparse_models import Rows
from dichotomies._kernels.naive_bayes.sparse_sides import Counts
from dichotomies.learners.naive_bayes.ascent import Ascent, Asked
from dichotomies.learners.naive_bayes.groups import take_segments

if TYPE_CHECKING:
    from dichotomies._common.parallel import Context
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.learners.naive_bayes.groups import GroupedRows, Groups, Sides
    from dichotomies.learners.naive_bayes.smoothing import Background, Smoothing
    from dichotomies.learners.weights import SparseWeights
    from dichotomies.rows import NodeTask


@dataclass(frozen=True)
class SparseCounts:
    """What each group has seen.

    Attributes
    ----------
    offsets : (n_groups + 1,)
        Where the features of each group begin, and the end.
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
            given = X.data, X.indices, X.indptr, *rows, batch.start, batch.stop
            n = sum_active(*given, sizes, entry_of, feature, total)
            return feature[:n].copy(), total[:n].copy()

        batches = [(batch,) for batch in even_batches(groups.size, context.n_jobs)]
        feature, total = zip(*run(add, batches, n_jobs=context.n_jobs, shared_memory=True), strict=True)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        alpha = smoothing.alphas(X.shape[1])
        return cls(smoothing, groups, alpha, offsets, np.concatenate(feature), np.concatenate(total))

    def of_task(self, task: NodeTask) -> SparseCounts:
        """The same classes in another tree."""
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
        """Each group's features, for kernels."""
        return Counts(self.groups.n_folds, self.offsets, self.feature, self.count)

    @cached_property
    def _group_total(self) -> FloatArray:
        """Sum over all features, per group."""
        sums, some = np.zeros(len(self.offsets) - 1), np.diff(self.offsets) > 0
        sums[some] = np.add.reduceat(self.count, self.offsets[:-1][some])
        return sums[:, None]

    def background(self, fold: int | None = None) -> tuple[Sides, Background]:
        """The nodes as far as they do not depend on which features are active, without a fold."""
        sides = self.groups.sides(fold)
        counts = self.groups.side_sums(self.groups.without(self._group_total, fold))[:, :, 0]
        return sides, self.smoothing.background(self.task.left_is_positive, sides, counts, self.alpha)

    def weights(self, fold: int | None, context: Context) -> SparseWeights:
        """The nodes' weights, learned from all rows or from all but those of a fold."""
        ascent = Ascent.of(self, [fold])
        parts = ascent.climb(Asked.weights_alone(), context, f"training {self.task.n_nodes} nodes")
        return ascent.weights(parts)

    def out_of_fold(
        self, task: NodeTask, X: Any, context: Context, *, with_full: bool
    ) -> tuple[FloatArray, SparseWeights | None]:
        """Scores of `task.own_pairs()` by models that have not seen the row's fold, and `weights()`."""
        assert task.rows.fold is not None
        by_leaf = X[task.row_order]
        rows = Rows(
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
        ascent = Ascent.of(self, [*left_out, None] if with_full else left_out)
        asked = Asked(rows, out, with_full)
        parts = ascent.climb(asked, context, f"scoring out of fold at {self.task.n_nodes} nodes")
        return out, ascent.weights(parts) if with_full else None
