"""Bootstrap confidence intervals, by rows or by groups of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._common.validation import row_weights
from dichotomies.metrics import _input

METHODS = ("percentile", "centred", "basic")


class Interval(NamedTuple):
    """An estimate with its confidence interval; arrays if the metric has several values.

    Attributes
    ----------
    estimate, lower, upper : float or ndarray
        The metric on all rows, and the ends of the interval.
    """

    estimate: Any
    lower: Any
    upper: Any


def confidence_interval(
    metric: Callable[..., Any],
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    method: str = "percentile",
    random_state: int = 0,
    **options: Any,
) -> Interval:
    """Return the bootstrap confidence interval of a metric.

    Rows are drawn with replacement, and the metric is computed with the counts of the draws as weights.
    `evaluate` does the same for all metrics at once, and faster.

    Parameters
    ----------
    metric : callable
        A metric of this package or of scikit-learn, called as
        ``metric(y_true, y_proba, sample_weight=..., **options)``; it may return several values.
    y_true : array of shape (n_rows,)
        The true labels.
    y_proba : array of shape (n_rows, n_classes) or (n_rows,)
        Class probabilities, or any other input of `metric`.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows; rows of weight zero are not drawn.
    groups : array of shape (n_rows,), optional
        Group of each row, such as the person it comes from: whole groups are drawn. Without it, intervals
        for correlated rows are too narrow; they are also too narrow with fewer than about twenty groups.
    n_resamples : int, default=1000
        Number of resamples.
    confidence_level : float, default=0.95
        Confidence level of the interval.
    method : {"percentile", "centred", "basic"}, default="percentile"
        "percentile": the quantiles of the metric over the resamples. Resampling adds noise, which increases
        calibration errors, so that their interval may lie above the estimate. "centred": the same quantiles,
        shifted so that their median is the estimate: the sampling variability of the estimate. "basic": the
        quantiles reflected about the estimate, which also corrects the estimate for the noise.
    random_state : int, default=0
        Seed; the interval is the same for the same seed.
    **options
        Passed on to `metric`.

    Returns
    -------
    Interval
        ``estimate``, ``lower`` and ``upper``.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.metrics import accuracy, confidence_interval
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet(np.ones(3), size=200)
    >>> y = [rng.choice(3, p=p) for p in proba]
    >>> estimate, lower, upper = confidence_interval(accuracy, y, proba)
    >>> round(estimate, 3), round(lower, 3), round(upper, 3)
    (0.58, 0.51, 0.655)
    """
    y, proba = np.asarray(y_true), np.asarray(y_proba)
    _input.check_same_length(y, proba)
    weight = row_weights(sample_weight, len(y))
    draws = resampled_weights(weight, groups, n_resamples, random_state)
    estimate = metric(y, proba, sample_weight=weight, **options)
    resampled = [metric(y, proba, sample_weight=drawn, **options) for drawn in draws]
    return interval_of(estimate, np.array(resampled, dtype=np.float64), confidence_level, method)


def resampled_weights(
    weight: FloatArray, groups: npt.ArrayLike | None, n_resamples: int, random_state: int
) -> Iterator[FloatArray]:
    """Yield the weights in each resample: the row's own, times the draws of the row or its group."""
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples}.")
    weighed = np.flatnonzero(weight > 0)
    unit_of_row, n_units = _units(groups, weighed, len(weight))
    rng = np.random.default_rng(random_state)

    def draw() -> FloatArray:
        times = np.bincount(rng.integers(n_units, size=n_units), minlength=n_units)
        drawn = np.zeros_like(weight)
        drawn[weighed] = weight[weighed] * times[unit_of_row]
        return drawn

    return (draw() for _ in range(n_resamples))


def random_batches(
    weight: FloatArray, groups: npt.ArrayLike | None, n_batches: int, random_state: int
) -> tuple[IntArray, int]:
    """Assign rows, or whole groups, to batches at random; return the batch of each row and their number."""
    weighed = np.flatnonzero(weight > 0)
    unit_of_row, n_units = _units(groups, weighed, len(weight))
    n_batches = min(n_batches, n_units)
    batches = np.zeros(len(weight), dtype=np.intp)
    batches[weighed] = (np.random.default_rng(random_state).permutation(n_units) % n_batches)[unit_of_row]
    return batches, n_batches


def _units(groups: npt.ArrayLike | None, weighed: IntArray, n_rows: int) -> tuple[IntArray, int]:
    """Return the sampling unit of each row with positive weight: itself, or its group."""
    if groups is None:
        return np.arange(len(weighed)), len(weighed)
    names = np.asarray(groups)
    if names.shape != (n_rows,):
        raise ValueError(f"groups must have one value for each of the {n_rows} rows, got {names.shape}.")
    different, unit_of_row = np.unique(names[weighed], return_inverse=True)
    return unit_of_row, len(different)


def interval_of(
    estimate: Any, resampled: FloatArray, confidence_level: float = 0.95, method: str = "percentile"
) -> Interval:
    """Return the interval from a metric's values over resamples, along the first axis."""
    _input.check_choice("method", method, METHODS)
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must lie between 0 and 1, got {confidence_level}.")
    tail = (1 - confidence_level) / 2
    # no interpolation, which is undefined between infinite values
    lower, upper = np.quantile(resampled, [tail, 1 - tail], axis=0, method="inverted_cdf")
    with np.errstate(invalid="ignore"):
        if method == "basic":
            lower, upper = 2 * np.asarray(estimate) - upper, 2 * np.asarray(estimate) - lower
        elif method == "centred":
            shift = estimate - np.quantile(resampled, 0.5, axis=0, method="inverted_cdf")
            shift = np.where(np.isfinite(shift), shift, 0.0)
            lower, upper = lower + shift, upper + shift
    if np.ndim(estimate) == 0:
        return Interval(float(estimate), float(lower), float(upper))
    return Interval(np.asarray(estimate, dtype=np.float64), lower, upper)
