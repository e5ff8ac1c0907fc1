"""Calibration class by class: mean confidence and precision of the predictions of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, LabelArray, Matrix
from dichotomies.diagnostics.diagnostic_table import DiagnosticTable
from dichotomies.diagnostics.reliability import Reliability, evaluated
from dichotomies.metrics import Evaluation
from dichotomies.metrics.binning import bin_sums, sums_by_index
from dichotomies.metrics.calibration import expected_error
from dichotomies.metrics.reliability import wilson_interval


@dataclass(frozen=True)
class ClassCalibration:
    """Calibration of each class's probabilities; made by `class_calibration`.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The labels.
    rows : ndarray of shape (n_classes,)
        The weight of the rows of each class.
    expected_rows : ndarray of shape (n_classes,)
        The sum of the class's probabilities over all rows; equals `rows` in expectation if calibrated.
    answered : ndarray of shape (n_classes,)
        The weight of the rows predicted to be of the class.
    confidence, precision : ndarray of shape (n_classes,)
        Mean probability and precision of these predictions; NaN if there are none.
    precision_lower, precision_upper : ndarray of shape (n_classes,)
        Wilson's interval of `precision`.
    ece : ndarray of shape (n_classes,)
        Class-wise ECE: that of the probability of this class over all rows.
    level : float
        Confidence level of the interval.
    """

    classes: LabelArray
    rows: FloatArray
    expected_rows: FloatArray
    answered: FloatArray
    confidence: FloatArray
    precision: FloatArray
    precision_lower: FloatArray
    precision_upper: FloatArray
    ece: FloatArray
    level: float

    @property
    def excess(self) -> FloatArray:
        """Distance of `confidence` from the interval of `precision`; 0 within it or without predictions.

        The worst classes are ranked by this rather than by the gap, which may be large by chance if rows are
        few.
        """
        below, above = self.precision_lower - self.confidence, self.confidence - self.precision_upper
        return np.nan_to_num(np.maximum(np.maximum(below, above), 0.0))

    def worst(self, top: int = 20) -> DiagnosticTable:
        """The `top` classes with the largest `excess`, then those with the widest gap."""
        gap = np.nan_to_num(np.abs(self.confidence - self.precision))
        order = np.lexsort((-gap, -self.excess))[:top]
        return DiagnosticTable({name: column[order] for name, column in self.to_table().columns.items()})

    def to_table(self) -> DiagnosticTable:
        """Return a table with one row per class."""
        names = ("rows", "expected_rows", "answered", "confidence", "precision")
        columns = {"class": self.classes, **{name: getattr(self, name) for name in names}}
        bounds = {"precision_lower": self.precision_lower, "precision_upper": self.precision_upper}
        return DiagnosticTable({**columns, **bounds, "ece": self.ece, "excess": self.excess})


def class_calibration(
    clf: Any,
    X: Matrix,
    y: npt.ArrayLike,
    *,
    n_bins: int = 20,
    level: float = 0.95,
    sample_weight: npt.ArrayLike | None = None,
) -> ClassCalibration:
    """Measure the calibration of each class's probabilities, for any fitted classifier.

    Parameters
    ----------
    clf : fitted classifier
        Anything with `predict_proba` and `classes_`.
    X : array, CSR matrix or data frame of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        Labels, all of them known to the classifier.
    n_bins : int
        Number of bins of the class-wise ECE.
    level : float
        Confidence level of the intervals.
    sample_weight : array of shape (n_rows,), optional
        Weight of each row.

    Returns
    -------
    ClassCalibration

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from dichotomies.diagnostics import class_calibration
    >>> X, y = load_iris(return_X_y=True)
    >>> class_calibration(GaussianNB().fit(X, y), X, y).precision.round(2)
    array([1.  , 0.94, 0.94])
    """
    return of_evaluation(evaluated(clf, X, y, n_bins, sample_weight), level)


def of_evaluation(evaluation: Evaluation, level: float = 0.95) -> ClassCalibration:
    """Measure the calibration of each class on evaluated rows."""
    facts, bins, k = evaluation.facts, evaluation.class_bins, len(evaluation.labels)
    predicted = bin_sums(facts.predicted, facts.confidence, facts.rank == 0, facts.weight, k)
    lower, upper = wilson_interval(predicted[2], predicted[0], level)
    answered = Reliability(*predicted)
    return ClassCalibration(
        classes=evaluation.labels,
        rows=sums_by_index(facts.codes, facts.weight, k),
        expected_rows=bins.score.sum(axis=0),
        answered=predicted[0],
        confidence=answered.mean_score,
        precision=answered.observed,
        precision_lower=lower,
        precision_upper=upper,
        ece=expected_error(bins),
        level=level,
    )
