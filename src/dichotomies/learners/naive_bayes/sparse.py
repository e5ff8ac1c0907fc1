"""Counts of sparse rows: the features that each class has seen, and from them the nodes' weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._kernels.naive_bayes.class_counts import by_feature, count_active, sum_active
from dichotomies._kernels.naive_bayes.sparse_nodes import (
    BERNOULLI,
    MULTINOMIAL,
    NORMALISED,
    count_entries,
    walk,
)
from dichotomies._kernels.naive_bayes.sparse_out_of_fold import Counts, Members, Rows, score_own_rows
from dichotomies._parallel import even_batches, run
from dichotomies.learners.weights import SparseWeights

if TYPE_CHECKING:
    from dichotomies._typing import BoolArray, FloatArray, IntArray
    from dichotomies.learners.base import Effort, NodeTask
    from dichotomies.learners.naive_bayes.groups import Groups, Sides
    from dichotomies.learners.naive_bayes.smoothing import Background, Smoothing
    from dichotomies.tree import ClassTree

#: Features are worked on in so many batches, however many workers there are, so that sums over features
#: are taken in the same order.
_BATCHES = 32


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
    def of(cls, smoothing: Smoothing, groups: Groups, X: Any, effort: Effort) -> SparseCounts:
        """Count, looking at the rows of each group twice in a row."""
        n_features = X.shape[1]
        batches = even_batches(groups.size, effort.n_jobs)
        rows = X.data, X.indices, X.indptr, groups.rows
        sizes = np.zeros(len(groups.size) + 1, dtype=np.int64)

        def count(batch: range) -> None:
            count_active(*rows, groups.offsets, batch.start, batch.stop, n_features, sizes[1:])

        run(count, [(batch,) for batch in batches], n_jobs=effort.n_jobs, shared_memory=True)
        offsets = np.cumsum(sizes)
        feature, total = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1])

        def add(batch: range) -> None:
            span = groups.offsets, batch.start, batch.stop, n_features
            sum_active(*rows, groups.weight, *span, offsets, feature, total)

        run(add, [(batch,) for batch in batches], n_jobs=effort.n_jobs, shared_memory=True)
        return cls(smoothing, groups, smoothing.alphas(n_features), offsets, feature, total)

    @property
    def tree(self) -> ClassTree:
        """The tree."""
        return self.groups.tree

    @cached_property
    def _group_total(self) -> FloatArray:
        """Sum over all features, per group."""
        group = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        sums = np.bincount(group, self.count, minlength=len(self.offsets) - 1)
        return sums.astype(np.float64)[:, None]

    def background(self, fold: int | None = None) -> tuple[Sides, Background]:
        """The nodes as far as they do not depend on which features are active, without a fold."""
        sides = self.groups.sides(fold)
        counts = self.groups.side_sums(self.groups.without(self._group_total, fold))[:, :, 0]
        return sides, self.smoothing.background(self.tree, sides, counts, self.alpha)

    def weights(
        self, fold: int | None = None, effort: Effort | None = None, title: str = ""
    ) -> SparseWeights:
        """The nodes' weights, learned from all rows or from all but those of a fold."""
        sides, background = self.background(fold)
        return FeatureWalk.of(self, sides.is_trained, fold).weights(sides, background, effort, title)

    def out_of_fold(self, task: NodeTask, X: Any, folds: IntArray, effort: Effort) -> FloatArray:
        """Scores of `task.own_pairs()` by models that have not seen the row's fold."""
        known = [self.background(f) for f in range(self.groups.n_folds)]
        members = Members(
            np.stack([background.of_side for _, background in known], axis=1),
            np.stack([background.intercept for _, background in known], axis=1),
            np.stack([background.weight for _, background in known], axis=1),
            np.stack([sides.is_trained for sides, _ in known], axis=1),
        )
        tree, pairs = self.tree, np.concatenate([[0], np.cumsum(task.node_size)])
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
        counts = Counts(self.offsets, self.feature, self.count)
        given = self.smoothing.rule, self.alpha, rows, counts, members, tree.start, tree.split, tree.stop

        def score(batch: range) -> None:
            score_own_rows(*given, batch.start, batch.stop, pairs, out)

        progress = effort.progress(f"scoring out of fold at {tree.n_nodes} nodes")
        batches = [(batch,) for batch in even_batches(task.node_size, effort.n_jobs)]
        run(score, batches, n_jobs=effort.n_jobs, progress=progress, shared_memory=True)
        return out


