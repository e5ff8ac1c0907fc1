"""Laws of the confidence intervals."""

import numpy as np
import pytest
from scipy.stats import bootstrap, norm
from sklearn.metrics import log_loss

from dichotomies.metrics import (
    accuracy,
    brier_score,
    confidence_interval,
    expected_calibration_error,
    loss_decomposition,
    negative_log_likelihood,
)
from tests.metrics.conftest import sampled


def test_the_interval_of_a_mean_is_the_normal_one(predictions):
    y, proba = predictions
    estimate, lower, upper = confidence_interval(accuracy, y, proba, labels=range(proba.shape[1]))
    half = norm.ppf(0.975) * np.sqrt(estimate * (1 - estimate) / len(y))
    assert (lower, upper) == pytest.approx((estimate - half, estimate + half), abs=0.2 * half)


def test_the_interval_agrees_with_scipys(random_predictions):
    y, proba = random_predictions
    losses = -np.log(np.maximum(proba[np.arange(len(y)), y], 1e-15))
    expected = bootstrap((losses,), np.mean, method="percentile", rng=0, n_resamples=2000)
    _, lower, upper = confidence_interval(negative_log_likelihood, y, proba, clip=1e-15, n_resamples=2000)
    assert lower == pytest.approx(expected.confidence_interval.low, rel=0.02)
    assert upper == pytest.approx(expected.confidence_interval.high, rel=0.02)


def test_weights_by_draws_are_rows_drawn(random_predictions):
    # the very rows that the seed draws, taken out by hand
    y, proba = random_predictions
    rng = np.random.default_rng(7)
    drawn = [rng.integers(len(y), size=len(y)) for _ in range(20)]
    for metric in (brier_score, expected_calibration_error):
        values = [metric(y[rows], proba[rows], labels=range(6)) for rows in drawn]
        expected = np.quantile(values, [0.05, 0.95], method="inverted_cdf")
        given = {"n_resamples": 20, "confidence_level": 0.9, "random_state": 7, "labels": range(6)}
        interval = confidence_interval(metric, y, proba, **given)
        assert interval[1:] == pytest.approx(expected)


def test_the_same_seed_gives_the_same_interval(random_predictions):
    y, proba = random_predictions
    first, again, other = (
        confidence_interval(brier_score, y, proba, n_resamples=50, random_state=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_intervals_cover_the_truth_about_as_often_as_they_say(rng):
    covered = 0
    for seed in range(100):
        proba = rng.dirichlet(np.ones(3), size=150)
        expected = (1 - (proba**2).sum(axis=1)).mean()  # the mean Brier score of calibrated predictions
        y = sampled(proba, rng)
        given = {"labels": range(3), "n_resamples": 100, "confidence_level": 0.8, "random_state": seed}
        _, lower, upper = confidence_interval(brier_score, y, proba, **given)
        covered += lower <= expected <= upper
    assert 65 <= covered <= 95


def test_groups_that_repeat_rows_widen_the_interval_as_they_should(random_predictions):
    # every row four times: as much is known as from the rows once, not from four times as many
    y, proba = random_predictions
    rows = np.repeat(np.arange(len(y)), 4)
    once, naive, grouped = (
        confidence_interval(brier_score, y[r], proba[r], groups=groups, n_resamples=400)
        for r, groups in ((np.arange(len(y)), None), (rows, None), (rows, rows))
    )
    assert grouped == pytest.approx(once)
    assert naive.upper - naive.lower == pytest.approx((once.upper - once.lower) / 2, rel=0.2)


def test_rows_of_weight_zero_are_not_drawn(random_predictions):
    y, proba = random_predictions
    weight = np.r_[np.ones(100), np.zeros(len(y) - 100)]
    whole = confidence_interval(brier_score, y, proba, sample_weight=weight, n_resamples=50)
    assert whole == pytest.approx(confidence_interval(brier_score, y[:100], proba[:100], n_resamples=50))


def test_the_middle_of_the_centred_interval_is_the_estimate(random_predictions):
    y, proba = random_predictions
    low_level = {"n_resamples": 200, "confidence_level": 1e-6}
    interval = confidence_interval(expected_calibration_error, y, proba, method="centred", **low_level)
    assert interval.lower == pytest.approx(interval.estimate, abs=1e-3)
    percentile, basic = (
        confidence_interval(expected_calibration_error, y, proba, n_resamples=200, method=method)
        for method in ("percentile", "basic")
    )
    assert basic.lower == pytest.approx(2 * basic.estimate - percentile.upper)
    assert basic.upper == pytest.approx(2 * basic.estimate - percentile.lower)


def test_metrics_may_be_scikit_learns_or_give_several_numbers(random_predictions):
    y, proba = random_predictions
    proba = (proba + 1e-6) / (1 + 6e-6)
    ours = confidence_interval(negative_log_likelihood, y, proba, n_resamples=30)
    assert ours == pytest.approx(confidence_interval(log_loss, y, proba, n_resamples=30))
    parts = confidence_interval(loss_decomposition, y, proba, n_resamples=30, loss="brier")
    assert parts.estimate.shape == parts.lower.shape == parts.upper.shape == (3,)
    assert (parts.lower <= parts.upper).all()


@pytest.mark.parametrize("method", ["percentile", "centred", "basic"])
def test_infinite_losses_have_no_missing_bounds_unless_mirrored(method):
    y, proba = np.array([0, 1, 0]), np.array([[0.0, 1.0], [0.5, 0.5], [0.9, 0.1]])
    given = {"labels": [0, 1], "method": method, "n_resamples": 100}
    _, lower, upper = confidence_interval(negative_log_likelihood, y, proba, **given)
    if method != "basic":
        assert np.isfinite(lower)
        assert upper == np.inf


def test_bad_settings_are_named(random_predictions):
    y, proba = random_predictions
    for wrong, message in [
        ({"n_resamples": 0}, "n_resamples must be at least 1, got 0"),
        ({"confidence_level": 95}, "confidence_level must lie between 0 and 1, got 95"),
        ({"method": "bca", "n_resamples": 2}, "one of 'percentile', 'centred', 'basic', got 'bca'"),
        ({"groups": [1, 2]}, r"groups must have one value for each of the 600 rows, got \(2,\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            confidence_interval(accuracy, y, proba, **wrong)
