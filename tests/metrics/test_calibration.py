"""Laws of the binned calibration errors."""

import numpy as np
import pytest
from scipy.stats import foldnorm
from sklearn.calibration import calibration_curve

from dichotomies.metrics import (
    debiased_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    smooth_calibration_error,
)
from dichotomies.metrics.binning import binned
from dichotomies.metrics.calibration import (
    debiased_expected_error,
    debiased_squared_error,
    expected_error,
)
from dichotomies.metrics.facts import ScoredEvents

ERRORS = [
    expected_calibration_error,
    maximum_calibration_error,
    debiased_calibration_error,
    smooth_calibration_error,
]
BINNED = ERRORS[:3]
KINDS = ["top-label", "top-k", "class-wise"]


def top_label(y, proba):
    return proba.argmax(axis=1) == y, proba.max(axis=1)


@pytest.fixture(scope="module")
def kumar():
    """The package of Kumar, Liang & Ma."""
    return pytest.importorskip("calibration.utils", reason="needs uncertainty-calibration")


def reference(kumar, y, proba, n_bins, strategy, **options):
    schemes = {"uniform": kumar.get_equal_prob_bins, "quantile": kumar.get_equal_bins}
    return kumar.lower_bound_scaling_ce(
        proba, y, num_bins=n_bins, binning_scheme=schemes[strategy], **options
    )


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize(("kind", "mode"), [("top-label", "top-label"), ("class-wise", "marginal")])
def test_errors_equal_the_reference_package(kumar, predictions, strategy, kind, mode):
    y, proba = predictions
    given = {"labels": range(proba.shape[1]), "kind": kind, "n_bins": 10, "strategy": strategy}
    plain = reference(kumar, y, proba, 10, strategy, p=1, debias=False, mode=mode)
    assert expected_calibration_error(y, proba, **given) == pytest.approx(plain, abs=1e-12)
    debiased = reference(kumar, y, proba, 10, strategy, p=2, debias=True, mode=mode)
    assert debiased_calibration_error(y, proba, **given, norm="l2") == pytest.approx(debiased, abs=1e-9)


def test_debiased_ece_is_what_the_reference_package_samples(kumar, predictions):
    y, proba = predictions
    np.random.seed(0)  # noqa: NPY002 (the package draws from there)
    drawn = [reference(kumar, y, proba, 10, "quantile", p=1, debias=True, mode="top-label") for _ in range(5)]
    ours = debiased_calibration_error(y, proba, labels=range(proba.shape[1]), n_bins=10, strategy="quantile")
    assert ours == pytest.approx(np.mean(drawn), abs=5e-4)


def test_debiased_ece_is_the_written_formula(random_predictions):
    y, proba = random_predictions
    right, confidence = top_label(y, proba)
    expected = 0.0
    for lower in np.arange(10) / 10:
        inside = (confidence > lower) & (confidence <= lower + 0.1)
        if inside.any():
            share = right[inside].mean()
            gap, spread = share - confidence[inside].mean(), np.sqrt(share * (1 - share) / inside.sum())
            redrawn = foldnorm.mean(abs(gap) / spread, scale=spread) if spread else abs(gap)
            expected += inside.mean() * (2 * abs(gap) - redrawn)
    assert debiased_calibration_error(y, proba, n_bins=10) == pytest.approx(expected)


def test_debiasing_takes_noise_off_calibrated_predictions(rng):
    plain, debiased, squares, debiased_squares = [], [], [], []
    for _ in range(100):
        score = rng.random(300)
        bins = binned(ScoredEvents(score, rng.random(300) < score, np.ones(300)), 10, "quantile")
        plain.append(expected_error(bins))
        debiased.append(debiased_expected_error(bins))
        squares.append((bins.share * bins.gap**2).sum())
        debiased_squares.append(debiased_squared_error(bins))
    # of |N(0, 1)|, with mean sqrt(2 / pi), the correction leaves (2 - sqrt(2)) sqrt(2 / pi)
    assert np.mean(debiased) / np.mean(plain) == pytest.approx(2 - np.sqrt(2), abs=0.1)
    standard_error = np.std(debiased_squares) / np.sqrt(100)
    assert abs(np.mean(debiased_squares)) < 3 * standard_error < np.mean(squares) / 2


