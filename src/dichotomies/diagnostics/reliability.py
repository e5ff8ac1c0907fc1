"""Reliability: observed frequency against predicted probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _num_samples, check_is_fitted

from dichotomies._common.typing import FloatArray, LabelArray, Matrix
from dichotomies.diagnostics.diagnostic_table import DiagnosticTable
from dichotomies.metrics import Evaluation, evaluate
from dichotomies.metrics.binning import binned, equal_width_edges
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
