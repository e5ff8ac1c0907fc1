"""Fitted models on small data, one of each kind of calibration."""

import pytest
from sklearn.naive_bayes import GaussianNB

from dichotomies import NestedDichotomyClassifier

SCHEMES = {
    "none": {"external_calibration": None},
    "external": {},
    "internal": {"internal_calibration": "isotonic", "external_calibration": None},
    "both": {"internal_calibration": "platt"},
    "average": {"internal_calibration": "platt", "average_folds": True},
    "some nodes": {"internal_calibration": "platt", "calibrated_nodes": [0, 2]},
}


def fit(X, y, **params):
    given = {"internal_calibration": None, "external_calibration": "vector", "calibration_size": 0.1} | params
    return NestedDichotomyClassifier(GaussianNB(var_smoothing=1e-2), random_state=0, **given).fit(X, y)


@pytest.fixture(scope="session", params=SCHEMES)
def scored(request, digits):
    """A fitted classifier with test rows and labels."""
    X, y = digits
    return fit(X[:900], y[:900], **SCHEMES[request.param]), X[900:], y[900:]


@pytest.fixture(scope="session")
def calibrated(digits):
    """The one with both kinds of calibration."""
    X, y = digits
    return fit(X[:900], y[:900], **SCHEMES["both"]), X[900:], y[900:]
