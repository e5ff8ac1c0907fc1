"""Boosted trees of few rows, grown and read without compiled code, are those of the kernels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from dichotomies._common.parallel import Context
from dichotomies._kernels import compile as kernels
from dichotomies.learners import Wanted, choose
from dichotomies.learners.boosting import HistAdaBoostClassifier, HistGradientBoostClassifier
from dichotomies.tree import ClassTree
from tests.tasks import in_folds, node_task

ESTIMATORS = {
    "gradient": HistGradientBoostClassifier(),
    "rows in leaves": HistGradientBoostClassifier(12, min_samples_leaf=4, max_depth=3, subsample=1.0),
    "categories": HistGradientBoostClassifier(12, categorical_features=[3]),
    "early stopping": HistGradientBoostClassifier(20, early_stopping=True),
    "discrete": HistAdaBoostClassifier(9),
    "real": HistAdaBoostClassifier(9, algorithm="real", min_samples_leaf=3),
}
TREE = ClassTree.from_nested([[0, 1], [2, 3]])


def _cross_fit(estimator, X, y, patience, monkeypatch):
    """Model of all rows, out-of-fold scores, and scores of rows by the model."""
    monkeypatch.setattr(kernels, "PATIENCE", patience)
    monkeypatch.setattr(kernels, "PATIENCE_OF_ANSWERS", patience)
    task = in_folds(node_task(TREE, X, y), np.arange(len(y)) // 4 % 2)
    found = choose(estimator).cross_fit(task, Wanted.FULL | Wanted.SCORES, Context())
    return found.full, found.scores, found.full.log_odds(X)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_they_are_those_of_the_kernels(rng, monkeypatch, name, kind):
    estimator, y = ESTIMATORS[name], np.arange(140) % 4
    X = rng.normal(size=(140, 5)).round(1) + rng.normal(size=(4, 5)).round(1)[y]
    X[:, 3] = rng.integers(0, 7, size=140) + (y == 2)
    X[rng.random(X.shape) < 0.3] = 0.0
    if isinstance(estimator, HistGradientBoostClassifier):
        X[rng.random(X.shape) < 0.1] = np.nan
    trees, scores, log_odds = _cross_fit(estimator, kind(X), y, np.inf, monkeypatch)
    expected, expected_scores, expected_log_odds = _cross_fit(estimator, kind(X), y, -1.0, monkeypatch)
    for each in ("column", "leaf", "limit", "kind", "categories", "split_offsets", "tree_offsets"):
        assert_array_equal(getattr(trees, each), getattr(expected, each), err_msg=each)
    assert len(trees.column) > 20
    assert_allclose(trees.value, expected.value, rtol=1e-6)
    assert_allclose(scores, expected_scores, rtol=1e-6, atol=1e-9)
    assert_allclose(log_odds, expected_log_odds, rtol=1e-6, atol=1e-9)


def test_one_row_is_scored_as_with_others(rng, monkeypatch):
    monkeypatch.setattr(kernels, "PATIENCE_OF_ANSWERS", np.inf)
    X, y = rng.normal(size=(90, 3)), np.arange(90) % 4
    trees = choose(HistGradientBoostClassifier()).fit(node_task(TREE, X, y), Context())
    assert_array_equal(np.concatenate([trees.log_odds(row[None]) for row in X]), trees.log_odds(X))
