"""The boosted trees of all nodes as flat arrays: training in batches, and scoring."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._kernels.boosting.adaboost import AdaBoosting, boost_ada_nodes
from dichotomies._kernels.boosting.encoding import make_encoder
from dichotomies._kernels.boosting.ensembles import CATEGORICAL, Ensembles
from dichotomies._kernels.boosting.gradient import boost_gradient_nodes
from dichotomies._kernels.boosting.held_out import score_held_out
from dichotomies._kernels.boosting.room import Ranges, Room, allocate_room
from dichotomies._kernels.boosting.tree_sums import Forest, link_splits, sum_trees, sum_trees_of_pairs
from dichotomies._kernels.compile import is_small
from dichotomies.learners.boosting.old_trees import upgraded
from dichotomies.persistence import savable
from dichotomies.persistence.catalogue import Fields
from dichotomies.persistence.checks import Array, Offsets, expect

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies._kernels.boosting.gradient import GradientBoosting
    from dichotomies._kernels.boosting.local_rows import Bins
    from dichotomies.learners.boosting.binning import Binning


#: Weights up to 2 to this power are used as they are.
_USUAL_EXPONENT = 100


class HeldOut(NamedTuple):
    """Scores and losses of rows that the models were not trained on.

    Attributes
    ----------
    scores : (n_pairs,)
        Log-odds of the nodes' own rows, node after node; NaN where a row was trained on.
    losses : (n_nodes, n_estimators + 1) or (n_nodes, 0)
        Sum of their losses by the number of trees, if asked for.
    """

    scores: FloatArray
    losses: FloatArray


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

    # ------------------------------------------------------------------ training

    @classmethod
    def train(
        cls,
        binning: Binning,
        bins: Bins,
        ranges: Ranges,
        boosting: AdaBoosting | GradientBoosting,
        weight: FloatArray,
        fold: IntArray | None = None,
        left_out: int = -1,
        with_losses: bool = False,
    ) -> tuple[BoostedTrees, HeldOut]:
        """Train some nodes on binned rows, leaving out a fold, whose rows are scored."""
        out, weight = _allocate(ranges, boosting, bool(bins.is_categorical.any())), _usual(weight)
        fold, room = (
            np.zeros(len(weight), dtype=np.intp) if fold is None else fold,
            _room(bins, ranges, boosting),
        )
        if isinstance(boosting, AdaBoosting):
            boost_ada_nodes(boosting, bins, weight, fold, left_out, ranges, room, out)
        else:
            boost_gradient_nodes(boosting, bins, weight, fold, left_out, ranges, room, out)
        n_pairs = int((ranges.end - ranges.begin).sum()) if left_out >= 0 else 0
        width = int(boosting.n_estimators.max(initial=0)) + 1 if with_losses else 0
        held = HeldOut(np.full(n_pairs, np.nan), np.empty((len(ranges.begin), width)))
        if left_out >= 0:
            score_held_out(bins.codes, weight, fold, left_out, ranges, out, *held)
        n_trees = int(out.n_trees.sum())
        split_offsets = np.concatenate([[0], np.cumsum(out.n_splits[:n_trees])])
        s = int(split_offsets[-1])
        kind = out.kind[:s].copy()
        sets = out.bits[:s][kind == CATEGORICAL] if len(out.bits) else out.bits
        trees = cls(
            features=np.arange(len(binning.n_bins)),
            edges=binning.edges,
            edge_offsets=binning.offsets,
            is_categorical=binning.is_categorical,
            column=out.feature[:s].copy(),
            leaf=out.leaf[:s].copy(),
            limit=out.limit[:s].copy(),
            kind=kind,
            categories=sets.astype("<u8").view(np.uint8).reshape(-1, 32),
            split_offsets=split_offsets,
            value=out.value[: s + n_trees].copy(),
            tree_offsets=np.concatenate([[0], np.cumsum(out.n_trees)]),
            base=out.base,
            scale=out.scale,
            is_trained=out.is_trained,
        )
        return trees, held

    @classmethod
    def joined(cls, batches: Sequence[BoostedTrees]) -> BoostedTrees:
        """Concatenate the nodes of all batches, which share their bins, and drop features not used."""
        shared = ("features", "edges", "edge_offsets", "is_categorical")
        arrays = {
            each.name: np.concatenate([getattr(batch, each.name) for batch in batches])
            for each in fields(cls)
            if each.name not in shared
        }
        for name in ("split_offsets", "tree_offsets"):
            sizes = np.concatenate([np.diff(getattr(batch, name)) for batch in batches])
            arrays[name] = np.concatenate([[0], np.cumsum(sizes)])
        first = batches[0]
        used, column = np.unique(arrays["column"], return_inverse=True)
        n_edges = np.diff(first.edge_offsets)
        is_used = np.zeros(len(n_edges), dtype=np.bool_)
        is_used[used] = True
        return cls(
            first.features[used],
            first.edges[np.repeat(is_used, n_edges)],
            np.concatenate([[0], np.cumsum(n_edges[used])]),
            first.is_categorical[used],
            **(arrays | {"column": column.astype(np.int32)}),
        )

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

    def log_odds(self, X: FloatArray) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        out = np.empty((len(X), len(self.base)))
        sum_trees(X, self._forest, out)
        return out

    def pair_log_odds(self, X: FloatArray, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        out = np.empty(len(rows))
        sum_trees_of_pairs(X, rows, nodes, np.argsort(nodes, kind="stable"), self._forest, out)
        return out

    @cached_property
    def _forest(self) -> Forest:
        left, right = np.empty((2, len(self.column)), dtype=np.int32)
        small = is_small(0, 2e-6 * len(left))
        link_splits.when(small)(self.leaf, self.split_offsets, left, right)
        missing = np.array([np.iinfo(self.limit.dtype).max, 0], dtype=self.limit.dtype)
        sets = np.cumsum(self.kind == CATEGORICAL) - 1
        bits = np.ascontiguousarray(self.categories).view("<u8").astype(np.uint64).reshape(-1, 4)
        return Forest(
            self.features,
            make_encoder(self.edges, self.edge_offsets, self.is_categorical),
            self.column,
            self.leaf,
            self.limit,
            missing,
            self.kind,
            bits,
            sets,
            left,
            right,
            self.value,
            self.split_offsets,
            self.tree_offsets,
            self.base,
            self.scale,
        )

    # ------------------------------------------------------------------ files

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise unless the arrays fit together; see `dichotomies.persistence.checks`."""
        sizes = np.diff(self.split_offsets)
        number = np.arange(names["n_splits"]) - np.repeat(self.split_offsets[:-1], sizes)
        expect(sizes.max(initial=0) < 256, "a tree has at most 255 splits")
        expect(bool((self.leaf <= number).all()), "a split divides a leaf that there is")
        expect(len(self.value) == names["n_splits"] + names["n_trees"], "every leaf has a value")
        expect(names["n_sets"] == np.count_nonzero(self.kind == CATEGORICAL), "categorical splits have a set")
        highest = np.iinfo(self.limit.dtype).max
        expect(np.diff(self.edge_offsets).max(initial=0) <= highest, "every code has a number")


