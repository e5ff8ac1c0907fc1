"""Linear nodes: a score is an intercept plus a weighted sum of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.best_of import gather
from dichotomies._common.chunks import rows_within
from dichotomies._common.progress import CALL
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies._kernels.compile import csr_arrays, is_small
from dichotomies._kernels.node_scores import DenseNodes, SparseNodes
from dichotomies._kernels.weights import (
    FeatureWeights,
    dense_pairs,
    mixed_pairs,
    sparse_pairs,
    sparse_products,
)
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Offsets
from dichotomies.tree import ClassTree

#: A feature is common if it has entries at a fraction ``1 / _COMMON_PART`` of the nodes. Common features are
#: stored densely, as many as fit into `_COMMON_BYTES`.
_COMMON_PART, _COMMON_BYTES = 3, 256 * 2**20


@savable(
    "dense-weights",
    weights=Array("float", "n_nodes", "n_features"),
    intercept=Array("float", "n_nodes"),
    is_trained=Array("boolean", "n_nodes"),
)
@dataclass(frozen=True)
class DenseWeights:
    """One weight per node and feature.

    Attributes
    ----------
    weights : (n_nodes, n_features)
    intercept : (n_nodes,)
    is_trained : (n_nodes,)
    """

    weights: FloatArray
    intercept: FloatArray
    is_trained: BoolArray

    @classmethod
    def gathered(cls, parts: Sequence[DenseWeights], nodes: IntArray) -> DenseWeights:
        """Take nodes of several parts, which are numbered one after the other."""
        names = "weights", "intercept", "is_trained"
        return cls(*(gather([getattr(part, name) for part in parts], nodes) for name in names))

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node: one matrix product."""
        out: FloatArray = np.asarray(X @ self.weights.T, dtype=np.float64)
        out += self.intercept
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        given = rows, nodes, self.weights, self.intercept
        if not isinstance(X, np.ndarray):
            return mixed_pairs(X, *given)
        out = np.empty(len(rows))
        dense_pairs.when(is_small(len(rows), 1e-8 * len(rows) * X.shape[1]))(X, *given, out)
        return out

    def search_nodes(self, tree: ClassTree) -> DenseNodes:  # noqa: ARG002 - as `SparseWeights`
        """The nodes in the form that searching takes."""
        return DenseNodes(self.intercept, self.weights)

    def search_rows(self, X: Matrix) -> tuple[Any, ...] | None:
        """Rows in the form that searching takes; None if they are sparse."""
        return (X,) if isinstance(X, np.ndarray) else None


