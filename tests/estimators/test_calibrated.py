"""The wrapper calibrates a fitted classifier without touching it, and any other by cross-fitting."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from dichotomies import ClassTree, load
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.diagnostics import ledger
from dichotomies.estimators.calibrated import CalibratedClassifier
from dichotomies.structures import STRUCTURES


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
    with pytest.raises(ValueError, match=r"tree must be a ClassTree.*got '2-means'"):
        CalibratedClassifier(clf, tree="2-means").fit(X[y < 2], y[y < 2])


@pytest.mark.parametrize("weighted", [False, True])
def test_a_classifier_that_is_not_fitted_is_calibrated_out_of_fold(weighted, digits):
    X, y = digits[0][:600], digits[1][:600]
    weight = np.linspace(0.5, 2, 600) if weighted else None
    cv = StratifiedKFold(3)
    found = CalibratedClassifier(GaussianNB(), "vector", cv=cv).fit(X, y, weight)
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


FAMILIES = [[["a0", "a1"], "a2"], ["b0", ["b1", "b2"]]]


@pytest.fixture(scope="module")
def flat():
    """A flat model of six classes in two families, rows that it has not seen, and their labels."""
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [8.0, 0.0]], 3, axis=0) + rng.normal(size=(6, 2))
    codes = rng.integers(0, 6, 1800)
    X, y = centres[codes] + rng.normal(size=(1800, 2)), np.array(["a0", "a1", "a2", "b0", "b1", "b2"])[codes]
    return GaussianNB().fit(X[:600], y[:600]), X[600:], y[600:]


@pytest.mark.parametrize("method", ["auto", "temperature", "nested", "vector-nested"])
def test_a_flat_model_answers_as_a_tree(method, flat):
    model, X, y = flat
    clf = CalibratedClassifier(model, method, tree=FAMILIES).fit(X[:600], y[:600])
    assert clf.tree_ == ClassTree.from_nested(FAMILIES)
    new, proba = X[600:], clf.predict_proba(X[600:])
    np.testing.assert_allclose(np.exp(clf.model_.log_proba(clf.validated_rows(new))), proba, atol=1e-12)
    labels, top = clf.predict_top_k(new, 2)
    assert (labels[:, 0] == clf.predict(new)).all()
    np.testing.assert_allclose(top[:, 0], proba.max(axis=1))
    family = clf.predict_at_depth(new, 1)
    np.testing.assert_allclose(family.proba, np.maximum(proba[:, :3].sum(axis=1), proba[:, 3:].sum(axis=1)))
    sure = clf.predict_node(new, 0.9)
    assert ((sure.proba >= 0.9) | (sure.size == 6)).all()
    sets = clf.calibrate_sets(X[:600], y[:600]).predict_set(new, 0.9)
    assert np.mean([label in labels for label, labels in zip(y[600:], sets, strict=True)]) > 0.85


def test_the_tree_of_a_hierarchy_is_read_from_the_labels(flat):
    _, X, y = flat
    paths = np.char.add(np.char.add(y.astype("U1"), "/"), y)
    named = GaussianNB().fit(X[:600], paths[:600])
    structure = STRUCTURES.create("hierarchy", delimiter="/")
    tree = CalibratedClassifier(named, tree=structure).fit(X[600:], paths[600:]).tree_
    assert {frozenset(tree.leaf_labels[a:b]) for a, b in zip(tree.start, tree.stop, strict=True)} >= {
        frozenset(f"{family}/{family}{i}" for i in range(3)) for family in "ab"
    }


def test_a_calibrated_classifier_is_diagnosed_reported_and_saved(flat, tmp_path):
    model, X, y = flat
    clf = CalibratedClassifier(model).fit(X[:600], y[:600]).calibrate_sets(X[:600], y[:600])
    book = ledger(clf, X[600:], y[600:])
    np.testing.assert_allclose(book.final_nll, log_loss(y[600:], clf.predict_proba(X[600:])))
    clf.report(X[600:], y[600:]).save(tmp_path / "report.html")
    assert "GaussianNB" in (tmp_path / "report.html").read_text()
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert loaded.tree_ == clf.tree_
    assert loaded.predict_set(X[:5], 0.9)[0].tolist() == clf.predict_set(X[:5], 0.9)[0].tolist()
    assert loaded.calibration_ == clf.calibration_


def test_a_file_of_an_earlier_version_has_probabilities_alone(flat):
    model, X, y = flat
    clf = CalibratedClassifier(model).fit(X[:600], y[:600])
    del clf.model_
    assert clf.predict_proba(X).shape == (1200, 6)
    with pytest.raises(NotFittedError, match="saved by an earlier version"):
        clf.predict_node(X, 0.9)
