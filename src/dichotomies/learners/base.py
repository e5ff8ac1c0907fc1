"""What learners share: the rows of every node as slices of one sorted index, and what training gives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from dichotomies._typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies.tree import ClassTree


#: Sorting a row number takes about as long as looking at this many.
_SORTING_COST = 16


class Scorer(Protocol):
    """Whatever answers with log-odds at the nodes of a tree."""

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node, shape (n_rows, n_nodes), a fresh array."""


class NodeScorer(Scorer, Protocol):
    """Trained nodes of a tree, which can be asked one by one."""

    def node_log_odds(self, node: int, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at one node."""

    def is_trained(self, node: int) -> bool:
        """Whether a node had rows on both sides to learn from; otherwise it answers with a constant."""


@dataclass(frozen=True)
class NodeTask:
    """Everything needed to train the nodes of a tree.

    Sorting the rows by the leaf of their class makes every node's training set one contiguous slice of
    `row_order`, and its left and right side two adjacent slices.
    """

    tree: ClassTree
    X: Matrix
    codes: IntArray
    sample_weight: FloatArray | None = None

    @cached_property
    def _leaf_of_row(self) -> IntArray:
        position = np.empty(self.tree.n_classes, dtype=np.intp)
        position[self.tree.leaf_order] = np.arange(self.tree.n_classes)
        return position[self.codes]

    @cached_property
    def row_order(self) -> IntArray:
        """Row numbers sorted by leaf position; rows of one class stay in their order."""
        return np.argsort(self._leaf_of_row, kind="stable")

    @cached_property
    def leaf_offset(self) -> IntArray:
        """Where in `row_order` each leaf's rows begin, and the end."""
        counts = np.bincount(self._leaf_of_row, minlength=self.tree.n_classes)
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def node_size(self) -> IntArray:
        """Number of rows at each node."""
        return self.leaf_offset[self.tree.stop] - self.leaf_offset[self.tree.start]

    def subset(self, rows: IntArray) -> NodeTask:
        """The same tree with some of the rows."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return NodeTask(self.tree, self.take(rows), self.codes[rows], weight)

    def prepared(self) -> NodeTask:
        """Itself, with the index computed, so that workers need not each do it."""
        _ = self.row_order, self.leaf_offset, self.node_size
        return self

    def rows(self, node: int) -> tuple[IntArray, BoolArray]:
        """The rows of a node, in their original order, and whether each belongs to its left side.

        The original order matters to learners that look at it: one that cross-validates within the
        node would otherwise get folds without some of the classes, because neighbouring rows of the
        sorted index are of one class.
        """
        first, last = self.tree.start[node], self.tree.stop[node]
        if _SORTING_COST * self.node_size[node] > len(self.codes):
            rows = np.flatnonzero((first <= self._leaf_of_row) & (self._leaf_of_row < last))
        else:
            rows = np.sort(self.row_order[self.leaf_offset[first] : self.leaf_offset[last]])
        return rows, self._leaf_of_row[rows] < self.tree.split[node]

    def take(self, rows: IntArray) -> Matrix:
        """The features of some rows, as a copy."""
        return self.X.take(rows, axis=0) if isinstance(self.X, np.ndarray) else self.X[rows]
