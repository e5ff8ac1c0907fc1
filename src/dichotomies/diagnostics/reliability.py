"""Reliability: observed frequency against predicted probability, of all rows and class by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _num_samples, check_is_fitted

from dichotomies._common.typing import FloatArray, LabelArray, Matrix
from dichotomies.diagnostics.evaluated_model import DiagnosticTable
from dichotomies.metrics import Evaluation, evaluate
from dichotomies.metrics.binning import bin_sums, binned, equal_width_edges, sums_by_index
from dichotomies.metrics.calibration import expected_error
from dichotomies.metrics.reliability import wilson_interval


@dataclass(frozen=True)
class Reliability:
    """Predictions in equal-width bins of probability; arrays of shape (..., n_bins).

    Attributes
    ----------
    count : ndarray
        The weight of the predictions in each bin.
    score : ndarray
        The sum of their probabilities.
    hit : ndarray
        The weight of the predictions that were right.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.diagnostics import Reliability
    >>> curve = Reliability(np.array([4.0, 6.0]), np.array([1.0, 4.5]), np.array([2.0, 6.0]))
    >>> curve.mean_score, curve.observed, round(float(curve.ece), 2)
    (array([0.25, 0.75]), array([0.5, 1. ]), 0.25)
    """

    count: FloatArray
    score: FloatArray
    hit: FloatArray

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return int(self.count.shape[-1])

    @property
    def edges(self) -> FloatArray:
        """Edges of the bins."""
        return equal_width_edges(self.n_bins)

    @property
    def mean_score(self) -> FloatArray:
        """Mean probability in each bin; NaN for empty bins."""
        return _ratio(self.score, self.count)

    @property
    def observed(self) -> FloatArray:
        """Observed frequency in each bin; NaN for empty bins."""
        return _ratio(self.hit, self.count)

    @property
    def ece(self) -> FloatArray:
        """Expected calibration error: the mean absolute difference of the two, weighted by count."""
        return _ratio(np.abs(self.hit - self.score).sum(axis=-1), self.count.sum(axis=-1))

    @property
    def accuracy(self) -> FloatArray:
        """Fraction of all predictions that were right."""
        return _ratio(self.hit.sum(axis=-1), self.count.sum(axis=-1))

    @property
    def confidence(self) -> FloatArray:
        """Mean probability of all predictions."""
        return _ratio(self.score.sum(axis=-1), self.count.sum(axis=-1))

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Wilson confidence interval of `observed` with confidence `level`; NaN for empty bins."""
        return wilson_interval(self.hit, self.count, level)

    def to_table(self) -> DiagnosticTable:
        """Return a table with one row per bin (of a single curve)."""
        lower, upper = self.interval()
        return DiagnosticTable(
            {
                "from": self.edges[:-1],
                "to": self.edges[1:],
                "count": self.count,
                "mean_score": self.mean_score,
                "observed": self.observed,
                "lower": lower,
                "upper": upper,
            }
        )

    def __getitem__(self, index: Any) -> Reliability:
        """Select one of several curves."""
        return Reliability(self.count[index], self.score[index], self.hit[index])


def evaluated(
    clf: Any,
    X: Matrix,
    y: npt.ArrayLike,
    n_bins: int = 20,
    sample_weight: npt.ArrayLike | None = None,
) -> Evaluation:
    """Evaluate a fitted classifier on rows."""
    check_is_fitted(clf)
    if _num_samples(X) != _num_samples(y):
        raise ValueError(f"X has {_num_samples(X)} rows, but y has {_num_samples(y)} labels.")
    return evaluate(clf, X, y, n_bins=n_bins, sample_weight=sample_weight)


def reliability(evaluation: Evaluation, pos_label: Any = None) -> Reliability:
    """Bin the most probable class of each row, or the probability of the class `pos_label`."""
    if pos_label is None:
        bins = binned(evaluation.facts.events(), evaluation.n_bins, "uniform")
    else:
        bins = evaluation.class_bins.of_class(_column(pos_label, evaluation.labels))
    return Reliability(bins.weight, bins.score, bins.outcome)


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide elementwise, NaN where the denominator is 0; scalars give a scalar."""
    out = np.full(np.shape(denominator), np.nan)
    np.divide(numerator, denominator, out=out, where=np.asarray(denominator) > 0)
    return out[()]


def _column(label: Any, classes: LabelArray) -> int:
    matches = np.flatnonzero(classes == label)
    if len(matches) != 1:
        raise ValueError(f"{label!r} is not one of the {len(classes)} classes.")
    return int(matches[0])


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