def _allocate(ranges: Ranges, boosting: AdaBoosting | GradientBoosting, has_categories: bool) -> Ensembles:
    """Allocate arrays for the maximum number of trees and splits."""
    n_nodes, most_trees = len(ranges.begin), boosting.n_estimators
    most_splits = np.minimum(boosting.max_leaves, np.maximum(ranges.end - ranges.begin, 1)) - 1
    n_trees, n_splits = int(most_trees.sum()), int((most_trees * most_splits).sum())
    return Ensembles(
        n_trees=np.zeros(n_nodes, dtype=np.intp),
        is_trained=np.zeros(n_nodes, dtype=np.bool_),
        base=np.zeros(n_nodes),
        scale=np.ones(n_nodes),
        n_splits=np.empty(n_trees, dtype=np.intp),
        leaf=np.empty(n_splits, dtype=np.uint8),
        feature=np.empty(n_splits, dtype=np.int32),
        limit=np.empty(n_splits, dtype=np.uint8),
        kind=np.empty(n_splits, dtype=np.uint8),
        bits=np.empty((n_splits if has_categories else 0, 4), dtype=np.uint64),
        value=np.empty(n_splits + n_trees),
    )


def _room(bins: Bins, ranges: Ranges, boosting: AdaBoosting | GradientBoosting) -> Room:
    """Allocate memory for the largest node."""
    n_channels = 2 if isinstance(boosting, AdaBoosting) else 1
    return allocate_room(
        bins,
        n_rows=int((ranges.end - ranges.begin).max(initial=1)),
        max_leaves=int(boosting.max_leaves.max(initial=1)),
        max_depth=int(boosting.max_depth.max(initial=1)),
        n_channels=n_channels + (1 if boosting.min_rows.max(initial=1) > 1 else 0),
    )


def _usual(weight: FloatArray) -> FloatArray:
    """Scale weights by a power of two if the largest is extreme, so that no sum overflows."""
    _, exponent = np.frexp(weight.max(initial=0.0))
    return weight if abs(exponent) <= _USUAL_EXPONENT else np.ldexp(weight, -exponent)
