"""Counts of sparse rows: the features that each class has seen, and from them the nodes' weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._kernels.naive_bayes.class_counts import sum_active
from dichotomies._kernels.naive_bayes.sparse_nodes import Counts, by_feature, node_weights
from dichotomies._kernels.naive_bayes.sparse_out_of_fold import Full, Members, Rows, score_own_rows
from dichotomies._parallel import even_batches, run
from dichotomies.learners.base import Effort
from dichotomies.learners.naive_bayes.groups import take_segments
from dichotomies.learners.weights import SparseWeights

if TYPE_CHECKING:
    from dichotomies._typing import FloatArray, IntArray
    from dichotomies.learners.base import NodeTask
    from dichotomies.learners.naive_bayes.groups import GroupedRows, Groups, Sides
    from dichotomies.learners.naive_bayes.smoothing import Background, Smoothing


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
        cls, smoothing: Smoothing, groups: Groups, rows: GroupedRows, X: Any, effort: Effort
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

        batches = [(batch,) for batch in even_batches(groups.size, effort.n_jobs)]
        feature, total = zip(*run(add, batches, n_jobs=effort.n_jobs, shared_memory=True), strict=True)
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

    def weights(
        self, fold: int | None = None, effort: Effort | None = None, title: str = ""
    ) -> SparseWeights:
        """The nodes' weights, learned from all rows or from all but those of a fold."""
        effort = effort or Effort()
        entries = Entries.of(self, fold)
        kept = self.groups.n_folds, -1 if fold is None else fold
        of_side, is_trained = entries.background.of_side, entries.sides.is_trained
        given = self.smoothing.rule, self.alpha, self._counts, *kept, of_side, is_trained

        def work(batch: range) -> Part:
            feature, value = entries.room(batch)
            nodes = self.task.start, self.task.split, self.task.stop, batch.start, batch.stop
            written = entries.intercept, entries.slope, entries.sizes, feature, value
            n = node_weights(*given, *nodes, *written)
            return Part(batch, feature[:n].copy(), value[:n].copy())

        progress = effort.progress(f"{title}training {self.task.n_nodes} nodes")
        batches = [(batch,) for batch in even_batches(entries.most, effort.n_jobs)]
        return entries.weights(
            run(work, batches, n_jobs=effort.n_jobs, progress=progress, shared_memory=True)
        )

    @property
    def _counts(self) -> Counts:
        return Counts(self.offsets, self.feature, self.count)

    def out_of_fold(
        self, task: NodeTask, X: Any, folds: IntArray, effort: Effort, *, with_full: bool
    ) -> tuple[FloatArray, SparseWeights | None]:
        """Scores of `task.own_pairs()` by models that have not seen the row's fold, and `weights()`."""
        known = [self.background(f) for f in range(self.groups.n_folds)]
        members = Members(
            np.stack([background.of_side for _, background in known], axis=1),
            np.stack([background.intercept for _, background in known], axis=1),
            np.stack([background.weight for _, background in known], axis=1),
            np.stack([sides.is_trained for sides, _ in known], axis=1),
        )
        pairs = np.concatenate([[0], np.cumsum(task.node_size)])
        out = np.empty(pairs[-1])
        by_leaf = X[task.row_order]
        rows = Rows(
            by_leaf.data,
            by_leaf.indices,
            by_leaf.indptr,
            task.leaf_offset,
            folds[task.row_order],
            np.asarray(by_leaf.sum(axis=1, dtype=np.float64)).ravel(),
        )
        entries, together = Entries.of(self, None), with_full and self.groups.n_folds > 1
        given = self.smoothing.rule, self.alpha, rows, self._counts, members

        def score(batch: range) -> Part:
            feature, value = entries.room(batch if together else range(0))
            full = Full(
                entries.background.of_side,
                entries.sides.is_trained,
                entries.intercept,
                entries.slope,
                entries.sizes,
                feature,
                value,
            )
            nodes = task.start, task.split, task.stop, batch.start, batch.stop
            n = score_own_rows(*given, full, *nodes, pairs, out)
            return Part(batch, feature[:n].copy(), value[:n].copy())

        progress = effort.progress(f"scoring out of fold at {task.n_nodes} nodes")
        batches = [(batch,) for batch in even_batches(task.node_size, effort.n_jobs)]
        parts = run(score, batches, n_jobs=effort.n_jobs, progress=progress, shared_memory=True)
        if together:
            return out, entries.weights(parts)
        return out, self.weights(None, effort) if with_full else None


class Part(NamedTuple):
    """The active features of some nodes and how far their weights are from the background."""

    nodes: range
    feature: Any
    value: FloatArray


@dataclass(frozen=True)
class Entries:
    """What becomes of the nodes while their active features are written.

    Attributes
    ----------
    intercept, slope, sizes, most : (n_nodes,)
        Intercepts, weights of inactive features, and how many active features there are, and may be.
    """

    n_features: int
    sides: Sides
    background: Background
    intercept: FloatArray
    slope: FloatArray
    sizes: IntArray
    most: IntArray

    @classmethod
    def of(cls, counts: SparseCounts, fold: int | None) -> Entries:
        """Before anything is written."""
        sides, background = counts.background(fold)
        active, task = counts.offsets[:: counts.groups.n_folds], counts.task
        n_features, written = len(counts.alpha), np.empty(task.n_nodes, dtype=np.int64)
        most = np.minimum(active[task.stop] - active[task.start], n_features) + 1
        given = background.intercept.copy(), background.weight.copy()
        return cls(n_features, sides, background, *given, written, most)

    def room(self, nodes: range) -> tuple[Any, FloatArray]:
        """For the active features of some nodes; most of it is never touched."""
        size = self.most[nodes.start : nodes.stop].sum()
        return np.empty(size, dtype=np.int32), np.empty(size)

    def weights(self, parts: list[Part]) -> SparseWeights:
        """The nodes, when all is written; the list is emptied."""
        is_trained = self.sides.is_trained
        return SparseWeights(
            np.where(is_trained, self.intercept, self.sides.constant),
            np.where(is_trained, self.slope, 0.0),
            is_trained,
            *_by_feature(parts, self.sizes, self.n_features),
        )


def _by_feature(parts: list[Part], sizes: IntArray, n_features: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Entries sorted by feature, and by node within a feature: offsets, nodes and values.

    Parameters
    ----------
    sizes : (n_nodes,)
        How many there are of each node.
    """
    counts = sum(np.bincount(feature, minlength=n_features) for _, feature, _ in parts)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    node: Any = np.empty(offsets[-1], dtype=np.int32)
    node_value, cursor = np.empty(offsets[-1]), offsets[:-1].copy()
    while parts:
        nodes, feature, value = parts.pop(0)
        by_feature(nodes.start, nodes.stop, sizes, feature, value, cursor, node, node_value)
    return offsets, node, node_value
