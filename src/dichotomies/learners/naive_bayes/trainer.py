"""Base of what trains nodes from the statistics of the classes, and sums over the sides of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dichotomies._common.parallel import Context, even_batches, run
from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.composition import levels
from dichotomies.learners.base import NodeScorer
from dichotomies.learners.naive_bayes.class_statistics import ClassStatistics
from dichotomies.rows import NodeTask


@dataclass(frozen=True)
class NodeTrainer:
    """The nodes of a task, trained from the statistics of the classes."""

    task: NodeTask
    known: ClassStatistics

    def weights(self, fold: int | None, context: Context) -> NodeScorer:
        """Train the nodes on all rows, or on all but those of a fold."""
        raise NotImplementedError

    def out_of_fold(
        self, X: Any, context: Context, *, with_full: bool
    ) -> tuple[FloatArray, NodeScorer | None]:
        """Out-of-fold scores of `task.own_pairs()` and, if `with_full`, the nodes trained on all rows."""
        pairs, folds = self.task.own_pairs(), self.task.rows.fold
        assert folds is not None
        node = np.repeat(np.arange(self.task.n_nodes), np.diff(pairs.offsets))
        fold_of_pair, out = folds[pairs.rows], np.full(len(node), np.nan)
        n_folds, title = self.known.n_folds, f"scoring out of fold at {self.task.n_nodes} nodes"
        for fold in range(n_folds):
            member = self.weights(fold, context)
            chosen = np.flatnonzero((fold_of_pair == fold) & member.is_trained[node])

            def score(batch: range, member: NodeScorer = member, chosen: IntArray = chosen) -> None:
                own = chosen[batch.start : batch.stop]
                out[own] = member.pair_log_odds(X, pairs.rows[own], node[own])

            batches = [(batch,) for batch in even_batches(np.ones_like(chosen), context.n_jobs, 1)]
            progress = context.progress(f"{title}, fold {fold + 1} of {n_folds}", fold, n_folds)
            run(score, batches, n_jobs=context.n_jobs, progress=progress, shared_memory=True)
        return out, self.weights(None, context) if with_full else None

    def without(self, values: FloatArray, fold: int | None) -> FloatArray:
        """Sum values by class and fold over all folds but one, giving values by leaf.

        The other folds are added: subtracting one from the total would leave rounding errors in place of
        exact zeros.
        """
        by_fold = values.reshape(-1, self.known.n_folds, *values.shape[1:])
        first, *others = (f for f in range(by_fold.shape[1]) if f != fold)
        total: FloatArray = by_fold[:, first].copy() if others else by_fold[:, first]
        for f in others:
            total += by_fold[:, f]
        return total[self.task.tree.leaf_order]

    def side_sums(self, leaves: FloatArray) -> FloatArray:
        """Add up values of leaves over the sides of each node: (n_leaves, n) to (n_nodes, 2, n).

        Nothing is subtracted, so that small sums are not lost in large ones.
        """
        tree, n_values = self.task.tree, leaves.shape[1]
        out = np.empty((tree.n_nodes, 2, n_values))
        for level in reversed(levels(tree.left, tree.right)):
            for side, child in enumerate((tree.left[level], tree.right[level])):
                of_side, is_leaf = out[level, side], child < 0
                of_side[is_leaf] = leaves[~child[is_leaf]]
                of_side[~is_leaf] = out[child[~is_leaf]].sum(axis=1)
        return self.task.of_nodes(out)

    def sides(self, fold: int | None) -> Sides:
        """Size and weight of each node's sides, without the rows of a fold."""
        leaves = np.stack([self.known.size.astype(np.float64), self.known.weight], axis=1)
        sums = self.side_sums(self.without(leaves, fold))
        return Sides(sums[:, :, 0], sums[:, :, 1])


@dataclass(frozen=True)
class Sides:
    """Number of rows, and their weight, of the left and right side of every node: (n_nodes, 2)."""

    size: FloatArray
    weight: FloatArray

    @cached_property
    def is_trained(self) -> BoolArray:
        """True where a node has rows on both sides."""
        return (self.size[:, 0] > 0) & (self.size[:, 1] > 0)

    @property
    def constant(self) -> FloatArray:
        """Log-odds of a node with rows on one side only, by Laplace's rule of succession."""
        return np.log((self.weight[:, 0] + 1) / (self.weight[:, 1] + 1))
