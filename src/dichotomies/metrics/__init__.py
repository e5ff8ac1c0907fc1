"""Metrics of class probabilities: proper scores, calibration errors, decompositions, confidence intervals.

Every function takes true labels and class probabilities, like scikit-learn's metrics. Rows of class
probabilities are reduced block by block to a few numbers each (`RowFacts`); `evaluate` computes all metrics
of a fitted classifier in one pass.
"""

from dichotomies.metrics.binning import Bins
from dichotomies.metrics.bootstrap import Interval, confidence_interval
from dichotomies.metrics.calibration import (
    debiased_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
)
from dichotomies.metrics.decomposition import Decomposition, loss_decomposition, smooth_calibration_error
from dichotomies.metrics.evaluation import Evaluation, evaluate
from dichotomies.metrics.facts import RowFacts
from dichotomies.metrics.reliability import ReliabilityCurve, reliability_curve
from dichotomies.metrics.scores import accuracy, brier_score, negative_log_likelihood, top_k_accuracy

__all__ = [
    "Bins",
    "Decomposition",
    "Evaluation",
    "Interval",
    "ReliabilityCurve",
    "RowFacts",
    "accuracy",
    "brier_score",
    "confidence_interval",
    "debiased_calibration_error",
    "evaluate",
    "expected_calibration_error",
    "loss_decomposition",
    "maximum_calibration_error",
    "negative_log_likelihood",
    "reliability_curve",
    "smooth_calibration_error",
    "top_k_accuracy",
]


def __dir__() -> list[str]:
    return sorted(__all__)
