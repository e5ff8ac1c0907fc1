"""Trained nodes that are weights: a score is an intercept and a sum of weighted features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies._kernels.weights import dense_pairs, mixed_pairs, sparse_pairs, sparse_products

if TYPE_CHECKING:
    from dichotomies._typing import BoolArray, FloatArray, IntArray, Matrix


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
        sparse_products(X.data, X.indices, X.indptr, *self._arrays, out)
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        X = _as_sparse(X)
        out = np.empty(len(rows))
        sparse_pairs(X.data, X.indices, X.indptr, rows, nodes, *self._arrays, out)
        return out

    @property
    def _arrays(self) -> tuple[FloatArray, FloatArray, IntArray, IntArray, FloatArray]:
        return self.intercept, self.background, self.feature_offsets, self.node, self.value


def _as_sparse(X: Matrix) -> Any:
    """Rows in CSR format; the user may train on sparse rows and ask about dense ones."""
    return csr_array(X) if isinstance(X, np.ndarray) else X
