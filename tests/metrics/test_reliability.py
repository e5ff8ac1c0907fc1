"""Laws of the reliability curve."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve

from dichotomies.metrics import expected_calibration_error, reliability_curve


@pytest.mark.parametrize("n_bins", [5, 20])
def test_the_curve_is_scikit_learns(predictions, n_bins):
    y, proba = predictions
    right, confidence = proba.argmax(axis=1) == y, proba.max(axis=1)
    share, mean = calibration_curve(right, confidence, n_bins=n_bins)
    curve = reliability_curve(y, proba, labels=range(proba.shape[1]), n_bins=n_bins)
    filled = curve.count > 0
    np.testing.assert_allclose(curve.accuracy[filled], share)
    np.testing.assert_allclose(curve.confidence[filled], mean)
    np.testing.assert_allclose(curve.edges, np.linspace(0, 1, n_bins + 1))
    assert curve.count.sum() == len(y)


@pytest.mark.parametrize(("interval", "name"), [("wilson", "wilson"), ("clopper-pearson", "exact")])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_equal_scipys(predictions, interval, name, level):
    y, proba = predictions
    curve = reliability_curve(
        y, proba, labels=range(proba.shape[1]), interval=interval, confidence_level=level
    )
    for i in np.flatnonzero(curve.count):
        count = int(curve.count[i])
        happened = round(curve.accuracy[i] * count)
        expected = binomtest(happened, count).proportion_ci(level, method=name)
        assert (curve.lower[i], curve.upper[i]) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("interval", ["wilson", "clopper-pearson"])
def test_no_and_every_event_have_intervals_that_end_at_0_and_1(interval):
    curve = reliability_curve([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], n_bins=2, interval=interval)
    assert curve.lower[0] == 0
    assert curve.upper[1] == 1
    assert 0 < curve.upper[0] < 1
    assert 0 < curve.lower[1] < 1


def test_empty_bins_have_no_numbers():
    curve = reliability_curve([1, 1], [0.9, 0.95], n_bins=4)
    assert curve.count.tolist() == [0, 0, 0, 2]
    for values in (curve.confidence, curve.accuracy, curve.lower, curve.upper):
        assert np.isnan(values).tolist() == [True, True, True, False]


def test_the_error_of_the_curve_is_the_metric(predictions, weights):
    y, proba = predictions
    for strategy in ("uniform", "quantile"):
        given = {"labels": range(proba.shape[1]), "sample_weight": weights, "strategy": strategy}
        expected = expected_calibration_error(y, proba, **given)
        assert reliability_curve(y, proba, **given).expected_calibration_error == pytest.approx(expected)


def test_class_wise_pools_all_probabilities(random_predictions):
    y, proba = random_predictions
    pooled = reliability_curve((y[:, None] == np.arange(6)).ravel(), proba.ravel())
    curve = reliability_curve(y, proba, kind="class-wise")
    for name in ("edges", "confidence", "accuracy", "count", "lower", "upper"):
        np.testing.assert_allclose(getattr(curve, name), getattr(pooled, name))
    with pytest.raises(ValueError, match="bins of equal width only"):
        reliability_curve(y, proba, kind="class-wise", strategy="quantile")
