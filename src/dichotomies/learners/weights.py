"""Trained nodes that are weights: a score is an intercept and a sum of weighted features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies._kernels.compile import csr_arrays, is_small
from dichotomies._kernels.weights import dense_pairs, mixed_pairs, sparse_pairs, sparse_products
from dichotomies.persistence import savable
from dichotomies.persistence.checks import expect_array, expect_indices, expect_offsets

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix

#: A feature is common where it has entries at one of so many nodes; common ones are spread over all nodes,
#: as many as fit into so many bytes.
_MANY, _COMMON_BYTES = 3, 256 * 2**20


@savable("dense-weights")
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
        given = rows, nodes, self.weights, self.intercept
        if not isinstance(X, np.ndarray):
            return mixed_pairs(X, *given)
        out = np.empty(len(rows))
        dense_pairs.when(is_small(len(rows), 1e-8 * len(rows) * X.shape[1]))(X, *given, out)
        return out

    def check_fits(self, n_nodes: int, n_features: int) -> None:
        """Refuse arrays of other shapes; see `NodeScorer`."""
        expect_array(self.weights, "float", (n_nodes, n_features), "weights")
        expect_array(self.intercept, "float", (n_nodes,), "intercept")
        expect_array(self.is_trained, "boolean", (n_nodes,), "is_trained")


@savable("sparse-weights")
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
        small = is_small(len(out), 1e-8 * (len(self.value) + out.size) + 1e-4, is_answer=True)
        given = *csr_arrays(X), *self._arrays, *self._common
        sparse_products.when(small)(*given, out)
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        X = _as_sparse(X)
        out = np.empty(len(rows))
        small = is_small(len(rows), 1e-7 * (len(self.value) + len(rows)))
        given = *csr_arrays(X), rows, nodes, *self._arrays
        sparse_pairs.when(small)(*given, out)
        return out

    def check_fits(self, n_nodes: int, n_features: int) -> None:
        """Refuse arrays of other shapes, and entries of nodes that are not there; see `NodeScorer`."""
        for name in ("intercept", "background"):
            expect_array(getattr(self, name), "float", (n_nodes,), name)
        expect_array(self.is_trained, "boolean", (n_nodes,), "is_trained")
        expect_array(self.node, "integer", (None,), "node")
        expect_array(self.value, "float", (len(self.node),), "value")
        expect_offsets(self.feature_offsets, n_features, len(self.node), "feature_offsets")
        expect_indices(self.node, 0, n_nodes, "node")

    @cached_property
    def _common(self) -> tuple[IntArray, FloatArray]:
        """Which features have entries at many nodes, and these written out; see `sparse_products`."""
        n_nodes = len(self.intercept)
        n_entries = np.diff(self.feature_offsets)
        most = _COMMON_BYTES // (8 * n_nodes)
        features = np.argsort(-n_entries, kind="stable")[:most]
        features = features[_MANY * n_entries[features] >= n_nodes]
        place: IntArray = np.full(len(n_entries), -1, dtype=np.int32)
        place[features] = np.arange(len(features))
        weights = np.zeros((len(features), n_nodes))
        of_entry = np.repeat(place, n_entries)
        is_common = of_entry >= 0
        weights[of_entry[is_common], self.node[is_common]] = self.value[is_common]
        return place, weights

    @property
    def _arrays(self) -> tuple[FloatArray, FloatArray, IntArray, IntArray, FloatArray]:
        return self.intercept, self.background, self.feature_offsets, self.node, self.value


def _as_sparse(X: Matrix) -> Any:
    """Rows in CSR format; the user may train on sparse rows and ask about dense ones."""
    return csr_array(X) if isinstance(X, np.ndarray) else X
