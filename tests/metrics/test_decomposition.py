"""Laws of the decomposition into calibration and refinement."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

from dichotomies.metrics import brier_score, loss_decomposition, negative_log_likelihood

LOSSES = {"nll": log_loss, "brier": brier_score_loss}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["top-label", "top-k", "class-wise"])
@pytest.mark.parametrize("method", ["isotonic", "binned"])
def test_the_parts_sum_to_the_total(predictions, weights, loss, kind, method):
    y, proba = predictions
    total, calibration, refinement = loss_decomposition(
        y,
        proba,
        labels=range(proba.shape[1]),
        sample_weight=weights,
        loss=loss,
        kind=kind,
        k=3,
        method=method,
    )
    assert calibration + refinement == pytest.approx(total, rel=1e-14)
    assert refinement >= 0
    assert calibration >= -1e-12 or method == "binned"


@pytest.mark.parametrize("loss", LOSSES)
def test_refinement_is_the_loss_after_isotonic_regression(predictions, weights, loss):
    y, proba = predictions
    right, confidence = proba.argmax(axis=1) == y, proba.max(axis=1)
    for weight in (np.ones(len(y)), weights):
        seen = weight > 0
        curve = IsotonicRegression(y_min=0, y_max=1)
        recalibrated = curve.fit_transform(confidence[seen], right[seen], sample_weight=weight[seen])
        total, _, refinement = loss_decomposition(right, confidence, sample_weight=weight, loss=loss)
        given = {"sample_weight": weight[seen], "labels": [False, True]}
        assert total == pytest.approx(LOSSES[loss](right[seen], confidence[seen], **given))
        assert refinement == pytest.approx(LOSSES[loss](right[seen], recalibrated, **given), rel=1e-9)


def test_scores_of_few_values_give_murphys_decomposition(rng):
    score = rng.choice([0.1, 0.3, 0.6, 0.9], size=400)
    happened = rng.random(400) < score**2
    calibration = refinement = 0.0
    for value in np.unique(score):
        there = score == value
        share = happened[there].mean()
        calibration += there.mean() * (value - share) ** 2
        refinement += there.mean() * share * (1 - share)
    for method in ({"method": "isotonic"}, {"method": "binned", "strategy": "uniform"}):
        parts = loss_decomposition(happened, score, loss="brier", **method)
        assert parts.calibration == pytest.approx(calibration)
        assert parts.refinement == pytest.approx(refinement)


def test_class_wise_brier_totals_are_the_brier_score(predictions):
    y, proba = predictions
    labels = range(proba.shape[1])
    parts = loss_decomposition(y, proba, labels=labels, loss="brier", kind="class-wise")
    assert parts.total == pytest.approx(brier_score(y, proba, labels=labels))


def test_refinement_does_not_change_under_recalibration(predictions):
    y, proba = predictions
    right, confidence = proba.argmax(axis=1) == y, proba.max(axis=1)
    for loss in LOSSES:
        before = loss_decomposition(right, confidence, loss=loss)
        after = loss_decomposition(right, confidence**3, loss=loss)
        assert after.refinement == pytest.approx(before.refinement)
        assert after.calibration != pytest.approx(before.calibration)


@pytest.mark.parametrize(("loss", "metric"), [("nll", negative_log_likelihood), ("brier", brier_score)])
def test_a_recalibration_of_ones_own_takes_the_multiclass_loss_apart(random_predictions, loss, metric):
    y, proba = random_predictions
    tempered = np.sqrt(proba) / np.sqrt(proba).sum(axis=1, keepdims=True)
    total, calibration, refinement = loss_decomposition(y, proba, loss=loss, recalibrated=tempered)
    assert total == pytest.approx(metric(y, proba))
    assert refinement == pytest.approx(metric(y, tempered))
    assert calibration == pytest.approx(total - refinement)
    assert calibration > 0  # the labels come from tempered probabilities


def test_an_impossible_event_that_happened_is_all_miscalibration():
    total, calibration, refinement = loss_decomposition([1, 0, 1], [0.0, 0.5, 1.0])
    assert total == calibration == np.inf
    assert np.isfinite(refinement)


def test_unknown_losses_and_methods_are_named():
    with pytest.raises(ValueError, match="loss must be one of 'nll', 'brier', got 'hinge'"):
        loss_decomposition([0, 1], [0.2, 0.7], loss="hinge")
    with pytest.raises(ValueError, match="method must be one of 'isotonic', 'binned', got 'kernel'"):
        loss_decomposition([0, 1], [0.2, 0.7], method="kernel")
