"""Nodes that torch trains, on whatever device it has, equal those of `LogisticLearner`."""

import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from dichotomies import NestedDichotomyClassifier


def fitted(learner, rows, estimator, **params):
    X, y, weight = rows
    params = {"internal_calibration": None, "external_calibration": None, **params}
    clf = NestedDichotomyClassifier(estimator, learner=learner, structure="2-means", random_state=0, **params)
    return clf.fit(X, y, weight)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"C": 100.0},
        {"class_weight": "balanced"},
        {"class_weight": {0: 1.0, 1: 3.0}},
        {"fit_intercept": False},
        {"solver": "liblinear", "intercept_scaling": 2.0},
    ],
)
def test_nodes_are_at_the_optimum_of_the_logistic_learner(digits, rng, params):
    pytest.importorskip("torch")
    X, y = digits
    rows = X + 3.0, y, rng.integers(0, 3, size=len(y)).astype(float)
    estimator = LogisticRegression(tol=1e-9, max_iter=500, **params)
    found = fitted("gpu", rows, estimator).predict_proba(rows[0])
    expected = fitted("logistic", rows, estimator).predict_proba(rows[0])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_out_of_fold_scores_are_those_of_the_logistic_learner(digits):
    pytest.importorskip("torch")
    rows = *digits, None
    params = {"internal_calibration": "platt", "external_calibration": "vector"}
    estimator = LogisticRegression(tol=1e-9, max_iter=500)
    found = fitted("gpu", rows, estimator, **params).predict_proba(rows[0])
    np.testing.assert_allclose(
        found, fitted("logistic", rows, estimator, **params).predict_proba(rows[0]), rtol=1e-4, atol=1e-6
    )


def test_single_precision_is_within_the_default_tolerance(digits):
    pytest.importorskip("torch")
    rows = *digits, None
    exact = fitted("gpu", rows, LogisticRegression(tol=1e-9, max_iter=500)).predict_proba(rows[0])
    found = fitted("gpu", rows, LogisticRegression(max_iter=500)).predict_proba(rows[0])
    np.testing.assert_allclose(found, exact, atol=2e-3)


def test_it_is_taken_only_by_name(digits):
    assert "gpu" not in NestedDichotomyClassifier(LogisticRegression(C=0.01)).fit(*digits).learner_


def test_without_torch_it_says_what_to_install(digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("dichotomies.learners.gpu.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'dichotomies\[gpu\]'"):
        NestedDichotomyClassifier(LogisticRegression(), learner="gpu").fit(*digits)


def test_other_estimators_are_refused(digits):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="it trains only LogisticRegression"):
        NestedDichotomyClassifier(GaussianNB(), learner="gpu").fit(*digits)
