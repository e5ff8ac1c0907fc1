"""Rows grouped by class and fold, and what they weigh on either side of every node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dichotomies._kernels.naive_bayes.side_sums import side_sums

if TYPE_CHECKING:
    from dichotomies._typing import BoolArray, FloatArray, IntArray
    from dichotomies.learners.base import NodeTask
    from dichotomies.tree import ClassTree


@dataclass(frozen=True)
class Groups:
    """The rows of each leaf in each fold; group ``leaf * n_folds + fold``. Rows of no weight are left out.

    Attributes
    ----------
    n_folds : int
        1 where there are no folds.
    rows, weight : (n_kept_rows,)
        Row numbers sorted by group, in their original order within a group, and their weights.
    offsets : (n_groups + 1,)
        Where each group begins in `rows`, and the end.
    """

    tree: ClassTree
    n_folds: int
    rows: IntArray
    weight: FloatArray
    offsets: IntArray

    @classmethod
    def of(cls, task: NodeTask, folds: IntArray | None = None) -> Groups:
        """Group the rows of a task."""
        n_folds = 1 if folds is None else int(folds.max()) + 1
        leaf = np.repeat(np.arange(task.tree.n_classes), np.diff(task.leaf_offset))
        group, rows = leaf, task.row_order
        if folds is not None:
            group = leaf * n_folds + folds[rows]
            order = np.argsort(group, kind="stable")
            group, rows = group[order], rows[order]
        if task.sample_weight is None:
            weight = np.ones(len(rows))
        else:
            kept = np.flatnonzero(task.sample_weight[rows] > 0)
            group, rows = group[kept], rows[kept]
            weight = task.sample_weight[rows]
        sizes = np.bincount(group, minlength=task.tree.n_classes * n_folds)
        return cls(task.tree, n_folds, rows, weight, np.concatenate([[0], np.cumsum(sizes)]))

    @property
    def size(self) -> IntArray:
        """Number of rows of each group."""
        return np.diff(self.offsets)

    def sum(self, values: FloatArray) -> FloatArray:
        """Sum of a value per row (in the order of `rows`) over each group."""
        group = np.repeat(np.arange(len(self.size)), self.size)
        sums: FloatArray = np.bincount(group, values, minlength=len(self.size)).astype(np.float64)
        return sums

    def without(self, values: FloatArray, fold: int | None) -> FloatArray:
        """Sum of values per group, (n_groups, ...), over all folds but one: values per leaf.

        The other folds are added rather than the one subtracted, which would leave rounding errors where
        nothing should be left.
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
        """Sum of values per leaf over the sides of each node: (n_leaves, n) to (n_nodes, 2, n)."""
        out = np.empty((self.tree.n_nodes, 2, leaves.shape[1]))
        side_sums(self.tree.left, self.tree.right, leaves, out)
        return out

    def sides(self, fold: int | None = None) -> Sides:
        """What the sides of each node weigh, without the rows of a fold."""
        leaves = np.stack([self.size.astype(np.float64), self.sum(self.weight)], axis=1)
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
        """Whether a node has rows on both sides."""
        return (self.size[:, 0] > 0) & (self.size[:, 1] > 0)

    @property
    def constant(self) -> FloatArray:
        """What a node answers that has seen only one side: Laplace's rule of succession."""
        return np.log((self.weight[:, 0] + 1) / (self.weight[:, 1] + 1))
