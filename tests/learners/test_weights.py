"""Nodes that are weights: sparse ones are dense ones written shorter."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from dichotomies.learners.weights import DenseWeights, SparseWeights


def sparse_weights(rng, n_nodes, n_features, density):
    """Random entries, and the dense weights they stand for."""
    active = rng.random((n_features, n_nodes)) < density
    active[n_features // 2] = False
    feature, node = np.nonzero(active)
    value = rng.normal(size=len(node))
    background, intercept = rng.normal(size=n_nodes), rng.normal(size=n_nodes)
    weights = np.tile(background[:, None], (1, n_features))
    weights[node, feature] += value
    offsets = np.concatenate([[0], np.cumsum(np.bincount(feature, minlength=n_features))])
    trained = np.ones(n_nodes, dtype=bool)
    sparse = SparseWeights(intercept, background, trained, offsets, node.astype(np.int32), value)
    return sparse, DenseWeights(weights, intercept, trained)


def sparse_rows(rng, n_rows, n_features, dtype, index_type):
    X = csr_array(rng.poisson(0.2, size=(n_rows, n_features)).astype(dtype))
    X.data[::7] = 0  # explicit zeros
    X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
    return X


@pytest.mark.parametrize("density", [0.0, 0.1, 0.7, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_sparse_weights_score_as_dense_weights_do(rng, density, dtype, index_type):
    sparse, dense = sparse_weights(rng, 37, 50, density)
    X = sparse_rows(rng, 20, 50, dtype, index_type)
    scores = dense.log_odds(X.toarray())
    assert_allclose(scores, X.toarray().astype(float) @ dense.weights.T + dense.intercept)
    assert_allclose(sparse.log_odds(X), scores, rtol=1e-10, atol=1e-10)
    rows, nodes = rng.integers(20, size=300), rng.integers(37, size=300)
    assert_allclose(sparse.pair_log_odds(X, rows, nodes), scores[rows, nodes], rtol=1e-10, atol=1e-10)
    paired = dense.pair_log_odds(X.toarray(), rows, nodes)
    assert_allclose(paired, scores[rows, nodes], rtol=1e-10, atol=1e-10)


def test_dense_weights_take_sparse_rows(rng):
    _, dense = sparse_weights(rng, 9, 30, 0.5)
    X = sparse_rows(rng, 8, 30, np.float64, np.int32)
    scores = dense.log_odds(X)
    assert isinstance(scores, np.ndarray)
    assert_allclose(scores, dense.log_odds(X.toarray()))
    rows, nodes = rng.integers(8, size=50), rng.integers(9, size=50)
    assert_allclose(dense.pair_log_odds(X, rows, nodes), scores[rows, nodes])


def test_sparse_weights_take_dense_rows(rng):
    sparse, _ = sparse_weights(rng, 37, 50, 0.3)
    X = sparse_rows(rng, 20, 50, np.float64, np.int32)
    rows, nodes = rng.integers(20, size=99), rng.integers(37, size=99)
    assert_allclose(sparse.log_odds(X.toarray()), sparse.log_odds(X))
    assert_allclose(sparse.pair_log_odds(X.toarray(), rows, nodes), sparse.pair_log_odds(X, rows, nodes))


def test_answers_are_fresh_arrays(rng):
    sparse, dense = sparse_weights(rng, 5, 6, 0.5)
    X = sparse_rows(rng, 4, 6, np.float64, np.int32)
    for scorer, rows in ((sparse, X), (dense, X.toarray())):
        first = scorer.log_odds(rows)
        kept = first.copy()
        first[:] = 0
        assert np.array_equal(scorer.log_odds(rows), kept)


def test_a_chunk_of_rows_gives_the_bits_that_all_rows_give(rng):
    sparse, _ = sparse_weights(rng, 200, 40, 0.6)
    X = sparse_rows(rng, 64, 40, np.float64, np.int32)
    assert np.array_equal(
        np.concatenate([sparse.log_odds(X[:16]), sparse.log_odds(X[16:])]), sparse.log_odds(X)
    )
