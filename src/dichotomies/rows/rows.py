"""`Rows`: features, classes, weights and folds; `NodeTask`: their order at the nodes of a tree."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csr_array

from dichotomies.rows.folds import fold_of_rows
from dichotomies.rows.segments import Segments

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, LabelArray, Matrix
    from dichotomies.tree import ClassTree


S = TypeVar("S", bound=np.generic)

#: Cost of sorting a row number, in comparisons of a row's leaf with a node's range.
_SORTING_COST = 16


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled rows: what trees are grown on, nodes are trained on and models are evaluated on.

    A view (`take`, `reweighted`, `in_folds`) is of the same kind and copies no features until `X` is read.

    Parameters
    ----------
    base : array or CSR matrix of shape (n_base_rows, n_features), or None
        Features of the rows that this is a view of; None where only classes are counted.
    codes : (n_rows,)
        Class of each row, as a position in `classes`.
    classes : (n_classes,)
        Labels, sorted.
    weight : (n_rows,) or None
        Weight of each row; None for ones.
    fold : (n_rows,) or None
        Fold of each row, where rows are divided into folds.
    index : (n_rows,) or None
        Position of each row in `base`; None where it is all of them, in order.
    memo : dict
        Results that depend on features, classes and weights alone, see `remember`.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.rows import Rows
    >>> rows = Rows(np.eye(4), np.array([0, 1, 1, 0]), np.array(["cat", "dog"]))
    >>> view = rows.take(np.array([1, 2]))
    >>> len(view), view.X[0].tolist(), view.class_weight.tolist()
    (2, [0.0, 1.0, 0.0, 0.0], [0.0, 2.0])
    """

    base: Matrix
    codes: IntArray
    classes: LabelArray
    weight: FloatArray | None = None
    fold: IntArray | None = None
    index: IntArray | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.codes)

    def __getstate__(self) -> dict[str, Any]:
        """Fields without the memo, which workers of another process would rather recompute than receive."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"memo": {}}

    # ------------------------------------------------------------------ views

    def take(self, rows: IntArray) -> Rows:
        """View of some rows."""
        return Rows(
            self.base,
            self.codes[rows],
            self.classes,
            None if self.weight is None else self.weight[rows],
            None if self.fold is None else self.fold[rows],
            rows if self.index is None else self.index[rows],
        )

    def weighing(self) -> Rows:
        """View without rows of weight zero; classes that have no other rows keep theirs."""
        if self.weight is None or self.weight.all():
            return self
        return self.take(np.flatnonzero((self.weight > 0) | (self.class_weight == 0)[self.codes]))

    def reweighted(self, weight: FloatArray | None) -> Rows:
        """View with other weights."""
        return replace(self, weight=weight, memo={})

    def in_folds(self, cv: Any, rng: Any, first: int = 0) -> Rows:
        """View divided into folds, see `fold_of_rows`; it shares the memo."""
        return replace(self, fold=fold_of_rows(self.codes, cv, rng, first))

    def with_features(self, columns: IntArray) -> Rows:
        """Copy with some of the features."""
        return replace(self, base=self.X[:, columns], index=None, memo={})

    # ------------------------------------------------------------------ features

    @cached_property
    def X(self) -> Matrix:  # noqa: N802
        """Features of the rows."""
        return self.base if self.index is None else _taken(self.base, self.index)

    def features_of(self, rows: IntArray) -> Matrix:
        """Features of some of the rows, as a copy."""
        return _taken(self.base, rows if self.index is None else self.index[rows])

    @cached_property
    def imputed(self) -> Matrix:
        """Features with NaN and infinity replaced by the mean of the feature's finite values."""
        return self.remember("imputed", lambda: _imputed(self.X))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.base.shape[1])

    # ------------------------------------------------------------------ classes and folds

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_folds(self) -> int:
        """Number of folds; 1 where rows are not divided."""
        return 1 if self.fold is None else int(self.fold.max()) + 1

    @cached_property
    def by_class(self) -> IntArray:
        """Row numbers sorted by class code; rows of one class stay in their order."""
        order: IntArray = self.remember("by class", lambda: np.argsort(self.codes, kind="stable"))
        return order

    @cached_property
    def class_size(self) -> IntArray:
        """Number of rows of each class."""
        return np.bincount(self.codes, minlength=self.n_classes)

    @cached_property
    def class_weight(self) -> FloatArray:
        """Total weight of the rows of each class."""
        return np.bincount(self.codes, self.weight, self.n_classes).astype(np.float64)

    def class_indicator(self) -> Any:
        """Matrix (n_classes, n_rows) of weights whose product with features sums the rows of each class."""
        weight = np.ones(len(self)) if self.weight is None else self.weight[self.by_class]
        offsets = np.concatenate([[0], np.cumsum(self.class_size)])
        return csr_array((weight, self.by_class, offsets), shape=(self.n_classes, len(self)))

    @cached_property
    def class_order(self) -> IntArray:
        """Class codes in an order given by the rows: by decreasing weight, then by first occurrence.

        Draws and ties between classes go by this order, so that permuting the names of the classes permutes
        the result. Rows of weight 0 count as absent. Weights that agree to nine digits are equal, because a
        sum is rounded differently where a row of weight two is given as two rows.
        """
        place = np.arange(len(self))
        if self.weight is not None:
            place[self.weight == 0] += len(self)
        first = np.full(self.n_classes, 2 * len(self))
        np.minimum.at(first, self.codes, place)
        mantissa, exponent = np.frexp(self.class_weight)
        return np.lexsort((first, -np.ldexp(np.round(mantissa, 9), exponent)))

    # ------------------------------------------------------------------ memo

    def remember(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return the value stored under a key, computing it on the first call.

        For results that depend on neither tree nor folds, such as bins or class means: views with the same
        rows and weights share them.
        """
        if key not in self.memo:
            self.memo[key] = compute()
        return self.memo[key]

    def forget(self) -> None:
        """Drop all stored values, to free their memory; they are computed again when they are needed."""
        self.memo.clear()


def _taken(X: Matrix, rows: IntArray) -> Matrix:
    return X.take(rows, axis=0) if isinstance(X, np.ndarray) else X[rows]


def _imputed(X: Matrix) -> Matrix:
    values = X if isinstance(X, np.ndarray) else X.data
    if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
        return X
    is_known = np.isfinite(values)
    column = np.broadcast_to(np.arange(X.shape[1]), X.shape) if values is X else X.indices
    counts = np.bincount(column[is_known], minlength=X.shape[1])
    sums = np.bincount(column[is_known], values[is_known], minlength=X.shape[1])
    filled = np.where(is_known, values, (sums / np.maximum(counts, 1))[column])
    return filled if values is X else csr_array((filled, X.indices, X.indptr), shape=X.shape)


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
