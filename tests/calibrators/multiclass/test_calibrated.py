"""The wrapper calibrates a fitted classifier without touching it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.estimators.calibrated import CalibratedClassifier


@pytest.mark.parametrize("learner", [GaussianNB(), DecisionTreeClassifier(random_state=0)])
def test_calibration_improves_log_loss_with_string_labels(learner, digits):
    X, y = digits
    names = np.array([f"digit {i}" for i in range(10)])[y]
    clf = learner.fit(X[:800], names[:800])
    calibrated = CalibratedClassifier(clf).fit(X[800:1300], names[800:1300])
    assert calibrated.estimator is clf
    assert calibrated.classes_.tolist() == clf.classes_.tolist()
    assert log_loss(names[1300:], calibrated.predict_proba(X[1300:])) < log_loss(
        names[1300:], clf.predict_proba(X[1300:])
    )
    assert set(calibrated.predict(X[1300:])) <= set(names)


def test_weights_and_objects_are_accepted(iris):
    X, y = iris
    clf = LogisticRegression(max_iter=300).fit(X[::2], y[::2])
    calibrator = MULTICLASS.create("temperature")
    calibrated = CalibratedClassifier(clf, calibrator).fit(X[1::2], y[1::2], np.full(75, 2.0))
    assert not hasattr(calibrator, "scale_")
    assert np.array_equal(calibrated.predict(X), clf.predict(X))


def test_a_frozen_classifier_stays_fitted_through_clone(iris):
    X, y = iris
    clf = FrozenEstimator(LogisticRegression(max_iter=300).fit(X, y))
    assert clone(CalibratedClassifier(clf)).fit(X, y).predict(X).shape == (150,)


def test_unknown_labels_and_methods_are_refused_in_a_sentence(iris):
    X, y = iris
    clf = LogisticRegression(max_iter=300).fit(X[y < 2], y[y < 2])
    with pytest.raises(ValueError, match="label 2, which the classifier has not been trained on"):
        CalibratedClassifier(clf).fit(X, y)
    with pytest.raises(TypeError, match="Expected a multiclass calibrator: one of"):
        CalibratedClassifier(clf, method=3).fit(X[y < 2], y[y < 2])
