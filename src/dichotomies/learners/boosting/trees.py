"""The boosted trees of all nodes as flat arrays: training in batches, and scoring."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._kernels.boosting.ensembles import Ensembles
from dichotomies._kernels.boosting.nodes import boost_nodes
from dichotomies._kernels.boosting.tree_sums import sum_trees, sum_trees_of_pairs
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Offsets

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies._kernels.boosting.ensembles import Bins, Boosting


class Ranges(NamedTuple):
    """The rows of nodes, as ranges of the binned rows.

    Attributes
    ----------
    begin, split, end : (n_nodes,)
        Each node's range, and the start of its right side.
    left_is_positive : (n_nodes,)
        True where the left side is the positive class, which loses ties.
    """

    begin: IntArray
    split: IntArray
    end: IntArray
    left_is_positive: BoolArray

    def take(self, nodes: slice) -> Ranges:
        """Select some nodes."""
        sides = self.begin[nodes], self.split[nodes], self.end[nodes]
        return Ranges(*sides, self.left_is_positive[nodes])


class Ranks(NamedTuple):
    """The thresholds of all trees by feature, and each split's rank among them, see `tree_sums`."""

    features: IntArray
    thresholds: FloatArray
    offsets: IntArray
    column: npt.NDArray[np.int32]
    rank: npt.NDArray[Any]


@savable(
    "boosted-trees",
    feature=Array("integer", "n_trees", "n_splits", within=(-1, "n_features")),
    threshold=Array("float", "n_trees", "n_splits"),
    value=Array("float", "n_trees", (2, "n_splits", 1)),
    tree_offsets=Offsets("n_nodes", "n_trees"),
    base=Array("float", "n_nodes"),
    scale=Array("float", "n_nodes"),
    is_trained=Array("boolean", "n_nodes"),
)
@dataclass(frozen=True)
class BoostedTrees:
    """Trained nodes: the log-odds of going left are ``base + scale * (sum of leaf values)``.

    Attributes
    ----------
    feature, threshold : (n_trees, 2**max_depth - 1)
        The splits of each tree, numbered as in a heap; the feature of a leaf is -1. A row goes right where
        its feature is above the threshold.
    value : (n_trees, 2**(max_depth + 1) - 1)
        The value of each leaf.
    tree_offsets : (n_nodes + 1,)
        Start of each node's trees, and the end.
    base, scale : (n_nodes,)
    is_trained : (n_nodes,)
    """

    feature: npt.NDArray[np.int32]
    threshold: FloatArray
    value: FloatArray
    tree_offsets: IntArray
    base: FloatArray
    scale: FloatArray
    is_trained: BoolArray

    @classmethod
    def train(
        cls,
        bins: Bins,
        ranges: Ranges,
        boosting: Boosting,
        weight: FloatArray,
        fold: IntArray | None = None,
        left_out: int = -1,
    ) -> BoostedTrees:
        """Train some nodes on binned rows, leaving out a fold."""
        out = _allocate(len(ranges.begin), boosting)
        fold = np.zeros(len(weight), dtype=np.intp) if fold is None else fold
        boost_nodes(bins, weight, fold, left_out, *ranges, boosting, out)
        made = np.arange(boosting.n_estimators) < out.n_trees[:, np.newaxis]
        offsets = np.concatenate([[0], np.cumsum(out.n_trees)])
        trees = out.feature[made], out.threshold[made], out.value[made]
        return cls(*trees, offsets, out.base, out.scale, out.is_trained)

    @classmethod
    def joined(cls, batches: Sequence[BoostedTrees]) -> BoostedTrees:
        """Concatenate the nodes of all batches."""
        n_trees = np.concatenate([np.diff(batch.tree_offsets) for batch in batches])
        offsets = np.concatenate([[0], np.cumsum(n_trees)])
        names = ("feature", "threshold", "value", "base", "scale", "is_trained")
        arrays = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in names}
        return cls(tree_offsets=offsets, **arrays)

    def log_odds(self, X: FloatArray) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        out = np.empty((len(X), len(self.base)))
        sum_trees(X, *self._ranks, self.value, self.tree_offsets, self.base, self.scale, out)
        return out

    def pair_log_odds(self, X: FloatArray, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        out = np.empty(len(rows))
        pairs = np.argsort(nodes, kind="stable")
        trees = self.feature, self.threshold, self.value, self.tree_offsets
        sum_trees_of_pairs(X, rows, nodes, pairs, *trees, self.base, self.scale, out)
        return out

    @cached_property
    def _ranks(self) -> Ranks:
        splits = np.flatnonzero(self.feature >= 0)
        feature, threshold = self.feature.ravel()[splits], self.threshold.ravel()[splits]
        order = np.lexsort((threshold, feature))
        feature, threshold = feature[order], threshold[order]
        new_feature = np.diff(feature, prepend=-1) != 0
        new = new_feature | (np.diff(threshold, prepend=np.nan) != 0)
        begins = np.flatnonzero(new_feature[new])
        offsets = np.append(begins, np.count_nonzero(new))
        of_split = np.cumsum(new_feature) - 1
        rank_of_split = np.cumsum(new) - 1 - begins[of_split]
        # the dtype must also hold the highest rank plus one
        kind = np.uint16 if rank_of_split.max(initial=0) < np.iinfo(np.uint16).max else np.uint32
        column, rank = np.full(self.feature.size, -1, dtype=np.int32), np.zeros(self.feature.size, dtype=kind)
        column[splits[order]], rank[splits[order]] = of_split, rank_of_split
        shape = self.feature.shape
        used = feature[new_feature].astype(np.intp)
        return Ranks(used, threshold[new], offsets, column.reshape(shape), rank.reshape(shape))


def _allocate(n_nodes: int, boosting: Boosting) -> Ensembles:
    """Allocate arrays for the maximum number of trees."""
    n_trees, n_leaves = boosting.n_estimators, 2**boosting.max_depth
    return Ensembles(
        n_trees=np.zeros(n_nodes, dtype=np.intp),
        is_trained=np.zeros(n_nodes, dtype=np.bool_),
        base=np.zeros(n_nodes),
        scale=np.ones(n_nodes),
        feature=np.empty((n_nodes, n_trees, n_leaves - 1), dtype=np.int32),
        threshold=np.empty((n_nodes, n_trees, n_leaves - 1)),
        value=np.empty((n_nodes, n_trees, 2 * n_leaves - 1)),
    )
