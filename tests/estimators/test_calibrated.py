"""The wrapper calibrates a fitted classifier without touching it, and any other by cross-fitting."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

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


@pytest.mark.parametrize("weighted", [False, True])
def test_a_classifier_that_is_not_fitted_is_calibrated_out_of_fold(weighted, digits):
    X, y = digits[0][:600], digits[1][:600]
    weight = np.linspace(0.5, 2, 600) if weighted else None
    cv = StratifiedKFold(3)
    found = CalibratedClassifier(GaussianNB(), cv=cv).fit(X, y, weight)
    out_of_fold = np.empty((600, 10))
    for train, test in cv.split(X, y):
        part = GaussianNB().fit(X[train], y[train], None if weight is None else weight[train])
        out_of_fold[test] = part.predict_log_proba(X[test])
    whole = GaussianNB().fit(X, y, weight)
    calibrator = MULTICLASS.create("vector").fit(out_of_fold, y, weight, classes=np.arange(10))
    expected = calibrator.predict_log_proba(whole.predict_log_proba(digits[0][600:]))
    np.testing.assert_allclose(found.predict_log_proba(digits[0][600:]), expected, rtol=1e-9)
    assert not hasattr(found.estimator, "classes_")


def test_classes_of_a_single_row_are_trained_on_and_not_calibrated(iris):
    X, y = iris
    rows = np.r_[0:50, 50:100, 149]
    clf = CalibratedClassifier(GaussianNB(var_smoothing=0.1)).fit(X[rows], y[rows])
    proba = clf.predict_proba(X)
    assert clf.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.isfinite(proba).all()


def test_what_cannot_be_cross_fitted_is_refused(iris):
    X, y = iris
    with pytest.raises(ValueError, match="at least two classes"):
        CalibratedClassifier(GaussianNB()).fit(X, np.zeros(150))
    with pytest.raises(TypeError, match="KNeighborsClassifier cannot be fitted with it"):
        CalibratedClassifier(KNeighborsClassifier()).fit(X, y, np.ones(150))


@pytest.mark.slow
def test_scikit_learn_accepts_it():
    check_estimator(CalibratedClassifier(LogisticRegression(), cv=3), on_skip=None)


def test_labels_are_checked_as_by_the_trees():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="y has no label in row 0"):
        CalibratedClassifier(GaussianNB()).fit(X, np.array([None, *y[1:].astype(str)], dtype=object))
    assert CalibratedClassifier(GaussianNB()).fit(X, y).n_features_in_ == 4


def test_rows_whose_class_no_other_fold_has_are_left_out():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="no class is in two folds"):
        CalibratedClassifier(GaussianNB(), cv=KFold(3)).fit(X, y)
    folds = PredefinedSplit(np.arange(101) % 3)  # the only row of a class is in one of them
    assert CalibratedClassifier(GaussianNB(), cv=folds).fit(X[:101], y[:101]).score(X[:100], y[:100]) == 1
