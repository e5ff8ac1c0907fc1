"""Products of rows with the weights of tree nodes."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel, vector_kernel


@vector_kernel
def dense_pairs(
    X: FloatArray,
    rows: IntArray,
    nodes: IntArray,
    weights: FloatArray,
    intercept: FloatArray,
    out: FloatArray,
) -> None:
    """Score row ``rows[i]`` at node ``nodes[i]``; `weights` has a row per node."""
    for i in range(len(rows)):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[rows[i], j] * weights[nodes[i], j]
        out[i] = total + intercept[nodes[i]]


@dense_pairs.plainly
def _dense_pairs(
    X: FloatArray,
    rows: IntArray,
    nodes: IntArray,
    weights: FloatArray,
    intercept: FloatArray,
    out: FloatArray,
) -> None:
    out[:] = np.einsum("ij,ij->i", X[rows], weights[nodes], dtype=np.float64) + intercept[nodes]


def mixed_pairs(
    X: Any, rows: IntArray, nodes: IntArray, weights: FloatArray, intercept: FloatArray
) -> FloatArray:
    """Score CSR row ``rows[i]`` at node ``nodes[i]``; `weights` has a row per node."""
    size = np.diff(X.indptr)[rows]
    place = np.repeat(X.indptr[rows] - (np.cumsum(size) - size), size) + np.arange(size.sum())
    products = X.data[place] * weights[np.repeat(nodes, size), X.indices[place]]
    pair = np.repeat(np.arange(len(rows)), size)
    scores: FloatArray = np.bincount(pair, products, len(rows)) + intercept[nodes]
    return scores


@kernel
def add_multiple(x: float, values: FloatArray, out: FloatArray) -> None:
    """Add x times the values to `out`."""
    for k in range(len(out)):
        out[k] += x * values[k]


class FeatureWeights(NamedTuple):
    """Weights of nodes, stored feature by feature.

    Attributes
    ----------
    intercept, background : (n_nodes,)
        Each node's intercept, and the weight of every feature without an entry there.
    offsets : (n_features + 1,)
        Start of each feature's entries, and the end.
    node, value : (n_entries,)
        Entries: a node, in ascending order, and the feature's weight minus the background.
    """

    intercept: FloatArray
    background: FloatArray
    offsets: IntArray
    node: IntArray
    value: FloatArray


@kernel
def sparse_products(
    csr: Any, weights: FeatureWeights, place_among_common: IntArray, common: FloatArray, out: FloatArray
) -> None:
    """Score CSR rows, given as a tuple of arrays, at every node.

    Parameters
    ----------
    place_among_common : (n_features,)
        The row of `common` that holds a feature's entries, or -1.
    common : (n_common, n_nodes)
        Dense entries of features that have many, so that adding them is vectorised.
    out : (n_rows, n_nodes)
        Scores.
    """
    data, indices, indptr = csr
    intercept, background, feature_offsets, node, value = weights
    n_rows, n_nodes = out.shape
    for i in range(n_rows):
        total = 0.0
        for place in range(indptr[i], indptr[i + 1]):
            total += data[place]
        row = out[i]
        for k in range(n_nodes):
            row[k] = intercept[k] + background[k] * total
        for place in range(indptr[i], indptr[i + 1]):
            x, j = data[place], indices[place]
            if place_among_common[j] >= 0:
                add_multiple(x, common[place_among_common[j]], row)
                continue
            for entry in range(feature_offsets[j], feature_offsets[j + 1]):
                row[np.uintp(node[entry])] += x * value[entry]


@sparse_products.plainly
def _sparse_products(
    csr: Any,
    weights: FeatureWeights,
    place_among_common: IntArray,  # noqa: ARG001 - all features are treated alike
    common: FloatArray,  # noqa: ARG001
    out: FloatArray,
) -> None:
    intercept, background, offsets, node, value = weights
    X = csr_array(csr, (len(out), len(offsets) - 1))
    products = X @ csr_array((value, node, offsets), (len(offsets) - 1, out.shape[1]))
    out[:] = products.toarray() + intercept + np.outer(X.sum(axis=1), background)


@kernel
def sparse_pairs(csr: Any, rows: IntArray, nodes: IntArray, weights: FeatureWeights, out: FloatArray) -> None:
    """Score CSR row ``rows[i]`` at node ``nodes[i]``, finding each feature's entry by bisection."""
    data, indices, indptr = csr
    intercept, background, feature_offsets, node, value = weights
    for i in range(len(rows)):
        k = nodes[i]
        total = intercept[k]
        for place in range(indptr[rows[i]], indptr[rows[i] + 1]):
            first, last = feature_offsets[indices[place]], feature_offsets[indices[place] + 1]
            entry = first + np.searchsorted(node[first:last], k)
            weight = background[k]
            if entry < last and node[entry] == k:
                weight += value[entry]
            total += data[place] * weight
        out[i] = total


@sparse_pairs.plainly
def _sparse_pairs(
    csr: Any, rows: IntArray, nodes: IntArray, weights: FeatureWeights, out: FloatArray
) -> None:
    intercept, background, offsets, node, value = weights
    n_features = len(offsets) - 1
    X = csr_array(csr, (len(csr[2]) - 1, n_features))[rows]
    own = csr_array((value, node, offsets), (n_features, len(intercept))).T.tocsr()[nodes]
    out[:] = X.multiply(own).sum(axis=1) + intercept[nodes] + X.sum(axis=1) * background[nodes]
