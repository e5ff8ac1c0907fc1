"""Trained nodes that are weights: a score is an intercept and a sum of weighted features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.chunks import rows_within
from dichotomies._kernels.weights import dense_pairs, mixed_pairs, sparse_pairs, sparse_products, spread
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Offsets

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix

#: A feature is common where it has entries at one of so many nodes; common ones are spread over all nodes,
#: as many as fit into so many bytes.
_MANY, _COMMON_BYTES = 3, 256 * 2**20


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

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node: one matrix product."""
        out: FloatArray = np.asarray(X @ self.weights.T, dtype=np.float64)
        out += self.intercept
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        out = np.empty(len(rows))
        if isinstance(X, np.ndarray):
            dense_pairs(X, rows, nodes, self.weights, self.intercept, out)
        else:
            mixed_pairs(X.data, X.indices, X.indptr, rows, nodes, self.weights, self.intercept, out)
        return out


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
    """A constant per node, and the weights of the features active there, stored feature by feature.

    A node has seen few of the features of a text; all others have one and the same weight there. So a node
    is an intercept, that *background* weight, and an entry for each active feature that says how far its
    weight is from the background: memory grows with what was seen, not with nodes times features.

    Attributes
    ----------
    intercept, background : (n_nodes,)
    is_trained : (n_nodes,)
    feature_offsets : (n_features + 1,)
        Where each feature's entries begin, and the end.
    node, value : (n_entries,)
        The entries of each feature by ascending node: weight minus background.
    """

    intercept: FloatArray
    background: FloatArray
    is_trained: BoolArray
    feature_offsets: IntArray
    node: IntArray
    value: FloatArray

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node: one sparse product."""
        X = _as_sparse(X)
        out = np.empty((X.shape[0], len(self.intercept)))
        sparse_products(X.data, X.indices, X.indptr, *self._arrays, *self._common, out)
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        X = _as_sparse(X)
        out = np.empty(len(rows))
        sparse_pairs(X.data, X.indices, X.indptr, rows, nodes, *self._arrays, out)
        return out

    @cached_property
    def _common(self) -> tuple[IntArray, FloatArray]:
        """Which features have entries at many nodes, and these written out; see `sparse_products`."""
        n_nodes = len(self.intercept)
        n_entries = np.diff(self.feature_offsets)
        most = rows_within(_COMMON_BYTES, n_nodes)
        features = np.argsort(-n_entries, kind="stable")[:most]
        features = features[_MANY * n_entries[features] >= n_nodes]
        place: IntArray = np.full(len(n_entries), -1, dtype=np.int32)
        place[features] = np.arange(len(features))
        weights = np.empty((len(features), n_nodes))
        spread(features, self.feature_offsets, self.node, self.value, weights)
        return place, weights

    @property
    def _arrays(self) -> tuple[FloatArray, FloatArray, IntArray, IntArray, FloatArray]:
        return self.intercept, self.background, self.feature_offsets, self.node, self.value


def _as_sparse(X: Matrix) -> Any:
    """Rows in CSR format; the user may train on sparse rows and ask about dense ones."""
    return csr_array(X) if isinstance(X, np.ndarray) else X
