"""The boosted trees of all nodes as flat arrays: training in batches, and scoring."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from dichotomies._common.chunks import row_slices, rows_within
from dichotomies._kernels.boosting.boosting import CATEGORICAL
from dichotomies._kernels.boosting.encoding import encode, make_encoder
from dichotomies._kernels.boosting.scoring import (
    LANES,
    ROW_BLOCK,
    Forest,
    Links,
    Splits,
    in_units,
    link_splits,
    sum_trees,
    sum_trees_of_pairs,
)
from dichotomies.learners.boosting.gathering import concatenated, rebinned, taken_nodes
from dichotomies.learners.boosting.old_trees import upgraded
from dichotomies.persistence import savable
from dichotomies.persistence.catalogue import Fields
from dichotomies.persistence.checks import Array, Offsets, expect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies.learners.boosting.binning import Binning


#: Memory for dense rows of a sparse matrix, in bytes.
_BLOCK_BYTES = 2**24


@savable(
    "boosted-trees",
    Fields(upgraded),
    features=Array("integer", "n_used", within=(0, "n_features")),
    edge_offsets=Offsets("n_used", "n_edges"),
    edges=Array("float", "n_edges"),
    is_categorical=Array("boolean", "n_used"),
    column=Array("integer", "n_splits", within=(0, "n_used")),
    leaf=Array("byte", "n_splits"),
    limit=Array("unsigned", "n_splits"),
    kind=Array("byte", "n_splits", within=(0, 3)),
    categories=Array("byte", "n_sets", 32),
    split_offsets=Offsets("n_trees", "n_splits"),
    value=Array("float", "n_values"),
    tree_offsets=Offsets("n_nodes", "n_trees"),
    base=Array("float", "n_nodes"),
    scale=Array("float", "n_nodes"),
    is_trained=Array("boolean", "n_nodes"),
)
@dataclass(frozen=True)
class BoostedTrees:
    """Trained nodes: the log-odds of going left are ``base + scale * (sum of leaf values)``.

    A tree is a sequence of splits. All rows begin at leaf 0; split s divides the rows at one leaf, and those
    that go right move to the new leaf s + 1.

    Attributes
    ----------
    features : (n_used,)
        The features that the trees use.
    edges : (n_edges,)
        Ascending for each of them. The code of a number is the number of edges below it; that of a category
        is its position among the edges.
    edge_offsets : (n_used + 1,)
        Start of each one's edges, and the end.
    is_categorical : (n_used,)
    column, leaf, limit, kind : (n_splits,)
        Feature of each split, as an index into `features`; the leaf that it divides; rows with a code above
        the limit go right; 1 where missing values go left, 2 where the categories in a set go left,
        otherwise 0.
    categories : (n_sets, 32)
        Bits of the sets of categories, one set for each split of kind 2, in their order; bit 255 stands for
        missing values and categories without an edge.
    split_offsets : (n_trees + 1,)
        Start of each tree's splits, and the end.
    value : (n_splits + n_trees,)
        The values of each tree's leaves.
    tree_offsets : (n_nodes + 1,)
        Start of each node's trees, and the end.
    base, scale : (n_nodes,)
    is_trained : (n_nodes,)
    """

    features: IntArray
    edges: FloatArray
    edge_offsets: IntArray
    is_categorical: BoolArray
    column: npt.NDArray[np.int32]
    leaf: npt.NDArray[np.uint8]
    limit: npt.NDArray[Any]
    kind: npt.NDArray[np.uint8]
    categories: npt.NDArray[np.uint8]
    split_offsets: IntArray
    value: FloatArray
    tree_offsets: IntArray
    base: FloatArray
    scale: FloatArray
    is_trained: BoolArray

    #: One model of several class trees encodes the rows once for all of them.
    is_faster_joined: ClassVar = True

    #: Rows are scored in blocks; log-odds of one or a few are used while they are in the cache.
    rows_at_once: ClassVar = ROW_BLOCK

    @classmethod
    def joined(cls, binning: Binning, batches: Sequence[BoostedTrees]) -> BoostedTrees:
        """Concatenate the nodes of all batches, with the edges of the features they use."""
        arrays = concatenated(batches)
        used, column = np.unique(arrays["column"], return_inverse=True)
        n_edges = np.diff(binning.offsets)
        is_used = np.zeros(len(n_edges), dtype=np.bool_)
        is_used[used] = True
        return cls(
            used.astype(np.intp),
            binning.edges[np.repeat(is_used, n_edges)],
            np.concatenate([[0], np.cumsum(n_edges[used])]),
            binning.is_categorical[used],
            **(arrays | {"column": column.astype(np.int32)}),
        )

    @classmethod
    def gathered(cls, parts: Sequence[BoostedTrees], nodes: IntArray) -> BoostedTrees:
        """Take nodes of several parts, which are numbered one after the other and may have different bins."""
        every = concatenated(parts)
        begins = np.cumsum([0, *(len(part.features) for part in parts)])
        every["column"] += np.repeat(begins[:-1], [len(part.column) for part in parts]).astype(np.int32)
        if not np.array_equal(nodes, np.arange(len(every["base"]))):
            every |= taken_nodes(every, nodes)
        every |= rebinned(parts, every.pop("column"), every.pop("limit"), every["kind"])
        return cls(**every)

    def truncated(self, n_trees: IntArray) -> BoostedTrees:
        """The same nodes with at most so many trees each."""
        sizes = np.diff(self.tree_offsets)
        number = np.arange(len(self.split_offsets) - 1) - np.repeat(self.tree_offsets[:-1], sizes)
        return self._with_trees(number < np.repeat(n_trees, sizes))

    def _with_trees(self, kept: BoolArray) -> BoostedTrees:
        """The same nodes with some of the trees."""
        sizes = np.diff(self.split_offsets)
        splits, values = np.repeat(kept, sizes), np.repeat(kept, sizes + 1)
        trees_of_node = np.add.reduceat(np.append(kept, False), self.tree_offsets[:-1], dtype=np.intp)
        trees_of_node[np.diff(self.tree_offsets) == 0] = 0
        return replace(
            self,
            column=self.column[splits],
            leaf=self.leaf[splits],
            limit=self.limit[splits],
            kind=self.kind[splits],
            categories=self.categories[splits[self.kind == CATEGORICAL]],
            split_offsets=np.concatenate([[0], np.cumsum(sizes[kept])]),
            value=self.value[values],
            tree_offsets=np.concatenate([[0], np.cumsum(trees_of_node)]),
        )

    # ------------------------------------------------------------------ scoring

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        out = np.empty((X.shape[0], len(self.base)))
        for rows, block, forest in self._blocks(X):
            for part in row_slices(len(block), ROW_BLOCK):
                taken = np.arange(part.start, part.stop)
                lanes = LANES if len(taken) > LANES else LANES // 4
                width, splits = -(-len(taken) // lanes) * lanes, forest.splits
                codes = np.zeros((len(self.features), width), dtype=self.limit.dtype)
                encode(block, taken, forest.features, forest.encoder, splits.missing[0], 0, codes)
                nodes = forest.value, forest.tree_offsets, forest.base, forest.scale
                sum_trees(codes, splits, *nodes, out[rows][part])
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        out, order = np.empty(len(rows)), np.argsort(nodes, kind="stable")
        for taken, block, forest in self._blocks(X):
            pairs = order
            if issparse(X):
                pairs = order[(rows[order] >= taken.start) & (rows[order] < taken.stop)]
            sum_trees_of_pairs(block, rows - taken.start, nodes, pairs, forest, self._links, out)
        return out

    def _blocks(self, X: Any) -> Iterator[tuple[slice, FloatArray, Forest]]:
        """Dense rows: all of them, or of a sparse matrix the features that trees use, some rows at a time."""
        if isinstance(X, np.ndarray):
            yield slice(0, len(X)), X, self._forest
            return
        columns = X.tocsc()[:, self.features].tocsr()
        forest = self._forest._replace(features=np.arange(len(self.features)))
        for rows in row_slices(X.shape[0], rows_within(_BLOCK_BYTES, len(self.features))):
            yield rows, columns[rows].toarray(), forest

    @cached_property
    def _forest(self) -> Forest:
        missing = np.array([np.iinfo(self.limit.dtype).max], dtype=self.limit.dtype)
        sets = np.cumsum(self.kind == CATEGORICAL) - 1
        bits = np.ascontiguousarray(self.categories).view("<u8").astype(np.uint64).reshape(-1, 4)
        splits = self.column, self.leaf, self.limit, self.kind, bits, sets, self.split_offsets, missing
        value, unit = in_units(self.value, self.split_offsets, self.tree_offsets)
        return Forest(
            self.features,
            make_encoder(self.edges, self.edge_offsets, self.is_categorical),
            Splits(*splits),
            value,
            self.tree_offsets,
            self.base,
            self.scale * unit,
        )

    @cached_property
    def _links(self) -> Links:
        left, right = np.empty((2, len(self.column)), dtype=np.int32)
        link_splits(self.leaf, self.split_offsets, left, right)
        return Links(left, right)

    # ------------------------------------------------------------------ files

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise unless the arrays fit together; see `dichotomies.persistence.checks`."""
        sizes = np.diff(self.split_offsets)
        number = np.arange(names["n_splits"]) - np.repeat(self.split_offsets[:-1], sizes)
        expect(sizes.max(initial=0) < 256, "a tree has at most 255 splits")
        expect(bool((self.leaf <= number).all()), "a split divides a leaf that there is")
        expect(len(self.value) == names["n_splits"] + names["n_trees"], "every leaf has a value")
        expect(bool(np.isfinite(self.value).all()), "leaves have finite values")
        expect(names["n_sets"] == np.count_nonzero(self.kind == CATEGORICAL), "categorical splits have a set")
        highest = np.iinfo(self.limit.dtype).max
        expect(np.diff(self.edge_offsets).max(initial=0) <= highest, "every code has a number")
