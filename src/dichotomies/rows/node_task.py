"""`NodeTask`: the rows of every node of a tree, as slices of one sorted index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from dichotomies.rows.segments import Segments

if TYPE_CHECKING:
    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies.rows.rows import Rows
    from dichotomies.tree import ClassTree


S = TypeVar("S", bound=np.generic)

#: Cost of sorting a row number, in comparisons of a row's leaf with a node's range.
_SORTING_COST = 16


class OwnPairs(NamedTuple):
    """Every node with each of its own rows, node after node, rows in the order of their leaves.

    Attributes
    ----------
    rows : (n_pairs,)
        Row numbers.
    is_left : (n_pairs,)
        True where the row belongs to the node's left side.
    offsets : (n_nodes + 1,)
        First pair of each node, and the end.
    """

    rows: IntArray
    is_left: BoolArray
    offsets: IntArray


@dataclass(frozen=True, eq=False)
class NodeTask:
    """Nodes of a tree, all or some, and the rows to train them on.

    Sorting the rows by the leaf of their class makes every node's rows one contiguous slice of `row_order`,
    and its left and right side two adjacent slices. Arrays by node have an entry for each node of the task,
    in their order.

    Attributes
    ----------
    nodes : (n_nodes,) or None
        Ascending numbers of the nodes; None for all nodes of the tree.
    """

    rows: Rows
    tree: ClassTree
    nodes: IntArray | None = None

    def take(self, rows: IntArray) -> NodeTask:
        """The same nodes with some of the rows."""
        return NodeTask(self.rows.take(rows), self.tree, self.nodes)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the task."""
        return len(self.start)

    @cached_property
    def start(self) -> IntArray:
        """First leaf of each node."""
        return self.of_nodes(self.tree.start)

    @cached_property
    def split(self) -> IntArray:
        """First leaf of each node's right side."""
        return self.of_nodes(self.tree.split)

    @cached_property
    def stop(self) -> IntArray:
        """End of each node's range of leaves."""
        return self.of_nodes(self.tree.stop)

    @cached_property
    def depth(self) -> IntArray:
        """Depth of each node."""
        return self.of_nodes(self.tree.depth)

    def of_nodes(self, by_node: npt.NDArray[S]) -> npt.NDArray[S]:
        """Entries of the task's nodes, from an array with one for each node of the tree."""
        return by_node if self.nodes is None else by_node[self.nodes]

    @cached_property
    def leaf_of_row(self) -> IntArray:
        """Leaf position of each row's class."""
        return self.tree.leaf_position[self.rows.codes]

    @cached_property
    def row_order(self) -> IntArray:
        """Row numbers sorted by leaf position; rows of one class stay in their order."""
        counts, order = self.rows.class_size, self.tree.leaf_order
        begin = np.cumsum(counts) - counts
        place = np.repeat(begin[order] - self.leaf_offset[:-1], counts[order]) + np.arange(len(self.rows))
        return self.rows.by_class[place]

    @cached_property
    def leaf_offset(self) -> IntArray:
        """First position in `row_order` of each leaf's rows, and the end."""
        return np.concatenate([[0], np.cumsum(self.rows.class_size[self.tree.leaf_order])])

    @cached_property
    def node_size(self) -> IntArray:
        """Number of rows at each node."""
        return self.leaf_offset[self.stop] - self.leaf_offset[self.start]

    @cached_property
    def left_is_positive(self) -> BoolArray:
        """True where a node's left side is the positive class of its binary problem.

        The positive side is that of the highest class code, as scikit-learn would code two classes: with
        only two classes, the nested dichotomy is the base learner, bit for bit.
        """
        edges = np.stack([self.start, self.split, self.stop], axis=1).ravel()
        highest = np.maximum.reduceat(np.append(self.tree.leaf_order, 0), edges).reshape(-1, 3)
        return highest[:, 0] > highest[:, 1]

    def own_pairs(self) -> OwnPairs:
        """Every node with each of its own rows; as many pairs as rows times their depth."""
        first = self.leaf_offset[self.start]
        offsets = np.concatenate([[0], np.cumsum(self.node_size)])
        place = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], self.node_size)
        is_left = place < np.repeat(self.leaf_offset[self.split], self.node_size)
        return OwnPairs(self.row_order[place], is_left, offsets)

    def segments(self, scores: FloatArray) -> Segments:
        """Scores of `own_pairs`, with sides and weights: one segment for each node."""
        pairs = self.own_pairs()
        weight = None if self.rows.weight is None else self.rows.weight[pairs.rows]
        return Segments(scores, pairs.is_left, pairs.offsets, weight, self.depth)

    def prepared(self) -> NodeTask:
        """Itself, with the index computed, so that workers do not each compute it."""
        _ = self.row_order, self.leaf_offset, self.node_size, self.left_is_positive, self.leaf_of_row
        return self

    def rows_of(self, node: int) -> tuple[IntArray, BoolArray]:
        """Rows of a node in their original order, and True for those on its left side.

        The original order matters to estimators that cross-validate within the node: neighbouring rows of
        the sorted index are of one class, so folds of them would lack classes.
        """
        first, last = self.start[node], self.stop[node]
        if _SORTING_COST * self.node_size[node] > len(self.rows):
            rows = np.flatnonzero((first <= self.leaf_of_row) & (self.leaf_of_row < last))
        else:
            rows = np.sort(self.row_order[self.leaf_offset[first] : self.leaf_offset[last]])
        return rows, self.leaf_of_row[rows] < self.split[node]
