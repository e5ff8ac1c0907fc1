"""Laws of the smooth calibration error."""

import warnings

import numpy as np
import pytest

from dichotomies.metrics import expected_calibration_error, smooth_calibration_error


@pytest.fixture(scope="module")
def relplot():
    """The package of Błasiok & Nakkiran."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("relplot", reason="needs relplot")


def test_it_equals_the_reference_package(relplot, predictions):
    y, proba = predictions
    right, confidence = proba.argmax(axis=1) == y, proba.max(axis=1)
    ours = smooth_calibration_error(y, proba, labels=range(proba.shape[1]))
    assert ours == pytest.approx(relplot.smECE(confidence, right.astype(float)), abs=1e-6)


@pytest.mark.parametrize("power", [0.25, 1, 4])
@pytest.mark.parametrize("bandwidth", [None, 0.3, 0.05, 0.004])
def test_it_equals_the_reference_package_on_binary_scores(relplot, rng, power, bandwidth):
    score = rng.random(700)
    happened = (rng.random(700) < score**power).astype(float)
    if bandwidth is None:
        reference = relplot.smECE(score, happened)
    else:
        reference = relplot.smECE_sigma(score, happened, bandwidth)
    assert smooth_calibration_error(happened, score, bandwidth=bandwidth) == pytest.approx(
        reference, abs=1e-6
    )


def test_a_constant_score_errs_by_its_distance(rng):
    happened = np.arange(100) < 30
    error = smooth_calibration_error(happened, np.full(100, 0.8))
    assert error == pytest.approx(0.5, abs=1e-6)
    assert error == pytest.approx(expected_calibration_error(happened, np.full(100, 0.8)))


def test_class_wise_is_the_mean_over_classes(random_predictions):
    y, proba = random_predictions
    each = [smooth_calibration_error(y == c, proba[:, c]) for c in range(6)]
    assert smooth_calibration_error(y, proba, kind="class-wise") == pytest.approx(np.mean(each))


def test_a_bandwidth_must_be_positive():
    with pytest.raises(ValueError, match="bandwidth must be positive, got 0"):
        smooth_calibration_error([0, 1], [0.2, 0.7], bandwidth=0)