@pytest.mark.parametrize("n_bins", [5, 20])
def test_expected_error_is_that_of_scikit_learns_curve(predictions, n_bins):
    right, confidence = top_label(*predictions)
    share, mean = calibration_curve(right, confidence, n_bins=n_bins)
    edges = np.linspace(0, 1, n_bins + 1)
    counts = np.bincount(np.searchsorted(edges[1:-1], confidence), minlength=n_bins)
    gaps = np.abs(share - mean)
    y, proba = predictions
    given = {"labels": range(proba.shape[1]), "n_bins": n_bins}
    expected = np.average(gaps, weights=counts[counts > 0])
    assert expected_calibration_error(y, proba, **given) == pytest.approx(expected)
    assert maximum_calibration_error(y, proba, **given) == pytest.approx(gaps.max())


def test_errors_at_top_k_are_those_of_the_sum(predictions):
    y, proba = predictions
    order = np.argsort(-proba, axis=1)[:, :3]
    score = np.minimum(np.take_along_axis(proba, order, axis=1).sum(axis=1), 1)
    happened = (order == y[:, None]).any(axis=1)
    for error in ERRORS:
        at_three = error(y, proba, labels=range(proba.shape[1]), kind="top-k", k=3)
        assert at_three == pytest.approx(error(happened, score), abs=1e-9)


def test_top_label_is_the_binary_score_of_being_right(predictions):
    y, proba = predictions
    right, confidence = top_label(y, proba)
    for error in ERRORS:
        assert error(y, proba, labels=range(proba.shape[1])) == pytest.approx(error(right, confidence))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_class_wise_error_is_the_mean_over_classes(random_predictions, strategy):
    y, proba = random_predictions
    for n_bins in (1, 2, 20):
        given = {"strategy": strategy, "n_bins": n_bins}
        each = [expected_calibration_error(y == c, proba[:, c], **given) for c in range(6)]
        error = expected_calibration_error(y, proba, kind="class-wise", **given)
        assert error == pytest.approx(np.mean(each))


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_counts(predictions, weights, repeated, error, kind):
    (y, proba), (y_repeated, proba_repeated) = predictions, repeated
    given = {"labels": range(proba.shape[1]), "kind": kind}
    weighted = error(y, proba, sample_weight=weights, **given)
    assert weighted == pytest.approx(error(y_repeated, proba_repeated, **given), abs=1e-9)


@pytest.mark.parametrize("error", BINNED)
def test_weights_are_counts_in_bins_of_equal_mass(predictions, weights, repeated, error):
    (y, proba), (y_repeated, proba_repeated) = predictions, repeated
    given = {"labels": range(proba.shape[1]), "strategy": "quantile"}
    weighted = error(y, proba, sample_weight=weights, **given)
    assert weighted == pytest.approx(error(y_repeated, proba_repeated, **given), abs=1e-9)


def test_bins_of_equal_mass_have_equal_mass(rng):
    score = rng.random(1000) ** 3
    bins = binned(ScoredEvents(score, score > 0.5, np.ones(1000)), 20, "quantile")
    assert bins.weight.tolist() == [50] * 20
    tied = ScoredEvents(np.repeat([0.2, 0.7], 10), np.arange(20) < 7, np.ones(20))
    assert sorted(binned(tied, 5, "quantile").weight.tolist()) == [0, 0, 0, 10, 10]


def test_certain_and_right_is_perfect_and_certain_and_wrong_is_one():
    for error in ERRORS:
        assert error([0, 1], np.eye(2)) == pytest.approx(0, abs=1e-12)
        assert error([0, 1], np.eye(2)[::-1]) == pytest.approx(1)


def test_scores_on_an_edge_belong_to_the_bin_below():
    # 0.5 with 0.4, not with 0.6: the bins hold (0.4, 0.5) and (0.6)
    error = expected_calibration_error([0, 1, 1], [0.4, 0.5, 0.6], n_bins=2)
    assert error == pytest.approx(abs(1 - 0.9) / 3 + 0.4 / 3)