@dataclass(frozen=True)
class FeatureWalk:
    """Counts sorted by feature, ready to be walked down the tree.

    Attributes
    ----------
    offsets : (n_features + 1,)
        Where the leaves of each feature begin, and the end.
    leaf, count : (n_active,)
        A leaf that has the feature, and the feature's sum there.
    """

    counts: SparseCounts
    is_trained: BoolArray
    offsets: IntArray
    leaf: IntArray
    count: FloatArray

    @classmethod
    def of(cls, counts: SparseCounts, is_trained: BoolArray, fold: int | None) -> FeatureWalk:
        """Sort the counts of all folds but one by feature."""
        n_folds, n_features = counts.groups.n_folds, len(counts.alpha)
        group_offsets, feature, count = counts.offsets, counts.feature, counts.count
        if fold is not None:
            sizes = np.diff(group_offsets)
            is_kept = np.arange(len(sizes)) % n_folds != fold
            kept = np.repeat(is_kept, sizes)
            feature, count = feature[kept], count[kept]
            group_offsets = np.concatenate([[0], np.cumsum(np.where(is_kept, sizes, 0))])
        sizes = np.bincount(feature, minlength=n_features)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        leaf: Any = np.empty(len(feature), dtype=np.int32)
        sorted_count = np.empty(len(feature))
        by_feature(group_offsets, feature, count, n_folds, offsets, leaf, sorted_count)
        return cls(counts, is_trained, offsets, leaf, sorted_count)

    @cached_property
    def _batches(self) -> list[range]:
        """Ranges of features of about the same number of counts."""
        edges = np.searchsorted(self.offsets, np.linspace(0, self.offsets[-1], _BATCHES + 1)[1:-1])
        edges = np.unique(np.concatenate([[0], edges, [len(self.offsets) - 1]]))
        return [range(a, b) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]

    def weights(
        self, sides: Sides, background: Background, effort: Effort | None, title: str
    ) -> SparseWeights:
        """Walk every feature down the nodes where it is active."""
        n_jobs = None if effort is None else effort.n_jobs
        progress = None if effort is None else effort.progress(f"{title}training {len(sides.size)} nodes")
        entries = self._entry_offsets(n_jobs)
        node, value = np.empty(entries[-1], dtype=np.int32), np.empty(entries[-1])
        rule, intercept, slope = self.counts.smoothing.rule, background.intercept, background.weight
        of_side = background.of_side
        if rule == NORMALISED:
            seen = self._walk(of_side, entries, node[:0], value, n_jobs, None)
            unseen = of_side / len(self.counts.alpha)
            of_side = of_side + seen
            slope = unseen[:, 1] / of_side[:, 1] - unseen[:, 0] / of_side[:, 0]
        tallies = self._walk(of_side, entries, node, value, n_jobs, progress)
        if rule == BERNOULLI:
            intercept = intercept + tallies[:, 0] - tallies[:, 1]
        intercept = np.where(sides.is_trained, intercept, sides.constant)
        return SparseWeights(
            intercept, np.where(sides.is_trained, slope, 0.0), sides.is_trained, entries, node, value
        )

    def _walk(
        self,
        of_side: FloatArray,
        entries: IntArray,
        node: IntArray,
        value: FloatArray,
        n_jobs: int | None,
        progress: Any,
    ) -> FloatArray:
        """Write entries, unless `node` is empty, and return the tallies of each node and side."""
        tree, rule = self.counts.tree, self.counts.smoothing.rule
        needed = len(self._batches) if rule != MULTINOMIAL else 0
        tallies = np.zeros((needed, tree.n_nodes, 2))
        nodes = tree.left, tree.right, tree.split, self.is_trained

        def one(number: int, batch: range) -> None:
            tally = tallies[number] if needed else np.empty((0, 2))
            features = rule, self.counts.alpha, of_side, self.offsets, self.leaf, self.count
            walk(*features, *nodes, batch.start, batch.stop, tally, entries, node, value)

        work = list(enumerate(self._batches))
        run(one, work, n_jobs=n_jobs, progress=progress, shared_memory=True)
        total: FloatArray = tallies.sum(axis=0)
        return total

    def _entry_offsets(self, n_jobs: int | None) -> IntArray:
        tree = self.counts.tree
        shallowest = _range_minima(tree.split_depth)
        sizes = np.zeros(len(self.offsets), dtype=np.int64)

        def count(batch: range) -> None:
            span = batch.start, batch.stop, sizes[1:]
            count_entries(self.offsets, self.leaf, tree.leaf_depth, shallowest, *span)

        run(count, [(batch,) for batch in self._batches], n_jobs=n_jobs, shared_memory=True)
        return np.cumsum(sizes)


def _range_minima(values: IntArray) -> IntArray:
    """Row ``p``: the minimum of each value and the ``2**p - 1`` after it."""
    rows = [np.asarray(values)]
    while 2 ** len(rows) <= len(values):
        half = 2 ** (len(rows) - 1)
        longer = rows[-1].copy()
        longer[:-half] = np.minimum(rows[-1][:-half], rows[-1][half:])
        rows.append(longer)
    return np.stack(rows)