@savable(
    "sparse-weights",
    intercept=Array("float", "n_nodes"),
    background=Array("float", "n_nodes"),
    is_trained=Array("boolean", "n_nodes"),
    node=Array("integer", "n_entries", within=(0, "n_nodes")),
    value=Array("float", "n_entries"),
    feature_offsets=Offsets("n_features", "n_entries"),
)
@dataclass(frozen=True)
class SparseWeights:
    """Weights of active features, stored feature by feature, and one common weight for all others.

    In text data few features are active at a node, and all others have the same weight there. A node is an
    intercept, that *background* weight, and an entry for each active feature, its weight minus the
    background: memory grows with the number of active features, not with nodes times features.

    Attributes
    ----------
    intercept, background : (n_nodes,)
    is_trained : (n_nodes,)
    feature_offsets : (n_features + 1,)
        Start of each feature's entries, and the end.
    node, value : (n_entries,)
        The entries of each feature by ascending node: weight minus background.
    """

    intercept: FloatArray
    background: FloatArray
    is_trained: BoolArray
    feature_offsets: IntArray
    node: IntArray
    value: FloatArray

    @classmethod
    def gathered(cls, parts: Sequence[SparseWeights], nodes: IntArray) -> SparseWeights:
        """Take nodes of several parts, which are numbered one after the other."""
        intercept, background, is_trained = (
            gather([getattr(part, name) for part in parts], nodes)
            for name in ("intercept", "background", "is_trained")
        )
        n_nodes = np.cumsum([0, *(len(part.intercept) for part in parts)])
        wanted = np.full(n_nodes[-1], -1)
        wanted[nodes] = np.arange(len(nodes))
        node = np.concatenate([wanted[b + part.node] for b, part in zip(n_nodes, parts, strict=False)])
        n_features = len(parts[0].feature_offsets) - 1
        feature = np.concatenate(
            [np.repeat(np.arange(n_features), np.diff(part.feature_offsets)) for part in parts]
        )
        value, kept = np.concatenate([part.value for part in parts]), node >= 0
        entries = csr_array((value[kept], (feature[kept], node[kept])), (n_features, len(nodes)))
        entries.sort_indices()
        indptr, indices = entries.indptr.astype(np.intp), entries.indices.astype(np.intp)
        return cls(intercept, background, is_trained, indptr, indices, entries.data)

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node: one sparse product."""
        X = _as_sparse(X)
        out = np.empty((X.shape[0], len(self.intercept)))
        small = is_small(len(out), 1e-8 * (len(self.value) + out.size) + 1e-4, is_answer=True)
        sparse_products.when(small)(csr_arrays(X), self._arrays, *self._common, out)
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        X = _as_sparse(X)
        out = np.empty(len(rows))
        small = is_small(len(rows), 1e-7 * (len(self.value) + len(rows)))
        sparse_pairs.when(small)(csr_arrays(X), rows, nodes, self._arrays, out)
        return out

    def search_nodes(self, tree: ClassTree) -> SparseNodes:
        """The nodes in the form that searching takes: a copy of the entries, in another order."""
        return _entries_along(tree, self)

    def search_rows(self, X: Matrix) -> tuple[Any, ...]:
        """Rows in the form that searching takes."""
        return csr_arrays(_as_sparse(X))

    @cached_property
    def _common(self) -> tuple[IntArray, FloatArray]:
        """Row of each common feature in a dense matrix (-1 for others), and that matrix."""
        n_nodes = len(self.intercept)
        n_entries = np.diff(self.feature_offsets)
        limit = CALL.get().limit
        most = rows_within(_COMMON_BYTES if limit is None else min(_COMMON_BYTES, limit // 4), n_nodes)
        features = np.argsort(-n_entries, kind="stable")[:most]
        features = features[_COMMON_PART * n_entries[features] >= n_nodes]
        place: IntArray = np.full(len(n_entries), -1, dtype=np.int32)
        place[features] = np.arange(len(features))
        weights = np.zeros((len(features), n_nodes))
        of_entry = np.repeat(place, n_entries)
        is_common = of_entry >= 0
        weights[of_entry[is_common], self.node[is_common]] = self.value[is_common]
        return place, weights

    @property
    def _arrays(self) -> FeatureWeights:
        return FeatureWeights(self.intercept, self.background, self.feature_offsets, self.node, self.value)


def _as_sparse(X: Matrix) -> Any:
    """Convert rows to CSR; a model trained on sparse rows may predict dense ones."""
    return csr_array(X) if isinstance(X, np.ndarray) else X


def _entries_along(tree: ClassTree, weights: SparseWeights) -> SparseNodes:
    """Reorder the entries as `SparseNodes` has them; nodes that lack one get an entry of 0."""
    n_features, n_nodes = len(weights.feature_offsets) - 1, tree.n_nodes
    by_place = np.lexsort((-tree.stop, tree.start))  # pre-order
    place = np.empty(n_nodes, dtype=np.int64)
    place[by_place] = np.arange(n_nodes)
    key, value = _by_place(weights, place)
    above = np.where(tree.parent < 0, 0, place[tree.parent])[by_place]  # of the node at each place
    missing = key
    while len(missing := _absent(missing - missing % n_nodes + above[missing % n_nodes], key)):
        order = np.argsort(np.append(key, missing), kind="stable")
        key, value = np.append(key, missing)[order], np.append(value, np.zeros(len(missing)))[order]
    end_of_left = key + (tree.split - tree.start)[by_place[key % n_nodes]]
    n_left = np.searchsorted(key, end_of_left) - np.arange(1, len(key) + 1)
    offsets = np.searchsorted(key, np.arange(n_features + 1) * n_nodes).astype(np.uint64)
    entries = np.empty((len(key), 2))
    entries[:, 0], entries.view(np.uint64)[:, 1] = value, n_left
    flat = entries.ravel()
    return SparseNodes(weights.intercept, weights.background, offsets, flat, flat.view(np.uint64))


def _by_place(weights: SparseWeights, place: IntArray) -> tuple[IntArray, FloatArray]:
    """Sorted keys ``feature * n_nodes + place of the node`` of all entries, and their values."""
    shape = len(weights.feature_offsets) - 1, len(place)
    matrix = csr_array((weights.value.copy(), place[weights.node], weights.feature_offsets), shape)
    matrix.sort_indices()
    feature = np.repeat(np.arange(shape[0]), np.diff(matrix.indptr))
    key: IntArray = feature * shape[1] + matrix.indices
    return key, matrix.data.astype(np.float64, copy=False)


def _absent(wanted: IntArray, keys: IntArray) -> IntArray:
    """Different keys that are wanted and not among the sorted ones."""
    found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.unique(wanted[keys[found] != wanted] if len(keys) else wanted)
