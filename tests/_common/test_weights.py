"""Weights are one finite number per row, or refused in a sentence."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import _NotAnArray

from dichotomies import NestedDichotomyClassifier, TunedLogisticRegression
from dichotomies._common.validation import row_weights
from dichotomies.calibrators.multiclass import MULTICLASS


@pytest.mark.parametrize(
    "given",
    [
        [1, 0, 2],
        np.array([1.0, 9.0, 0.0, 9.0, 2.0])[::2],
        pd.Series([1, 0, 2], index=[7, 8, 9]),
        _NotAnArray([1.0, 0.0, 2.0]),
    ],
)
def test_weights_of_any_container_are_doubles(given):
    weight = row_weights(given, 3)
    assert weight.dtype == np.float64
    assert weight.flags.c_contiguous
    assert weight.tolist() == [1.0, 0.0, 2.0]


def test_none_and_numbers_are_the_same_weight_for_all_rows():
    assert row_weights(None, 3).tolist() == [1.0, 1.0, 1.0]
    assert row_weights(0.5, 3).tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0, 2.0], r"one value for each of the 3 rows, got shape \(2,\)"),
        ([[1.0], [2.0], [3.0]], r"got shape \(3, 1\)"),
        ([1.0, -2.0, 1.0], r"finite and not negative, but sample_weight\[1\] is -2"),
        ([1.0, 1.0, np.nan], r"sample_weight\[2\] is nan"),
        ([np.inf, 1.0, 1.0], r"sample_weight\[0\] is inf"),
        ([0.0, 0.0, 0.0], "must not be zero for all rows"),
        (0, "must not be zero for all rows"),
    ],
)
def test_other_weights_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        row_weights(given, 3)


def test_no_rows_have_no_weights():
    with pytest.raises(ValueError, match="There are no rows"):
        row_weights(None, 0)


def test_weights_whose_sums_would_overflow_keep_their_ratios():
    weight = row_weights([1e308, 5e307, 0.0], 3)
    assert weight[1] / weight[0] == pytest.approx(0.5)
    assert np.isfinite((1e99**2 * weight).sum())


@pytest.mark.parametrize(
    "estimator", [GaussianNB(), LogisticRegression(), TunedLogisticRegression(Cs=[0.1, 10.0])]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("largest", [1e199, 1e307])
@pytest.mark.parametrize("scale", [1.0, 1e90])
def test_huge_weights_give_finite_probabilities(estimator, largest, scale, iris):
    X, y = iris
    weight = largest * np.random.default_rng(0).random(len(y))
    clf = NestedDichotomyClassifier(estimator, internal_calibration="platt", random_state=0)
    with np.errstate(all="ignore"):
        proba = clf.fit(scale * X, y, sample_weight=weight).predict_proba(scale * X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize("name", MULTICLASS.names())
def test_weights_that_vanish_beside_others_leave_calibrators_finite(name):
    log_proba = np.log([[0.42, 0.58], [0.5, 0.5]])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        calibrator = MULTICLASS.create(name).fit(log_proba, [0, 1], sample_weight=[5e-324, 0.37])
    assert np.isfinite(calibrator.predict_proba(log_proba)).all()
