"""Reliability curves as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from dichotomies._common.typing import FloatArray
from dichotomies.metrics._input import check_choice
from dichotomies.metrics.binning import Bins, EventQuery

INTERVALS = ("wilson", "clopper-pearson")


@dataclass(frozen=True)
class ReliabilityCurve:
    """Confidence and accuracy per bin; NaN in empty bins.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins, from 0 to 1; bins include their upper edge.
    confidence : ndarray of shape (n_bins,)
        Mean score in each bin.
    accuracy : ndarray of shape (n_bins,)
        Frequency of the event in each bin.
    count : ndarray of shape (n_bins,)
        Number of rows in each bin (sum of their weights).
    lower, upper : ndarray of shape (n_bins,)
        Pointwise confidence interval of `accuracy`.
    confidence_level : float
        Confidence level of that interval.
    """

    edges: FloatArray
    confidence: FloatArray
    accuracy: FloatArray
    count: FloatArray
    lower: FloatArray
    upper: FloatArray
    confidence_level: float

    @property
    def expected_calibration_error(self) -> float:
        """Expected calibration error: distance of `confidence` and `accuracy`, weighted by `count`."""
        filled = self.count > 0
        gaps = np.abs(self.confidence - self.accuracy)[filled]
        return float(np.average(gaps, weights=self.count[filled]))


def reliability_curve(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    kind: str | None = None,
    k: int = 5,
    n_bins: int = 20,
    strategy: str = "uniform",
    interval: str = "wilson",
    confidence_level: float = 0.95,
) -> ReliabilityCurve:
    """Compute the reliability curve: mean confidence and accuracy per bin.

    Parameters
    ----------
    y_true, y_proba, labels, k, n_bins
        See `expected_calibration_error`.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows, interpreted as counts by the intervals.
    kind : {"top-label", "top-k", "class-wise"}, optional
        See `expected_calibration_error`; "class-wise" pools the classes: every entry of the matrix is one
        score. Its intervals treat the entries of a row as independent.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal mass. "class-wise" supports equal width only.
    interval : {"wilson", "clopper-pearson"}, default="wilson"
        Interval for the accuracy of a bin: Wilson's, with coverage close to the level, or Clopper &
        Pearson's, with coverage at least the level.
    confidence_level : float, default=0.95
        Confidence level of the intervals.

    Returns
    -------
    ReliabilityCurve

    Examples
    --------
    >>> from dichotomies.metrics import reliability_curve
    >>> curve = reliability_curve([1, 0, 1, 1], [0.9, 0.2, 0.8, 0.7], n_bins=2)
    >>> curve.confidence.round(3), curve.accuracy, curve.count
    (array([0.2, 0.8]), array([0., 1.]), array([1., 3.]))
    >>> curve.lower.round(2), curve.upper.round(2)
    (array([0.  , 0.44]), array([0.79, 1.  ]))
    """
    query = EventQuery(y_true, y_proba, labels, sample_weight, kind, k)
    if query.is_classwise and strategy != "uniform":
        raise ValueError("A class-wise reliability curve pools the classes in bins of equal width only.")
    bins = query.bins(n_bins, strategy)
    return curve_of(pooled(bins) if query.is_classwise else bins, interval, confidence_level)


def pooled(bins: Bins) -> Bins:
    """Pool the bins of all classes."""
    sums = (values.sum(axis=1) for values in (bins.weight, bins.score, bins.outcome))
    return type(bins)(bins.edges, *sums)


def curve_of(bins: Bins, interval: str = "wilson", confidence_level: float = 0.95) -> ReliabilityCurve:
    """Return the reliability curve of one set of bins."""
    check_choice("interval", interval, INTERVALS)
    happened, count = _countable(bins.outcome, bins.weight, confidence_level)
    bounds = wilson_interval if interval == "wilson" else clopper_pearson_interval
    lower, upper = bounds(happened, count, confidence_level)
    return ReliabilityCurve(
        bins.edges, bins.score / count, happened / count, bins.weight, lower, upper, confidence_level
    )


def _countable(
    happened: FloatArray, count: FloatArray, confidence_level: float
) -> tuple[FloatArray, FloatArray]:
    """Return counts that an interval is defined for: no count of 0, no frequency above 1."""
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must lie between 0 and 1, got {confidence_level}.")
    known = np.where(count > 0, count, np.nan)
    return np.clip(happened, 0.0, known), known  # sums of fractional weights may differ by rounding


def wilson_interval(
    happened: FloatArray, count: FloatArray, confidence_level: float
) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's score interval of a proportion; NaN for empty bins."""
    happened, count = _countable(happened, count, confidence_level)
    z = ndtri((1 + confidence_level) / 2)
    share = happened / count
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) / (1 + z**2 / count)
    # exactly 0 and 1 for frequencies 0 and 1, despite rounding
    lower = np.where(happened == 0, 0.0, centre - half)
    return lower, np.where(happened == count, 1.0, centre + half)


def clopper_pearson_interval(
    happened: FloatArray, count: FloatArray, confidence_level: float
) -> tuple[FloatArray, FloatArray]:
    """Return Clopper & Pearson's exact interval of a proportion; NaN for empty bins."""
    happened, count = _countable(happened, count, confidence_level)
    tail = (1 - confidence_level) / 2
    missed = count - happened
    lower = np.where(happened > 0, betaincinv(np.maximum(happened, 1e-9), missed + 1, tail), 0.0)
    upper = np.where(missed > 0, betaincinv(happened + 1, np.maximum(missed, 1e-9), 1 - tail), 1.0)
    empty = np.isnan(count)
    return np.where(empty, np.nan, lower), np.where(empty, np.nan, upper)
