"""Laws of the metrics."""

import numpy as np
import pytest

from dichotomies.metrics import expected_calibration_error


def test_ece_is_the_written_formula(rng):
    proba = rng.dirichlet(np.ones(4), size=500)
    y = rng.integers(4, size=500)
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    expected = 0.0
    for lower in np.arange(10) / 10:
        inside = (confidence >= lower) & (confidence < lower + 0.1)
        if inside.any():
            expected += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    assert expected_calibration_error(y, proba, n_bins=10) == pytest.approx(expected)


def test_certain_and_right_is_perfect_and_certain_and_wrong_is_one():
    assert expected_calibration_error([0, 1], np.eye(2)) == 0
    assert expected_calibration_error([0, 1], np.eye(2)[::-1]) == 1


def test_labels_and_missing_classes():
    proba = [[0.6, 0.4, 0.0], [0.3, 0.7, 0.0]]
    assert expected_calibration_error(["a", "b"], proba, classes=["a", "b", "c"]) == pytest.approx(0.35)
    with pytest.raises(ValueError, match="one column for each of the 2 classes"):
        expected_calibration_error(["a", "b"], proba)
