"""Boosted trees on sparse rows: those of the same rows, dense."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from dichotomies import NestedDichotomyClassifier
from dichotomies.learners.boosting import HistAdaBoostClassifier, HistGradientBoostClassifier

ESTIMATORS = {
    "default growth": HistGradientBoostClassifier(n_estimators=8, subsample=1.0),
    "small leaves": HistGradientBoostClassifier(
        n_estimators=8, subsample=1.0, max_depth=3, min_samples_leaf=1
    ),
    "stopping early": HistGradientBoostClassifier(n_estimators=15, subsample=1.0, early_stopping=True),
    "drawn features": HistGradientBoostClassifier(
        n_estimators=6, subsample=1.0, max_features=0.5, max_tree_features=0.5
    ),
    "categories": HistGradientBoostClassifier(
        n_estimators=6, subsample=1.0, min_samples_leaf=2, categorical_features=[0, 1, 2]
    ),
    "discrete AdaBoost": HistAdaBoostClassifier(n_estimators=6, min_samples_leaf=2),
    "real AdaBoost": HistAdaBoostClassifier(n_estimators=6, min_samples_leaf=2, algorithm="real"),
}


def counts(n_rows=240, n_features=25, n_classes=5):
    """Counts, a column of negative numbers, one without zeros, one of zeros only."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_rows)
    is_present = rng.random((n_rows, n_features)) < 0.4 * rng.random((n_classes, n_features))[y]
    X = is_present * rng.integers(1, 4, (n_rows, n_features)).astype(float)
    X[:, 3] *= -1.5
    X[:, 4], X[:, 5] = rng.integers(1, 3, n_rows), 0.0
    return X, y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("calibration", [None, "platt"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_equal_to_dense_rows(name, calibration, weighted):
    X, y = counts()
    weight = np.random.default_rng(1).integers(0, 3, len(y)) if weighted else None
    clf = NestedDichotomyClassifier(
        ESTIMATORS[name],
        structure="random",
        random_state=0,
        internal_calibration=calibration,
        external_calibration=None,
    )
    expected = clf.fit(X, y, sample_weight=weight).predict_proba(X)
    sparse = csr_matrix(X)
    proba = clf.fit(sparse, y, sample_weight=weight).predict_proba(sparse)
    np.testing.assert_array_equal(proba, expected)
    np.testing.assert_array_equal(clf.predict_proba(X), expected)


def test_missing_values_are_entries():
    X, y = counts()
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    booster = HistGradientBoostClassifier(n_estimators=8, subsample=1.0, min_samples_leaf=3)
    sparse = csr_matrix(X)
    expected = booster.fit(X, y > 2).predict_proba(X)
    np.testing.assert_array_equal(booster.fit(sparse, y > 2).predict_proba(sparse), expected)


def test_order_of_entries_and_duplicates_do_not_matter():
    X, y = counts()
    sparse = csr_matrix(X)
    rows = np.repeat(np.arange(len(X)), np.diff(sparse.indptr))
    twice = np.concatenate([sparse.data / 2, sparse.data / 2])
    order = np.random.default_rng(3).permutation(len(twice))
    columns = np.concatenate([sparse.indices, sparse.indices])
    order = order[np.argsort(np.concatenate([rows, rows])[order], kind="stable")]
    shuffled = csr_matrix((twice[order], columns[order], 2 * sparse.indptr), shape=X.shape)
    booster = HistGradientBoostClassifier(n_estimators=5, subsample=1.0)
    expected = booster.fit(sparse, y > 2).predict_proba(sparse)
    np.testing.assert_array_equal(booster.fit(shuffled, y > 2).predict_proba(shuffled), expected)


def test_rows_without_any_entry_are_those_of_zeros():
    X, y = np.zeros((9, 2)), [0, 1, 2] * 3
    booster = HistGradientBoostClassifier(n_estimators=3)
    clf = NestedDichotomyClassifier(booster, "random", internal_calibration=None, external_calibration=None)
    expected = clf.set_params(random_state=0).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(clf.fit(csr_matrix(X), y).predict_proba(csr_matrix(X)), expected)


def test_many_features_fit_in_little_memory():
    n_features = 2_000_000  # dense, a row would have 16 MB
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 200)
    columns = np.where(rng.random((200, 10)) < 0.8, rng.integers(0, 50, (200, 10)) + 50 * y[:, None], 7)
    sparse = csr_matrix((np.ones(2000), columns.ravel(), np.arange(0, 2001, 10)), shape=(200, n_features))
    booster = HistGradientBoostClassifier(n_estimators=10).fit(sparse, y)
    assert booster.score(sparse, y) > 0.75


def test_drawn_rows_do_not_depend_on_their_order():
    X, y = counts()
    booster = HistGradientBoostClassifier(n_estimators=10, subsample=0.5)
    order = np.random.default_rng(5).permutation(len(X))
    first = booster.fit(csr_matrix(X), y > 2).predict_proba(X)
    np.testing.assert_allclose(booster.fit(csr_matrix(X[order]), y[order] > 2).predict_proba(X), first)
