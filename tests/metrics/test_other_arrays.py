"""Metrics of arrays of other libraries equal those of numpy's."""

import numpy as np
import pytest

from dichotomies import metrics
from tests.other_arrays import asarray

__all__ = ["asarray"]


@pytest.fixture
def rows(rng):
    proba = rng.dirichlet(np.full(6, 0.3), size=300)
    proba[:3] = np.eye(6)[:3]  # certain, and tied
    proba[3] = 1 / 6
    return rng.integers(6, size=300), proba


@pytest.mark.parametrize("is_log", [False, True])
def test_facts_of_rows_equal_those_of_numpy(rows, asarray, is_log):
    y, proba = rows
    with np.errstate(divide="ignore"):
        given = np.log(proba) if is_log else proba
    expected = metrics.RowFacts.from_predictions(y, given, labels=range(6), is_log=is_log, top_k=(1, 3))
    found = metrics.RowFacts.from_predictions(
        asarray(y), asarray(given), labels=range(6), is_log=is_log, top_k=(1, 3)
    )
    for name in ("predicted", "rank"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("log_proba", "brier", "confidence", "log_complement", "top_k_confidence"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-12)


def test_scores_equal_those_of_numpy(rows, asarray):
    y, proba = rows
    weight = np.linspace(0.5, 1.5, len(y))
    for score, options in [
        (metrics.brier_score, {}),
        (metrics.smooth_calibration_error, {}),
        (metrics.expected_calibration_error, {}),
        (metrics.expected_calibration_error, {"kind": "class-wise"}),
    ]:
        expected = score(y, proba, labels=range(6), sample_weight=weight, **options)
        found = score(asarray(y), asarray(proba), labels=range(6), sample_weight=asarray(weight), **options)
        assert found == pytest.approx(expected, rel=1e-9)


def test_rows_that_do_not_sum_to_one_are_refused(asarray):
    with pytest.raises(ValueError, match="row 1 sums to"):
        metrics.brier_score([0, 1], asarray(np.array([[0.5, 0.5], [0.5, 0.4]])))
