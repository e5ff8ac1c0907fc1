"""Rows grouped by class and fold, and their sizes and weights on either side of every node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.naive_bayes.class_counts import GroupedRows
from dichotomies._kernels.naive_bayes.side_sums import side_sums
from dichotomies.rows import NodeTask


@dataclass(frozen=True)
class Groups:
    """The rows of each leaf in each fold: group ``leaf * n_folds + fold``.

    Attributes
    ----------
    n_folds : int
        1 if there are no folds.
    size, weight : (n_groups,)
        Number of rows and their weight.
    """

    task: NodeTask
    n_folds: int
    size: IntArray
    weight: FloatArray

    @classmethod
    def of(cls, task: NodeTask, folds: IntArray | None = None) -> tuple[Groups, GroupedRows]:
        """Group the rows of a task."""
        n_folds = 1 if folds is None else int(folds.max()) + 1
        leaf = np.repeat(np.arange(task.tree.n_classes), np.diff(task.leaf_offset))
        group, rows = leaf, task.row_order
        if folds is not None:
            group = leaf * n_folds + folds[rows]
            order = np.argsort(group, kind="stable")
            group, rows = group[order], rows[order]
        weight = np.ones(len(rows))
        if task.rows.weight is not None:
            kept = np.flatnonzero(task.rows.weight[rows] > 0)
            group, rows = group[kept], rows[kept]
            weight = task.rows.weight[rows]
        n_groups = task.tree.n_classes * n_folds
        size = np.bincount(group, minlength=n_groups)
        of_group: FloatArray = np.bincount(group, weight, n_groups).astype(np.float64)
        offsets = np.concatenate([[0], np.cumsum(size)])
        return cls(task, n_folds, size, of_group), GroupedRows(rows, weight, offsets)

    def of_task(self, task: NodeTask) -> tuple[Groups, IntArray]:
        """Reorder the groups to another tree's leaves; also return the old index of each."""
        leaves = self.task.tree.leaf_position[task.tree.leaf_order]
        now = (leaves[:, None] * self.n_folds + np.arange(self.n_folds)).ravel()
        return Groups(task, self.n_folds, self.size[now], self.weight[now]), now

    def without(self, values: FloatArray, fold: int | None) -> FloatArray:
        """Sum values per group, (n_groups, ...), over all folds but one, giving values per leaf.

        The other folds are added: subtracting one from the total would leave rounding errors in place of
        exact zeros.
        """
        by_fold = values.reshape(-1, self.n_folds, *values.shape[1:])
        if self.n_folds == 1:
            leaves: FloatArray = by_fold[:, 0]
            return leaves
        kept = [f for f in range(self.n_folds) if f != fold]
        total = by_fold[:, kept[0]].copy()
        for f in kept[1:]:
            total += by_fold[:, f]
        return total

    def side_sums(self, leaves: FloatArray) -> FloatArray:
        """Sum values per leaf over the sides of each node: (n_leaves, n) to (n_nodes, 2, n)."""
        tree = self.task.tree
        return self.task.of_nodes(side_sums(tree, leaves))

    def sides(self, fold: int | None = None) -> Sides:
        """Size and weight of each node's sides, without the rows of a fold."""
        leaves = np.stack([self.size.astype(np.float64), self.weight], axis=1)
        sums = self.side_sums(self.without(leaves, fold))
        return Sides(sums[:, :, 0], sums[:, :, 1])


@dataclass(frozen=True)
class Sides:
    """The sides of every node.

    Attributes
    ----------
    size, weight : (n_nodes, 2)
        Number of rows of the left and right side, and their weight.
    """

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
