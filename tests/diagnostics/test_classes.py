"""Calibration of the classes and reliability curves, against public functions."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from sklearn.calibration import calibration_curve
from sklearn.metrics import precision_score
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from dichotomies.diagnostics import Reliability, class_calibration
from dichotomies.diagnostics.reliability import evaluated, of_evaluation, reliability
from dichotomies.metrics import Evaluation, expected_calibration_error, reliability_curve


@pytest.fixture(scope="module")
def bayes(digits):
    X, y = digits
    return GaussianNB(var_smoothing=1e-2).fit(X[:900], y[:900]), X[900:], y[900:]


def test_each_class_is_what_public_functions_say(bayes):
    clf, X, y = bayes
    measured, proba = class_calibration(clf, X, y), clf.predict_proba(X)
    np.testing.assert_allclose(measured.precision, precision_score(y, clf.predict(X), average=None))
    np.testing.assert_array_equal(measured.rows, np.bincount(y))
    np.testing.assert_allclose(measured.expected_rows, proba.sum(axis=0))
    for c in range(10):
        ece = expected_calibration_error(y == c, proba[:, c])
        assert measured.ece[c] == pytest.approx(ece, abs=1e-12)
    assert (measured.precision_lower <= measured.precision).all()
    assert (measured.precision <= measured.precision_upper).all()


def test_the_worst_classes_lie_furthest_outside_their_interval(bayes):
    measured = class_calibration(*bayes)
    worst = measured.worst(4)
    assert len(worst) == 4
    assert worst["excess"][0] == measured.excess.max()
    assert (np.diff(worst["excess"]) <= 0).all()


def test_a_class_that_is_never_the_answer_has_no_precision():
    measured = of_evaluation(Evaluation.from_predictions(["a", "b"], [[0.9, 0.1], [0.8, 0.2]]))
    assert np.isnan(measured.precision[1])
    assert measured.excess[1] == 0
    assert measured.answered.tolist() == [2, 0]


def test_reliability_of_the_answer_is_that_of_the_metric(bayes):
    clf, X, y = bayes
    curve = reliability(evaluated(clf, X, y))
    other = reliability_curve(y, clf.predict_proba(X), labels=clf.classes_)
    np.testing.assert_allclose(curve.count, other.count)
    np.testing.assert_allclose(curve.mean_score, other.confidence)
    np.testing.assert_allclose(curve.observed, other.accuracy)
    np.testing.assert_allclose(curve.interval()[0], other.lower)
    np.testing.assert_allclose(curve.interval()[1], other.upper)
    assert curve.ece == pytest.approx(other.expected_calibration_error)


def test_reliability_of_one_class_is_scikit_learns_curve(bayes):
    clf, X, y = bayes
    curve = reliability(evaluated(clf, X, y, 10), 3)
    observed, score = calibration_curve(y == 3, clf.predict_proba(X)[:, 3], n_bins=10)
    filled = curve.count > 0
    np.testing.assert_allclose(curve.observed[filled], observed)
    np.testing.assert_allclose(curve.mean_score[filled], score)


def test_probabilities_of_exactly_0_and_1_have_a_bin():
    found = Evaluation.from_predictions([0, 1], [[1.0, 0.0], [1.0, 0.0]], n_bins=5)
    assert reliability(found, 1).count.tolist() == [2, 0, 0, 0, 0]
    curve = reliability(found)
    assert curve.count.tolist() == [0, 0, 0, 0, 2]
    assert curve.ece == 0.5


def test_sparse_rows_of_any_format(digits):
    X, y = digits
    clf = MultinomialNB().fit(X, y)
    dense, sparse = class_calibration(clf, X, y), class_calibration(clf, coo_array(X), y)
    np.testing.assert_allclose(dense.ece, sparse.ece)


def test_a_curve_is_a_table_with_a_line_for_each_bin():
    half = Reliability(np.array([1.0, 0.0]), np.array([0.2, 0.0]), np.array([1.0, 0.0]))
    assert half.to_table()["count"].tolist() == [1, 0]


def test_bad_input_is_answered_with_a_sentence(bayes):
    clf, X, y = bayes
    with pytest.raises(ValueError, match=r"3 rows, but y has 2 labels"):
        class_calibration(clf, X[:3], y[:2])
    with pytest.raises(ValueError, match="pass labels= where not every class occurs"):
        Evaluation.from_predictions([0, 1], np.ones((2, 3)) / 3)
    for wrong, sentence in [
        (np.full((2, 2), np.nan), "missing value"),
        (np.log(np.full((2, 2), 0.5)), "has a probability of -0.69"),
        (np.ones((2, 2)), "row 0 sums to 2"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            Evaluation.from_predictions([0, 1], wrong)
    with pytest.raises(ValueError, match="n_bins must be a whole number"):
        class_calibration(clf, X, y, n_bins=0)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        class_calibration(clf, X, y, level=1.5)
    with pytest.raises(ValueError, match="'x' is not one of the 10 classes"):
        reliability(evaluated(clf, X, y), "x")


def test_one_score_per_row_is_that_of_the_second_class(rng):
    score, y = rng.random(50), rng.random(50) < 0.5
    one = reliability(Evaluation.from_predictions(y, score), True)
    two = reliability(Evaluation.from_predictions(y, np.column_stack([1 - score, score])), True)
    np.testing.assert_array_equal(one.hit, two.hit)
    assert one.ece == pytest.approx(expected_calibration_error(y, score))
