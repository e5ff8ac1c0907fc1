"""Binned calibration errors: expected, maximum and debiased."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dichotomies._common.typing import FloatArray
from dichotomies.metrics._input import check_choice
from dichotomies.metrics.binning import Bins, EventQuery

NORMS = ("l1", "l2")


def expected_calibration_error(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    kind: str | None = None,
    k: int = 5,
    n_bins: int = 20,
    strategy: str = "uniform",
) -> float:
    """Expected calibration error (ECE): mean distance between confidence and accuracy over bins.

    Rows are binned by a probability; within each bin, the mean of that probability is compared with the
    frequency of the event.

    Parameters
    ----------
    y_true : array of shape (n_rows,)
        The true labels.
    y_proba : array of shape (n_rows, n_classes) or (n_rows,)
        Class probabilities; or, for any binary score, the probability of one event: that `y_true` is the
        second of two labels, or 1, or True.
    labels : array of shape (n_classes,), optional
        The labels of the columns; by default the sorted labels that occur in `y_true`.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows.
    kind : {"top-label", "top-k", "class-wise"}, optional
        Event of a matrix: the most probable class is the true one (the default, and the paper's); the true
        class is among the `k` most probable, against the sum of their probabilities; or each class against
        the rest, averaged over all classes, including those absent from `y_true`.
    k : int, default=5
        Number of classes for "top-k".
    n_bins : int, default=20
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal mass; bins include their upper edge.

    Returns
    -------
    float
        Between 0 (calibrated) and 1. Sampling noise makes it positive even for a calibrated model: see
        `debiased_calibration_error`.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger, *On Calibration of Modern Neural Networks*, ICML 2017.

    Examples
    --------
    >>> from dichotomies.metrics import expected_calibration_error
    >>> round(expected_calibration_error(["a", "b", "b"], [[0.9, 0.1], [0.2, 0.8], [0.9, 0.1]]), 3)
    0.333
    >>> round(expected_calibration_error([True, False, True], [0.7, 0.1, 0.7]), 3)  # any binary score
    0.233
    """
    query = EventQuery(y_true, y_proba, labels, sample_weight, kind, k)
    return float(np.mean(expected_error(query.bins(n_bins, strategy))))


def maximum_calibration_error(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    kind: str | None = None,
    k: int = 5,
    n_bins: int = 20,
    strategy: str = "uniform",
) -> float:
    """Maximum calibration error (MCE): largest distance between confidence and accuracy over bins.

    A bin with a single row can determine it: prefer bins of equal mass, or few.

    Parameters
    ----------
    y_true, y_proba, labels, sample_weight, k, n_bins, strategy
        See `expected_calibration_error`.
    kind : {"top-label", "top-k", "class-wise"}, optional
        See `expected_calibration_error`; "class-wise" is the maximum over all classes.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from dichotomies.metrics import maximum_calibration_error
    >>> round(maximum_calibration_error([1, 0, 1], [0.7, 0.1, 0.7]), 3)
    0.3
    """
    query = EventQuery(y_true, y_proba, labels, sample_weight, kind, k)
    return float(np.max(maximum_error(query.bins(n_bins, strategy))))


def debiased_calibration_error(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    kind: str | None = None,
    k: int = 5,
    n_bins: int = 20,
    strategy: str = "uniform",
    norm: str = "l1",
) -> float:
    r"""Calibration error corrected for the bias that sampling noise adds.

    In a bin of n rows with accuracy a and mean confidence c, the distance \|a - c\| is positive even for a
    calibrated model, because a is noisy. Both corrections are those of Kumar, Liang & Ma (and of their
    package ``uncertainty-calibration``):

    - "l1", the expected calibration error: ``2 ECE - E``, where E is the expected ECE if every a were
      redrawn from a normal distribution around itself with variance a (1 - a) / n. The expectation is
      computed exactly (of a folded normal distribution); the package draws 1,000 samples. The bias is
      reduced, not removed: about 60 % of the noise of a calibrated model remain.
    - "l2", the root mean squared calibration error: a (1 - a) / (n - 1), the unbiased estimate of the
      variance of a, is subtracted from each bin's (a - c)^2, and bins with one row are ignored (also the
      estimator of Bröcker and of Ferro & Fricker). The mean square is unbiased; negative values are set to 0
      before the root is taken.

    Parameters
    ----------
    y_true, y_proba, labels, k, n_bins, strategy
        See `expected_calibration_error`.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows, interpreted as counts: weight 2 is equivalent to two copies of the row. Weights
        that sum to 1 would mean a single row in all: rescale them.
    kind : {"top-label", "top-k", "class-wise"}, optional
        See `expected_calibration_error`; "class-wise" is the mean over the classes ("l1"), or the root mean
        square ("l2").
    norm : {"l1", "l2"}, default="l1"
        Expected (absolute) error, or root mean squared error.

    Returns
    -------
    float
        At most 1. With "l1" it may be slightly below 0, which means no evidence of miscalibration.

    References
    ----------
    Kumar, Liang & Ma, *Verified Uncertainty Calibration*, NeurIPS 2019. Bröcker, *Estimating reliability
    and resolution of probability forecasts through decomposition of the empirical score*, 2012. Ferro &
    Fricker, *A bias-corrected decomposition of the Brier score*, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.metrics import debiased_calibration_error, expected_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(500)
    >>> happened = rng.random(500) < score  # calibrated by construction
    >>> round(expected_calibration_error(happened, score), 3)
    0.055
    >>> round(debiased_calibration_error(happened, score), 3)
    0.025
    """
    check_choice("norm", norm, NORMS)
    bins = EventQuery(y_true, y_proba, labels, sample_weight, kind, k).bins(n_bins, strategy)
    if norm == "l1":
        return float(np.mean(debiased_expected_error(bins)))
    return float(np.sqrt(np.mean(np.maximum(debiased_squared_error(bins), 0.0))))


def expected_error(bins: Bins) -> FloatArray:
    """Return the mean absolute gap, for all rows or per class."""
    result: FloatArray = (bins.share * np.abs(bins.gap)).sum(axis=0)
    return result


def maximum_error(bins: Bins) -> FloatArray:
    """Return the largest absolute gap, for all rows or per class."""
    result: FloatArray = np.abs(bins.gap).max(axis=0)
    return result


def debiased_expected_error(bins: Bins) -> FloatArray:
    """Return twice the mean absolute gap minus its expectation if the outcomes were redrawn."""
    gap = np.abs(bins.gap)
    spread = np.sqrt(_outcome_variance(bins) / np.where(bins.weight > 0, bins.weight, 1.0))
    redrawn = _folded_normal_mean(gap, spread)
    result: FloatArray = (bins.share * (2 * gap - redrawn)).sum(axis=0)
    return result


def debiased_squared_error(bins: Bins) -> FloatArray:
    """Return the mean squared gap minus the variance of the outcomes in each bin."""
    enough = bins.weight > 1
    noise = _outcome_variance(bins) / np.where(enough, bins.weight - 1, 1.0)
    squares = np.where(enough, bins.gap**2 - noise, 0.0)
    result: FloatArray = (bins.share * squares).sum(axis=0)
    return result


def _outcome_variance(bins: Bins) -> FloatArray:
    happened = bins.outcome / np.where(bins.weight > 0, bins.weight, 1.0)
    return np.maximum(happened * (1 - happened), 0.0)


def _folded_normal_mean(mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the mean absolute value of normal variables with given (non-negative) means."""
    ratio = mean / np.where(spread > 0, spread, np.inf)
    density = np.exp(-(ratio**2) / 2) / np.sqrt(2 * np.pi)
    folded: FloatArray = 2 * spread * density + mean * (1 - 2 * ndtr(-ratio))
    return np.where(spread > 0, folded, mean)
