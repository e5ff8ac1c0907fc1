"""Scaled logistic regression is scikit-learn's, on features that scikit-learn standardised."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from dichotomies import ScaledLogisticRegression
from tests.uncalibrated import Uncalibrated


@pytest.fixture
def rows(digits):
    """Columns of different sizes, far from zero, that vary in many rows, and a constant one."""
    X, y = digits[0][:300, 10:40], digits[1][:300]
    X = X[:, (X > 0).sum(axis=0) > 30]
    return np.column_stack(
        [X * np.logspace(-3, 3, X.shape[1]) + np.linspace(-9, 900, X.shape[1]), X[:, 0] * 0 + 5]
    ), y


def test_scikit_learn_accepts_it():
    check_estimator(ScaledLogisticRegression(), on_skip=None)


def test_it_is_the_pipeline_of_a_scaler_and_logistic_regression(rows):
    X, y = rows
    params = {"C": 0.3, "tol": 1e-10, "max_iter": 10_000}
    ours = ScaledLogisticRegression(**params).fit(X, y)
    theirs = make_pipeline(StandardScaler(), LogisticRegression(**params)).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("internal", [None, "platt"])
def test_at_nodes_features_are_standardised_once_on_all_rows(rows, internal):
    X, y = rows
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    scaled = StandardScaler().fit(X, sample_weight=weight).transform(X)
    given = {"structure": "class-balanced", "internal_calibration": internal, "random_state": 0}
    ours = Uncalibrated(ScaledLogisticRegression(tol=1e-9), **given).fit(X, y, weight)
    theirs = Uncalibrated(LogisticRegression(tol=1e-9), **given).fit(scaled, y, weight)
    assert ours.learner_.startswith("scaled-logistic: ")
    assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(scaled), atol=1e-5)


def test_a_feature_of_few_rows_does_not_decide_where_it_is_larger(rng):
    y = np.arange(300) % 3
    X = np.column_stack([np.eye(3)[y] + rng.normal(scale=0.4, size=(300, 3)), np.zeros(300)])
    X[0, 3] = 1e-3  # the only row that varies, and little
    new = X[3:30] + np.eye(4)[3]
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    ours = ScaledLogisticRegression().fit(X, y)
    shift = [np.abs(each.decision_function(new) - each.decision_function(X[3:30])) for each in (ours, plain)]
    assert shift[0].max() < shift[1].max() / 5


def test_a_feature_of_few_rows_counts_rows_by_weight(rng):
    y = np.arange(40) % 3
    X = np.column_stack([np.eye(3)[y] + rng.normal(scale=0.4, size=(40, 3)), np.zeros(40)])
    X[0, 3], weight = 1.0, rng.integers(1, 3, size=40)
    weighted = ScaledLogisticRegression(tol=1e-10).fit(X, y, weight)
    copied = ScaledLogisticRegression(tol=1e-10).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.coef_, copied.coef_, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e90])
def test_units_do_not_matter(rows, unit):
    X, y = rows
    plain, other = (
        Uncalibrated(ScaledLogisticRegression(), "random", random_state=0).fit(rows, y).predict_proba(rows)
        for rows in (X, X * unit)
    )
    if unit == 1e-200:  # smaller than any number whose square is one: no feature at all
        assert np.isfinite(other).all()
    else:
        assert_allclose(other, plain, atol=1e-6)


def test_rows_of_weight_zero_set_no_scale(iris):
    X, y = iris
    far = X.astype(np.float32)
    far[0] = 1e9
    weight = np.ones(150)
    weight[0] = 0.0
    clf = ScaledLogisticRegression().fit(far, y, weight)
    assert clf.score(far[1:], y[1:]) == ScaledLogisticRegression().fit(far[1:], y[1:]).score(far[1:], y[1:])
