"""Rows and their views, against plain indexing."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

from dichotomies.rows import NodeTask, Rows
from dichotomies.tree import ClassTree


@pytest.fixture(params=[np.asarray, csr_array])
def rows(request, rng):
    X = rng.poisson(1.0, size=(40, 6)).astype(float)
    return Rows(request.param(X), rng.integers(4, size=40), np.arange(4), rng.random(40))


def dense(X):
    return X if isinstance(X, np.ndarray) else X.toarray()


def test_a_view_of_a_view_is_what_indexing_gives(rows, rng):
    first, second = rng.permutation(40)[:25], rng.permutation(25)[:10]
    view = rows.take(first).take(second)
    chosen = first[second]
    assert np.array_equal(dense(view.X), dense(rows.X)[chosen])
    assert np.array_equal(dense(view.features_of(np.array([3, 1]))), dense(rows.X)[chosen[[3, 1]]])
    assert np.array_equal(view.codes, rows.codes[chosen])
    assert np.array_equal(view.weight, rows.weight[chosen])


def test_views_copy_no_features(rows):
    assert rows.take(np.arange(5)).base is rows.base
    assert rows.reweighted(None).X is rows.X
    assert rows.in_folds(2, np.random.RandomState(0)).X is rows.X


def test_folds_go_along_and_share_the_memo_that_weights_do_not(rows):
    rows.remember("a", lambda: 1)
    divided = rows.in_folds(3, np.random.RandomState(0))
    assert divided.remember("a", lambda: 2) == 1
    assert rows.reweighted(None).remember("a", lambda: 2) == 2
    few = np.array([3, 5, 7])
    assert np.array_equal(divided.take(few).fold, divided.fold[few])
    assert rows.n_folds == 1
    assert divided.n_folds == 3


def test_missing_values_are_imputed_by_the_mean_of_the_feature():
    X = np.array([[1.0, np.nan], [3.0, 4.0], [np.inf, 2.0]])
    codes = np.array([0, 1, 1])
    expected = [[1.0, 3.0], [3.0, 4.0], [2.0, 2.0]]
    assert Rows(X, codes, np.arange(2)).imputed.tolist() == expected
    assert Rows(csr_array(X), codes, np.arange(2)).imputed.toarray().tolist() == expected


def test_workers_get_the_rows_without_the_memo(rows):
    rows.remember("a", lambda: 1)
    again = pickle.loads(pickle.dumps(rows))
    assert again.memo == {}
    assert np.array_equal(dense(again.X), dense(rows.X))


@pytest.mark.parametrize("nodes", [None, np.array([0, 2])])
def test_every_node_has_the_rows_of_its_classes(rows, nodes):
    tree = ClassTree.from_nested([[2, 0], [1, 3]])
    task = NodeTask(rows, tree, nodes)
    pairs = task.own_pairs()
    for k, node in enumerate(range(3) if nodes is None else nodes):
        left = tree.leaf_labels[tree.start[node] : tree.split[node]]
        below = tree.leaf_labels[tree.start[node] : tree.stop[node]]
        expected = np.flatnonzero(np.isin(rows.codes, below))
        own, is_left = task.rows_of(k)
        assert np.array_equal(own, expected)
        assert np.array_equal(is_left, np.isin(rows.codes[expected], left))
        inside = slice(pairs.offsets[k], pairs.offsets[k + 1])
        assert np.array_equal(np.sort(pairs.rows[inside]), expected)
        assert np.array_equal(pairs.is_left[inside], np.isin(rows.codes[pairs.rows[inside]], left))
