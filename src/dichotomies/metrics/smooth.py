"""Smooth calibration error: no bins, and a bandwidth that the data choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies.metrics._events import Question
from dichotomies.metrics.binning import sums_by_index

if TYPE_CHECKING:
    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray
    from dichotomies.metrics.facts import ScoredEvents

# The discretisation of the authors' package `relplot`, so that the numbers agree.
_SMALLEST_BANDWIDTH = 0.001
_HALVINGS = 10
_GRID_POINTS = 2000
_EVALUATED_POINTS = 200


def smooth_calibration_error(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    kind: str | None = None,
    k: int = 5,
    bandwidth: float | None = None,
) -> float:
    """Calibration error by a kernel in place of bins (smECE).

    The differences between outcome and score are smoothed by a Gaussian kernel, reflected at 0 and 1, and
    the absolute value of the result is averaged. The bandwidth is the one at which the error equals the
    bandwidth, found by bisection; so there is nothing to choose, and the error does not jump as scores
    cross the edges of bins.

    Parameters
    ----------
    y_true : array of shape (n_rows,)
        The true labels.
    y_proba : array of shape (n_rows, n_classes) or (n_rows,)
        Class probabilities, or the probability of one event.
    labels : array of shape (n_classes,), optional
        The labels of the columns; by default the sorted labels that occur in `y_true`.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows.
    kind : {"top-label", "top-k", "class-wise"}, optional
        As for `expected_calibration_error`.
    k : int, default=5
        The number of classes of "top-k".
    bandwidth : float, optional
        A fixed standard deviation of the kernel.

    Returns
    -------
    float
        Between 0 (calibrated) and 1.

    References
    ----------
    Błasiok & Nakkiran, *Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing*, ICLR 2024
    (arXiv 2309.12236).

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.metrics import smooth_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(10_000)
    >>> round(smooth_calibration_error(rng.random(10_000) < score, score), 2)
    0.01
    >>> round(smooth_calibration_error(rng.random(10_000) < score**2, score), 2)
    0.16
    """
    if bandwidth is not None and bandwidth <= 0:
        raise ValueError(f"bandwidth must be positive, got {bandwidth}.")
    question = Question(y_true, y_proba, labels, sample_weight, kind, k)
    each = question.class_events() if question.is_classwise else [question.events()]
    return float(np.mean([smooth_error(events, bandwidth) for events in each]))


def smooth_error(events: ScoredEvents, bandwidth: float | None = None) -> float:
    """Smooth calibration error of one set of events."""
    residuals = _Residuals(events)
    return residuals.error(residuals.fixed_point() if bandwidth is None else bandwidth)


class _Residuals:
    """Differences between score and outcome on grids of the unit interval, ready to be smoothed."""

    def __init__(self, events: ScoredEvents) -> None:
        self._score = events.score
        self._residual = events.weight * (events.score - events.happened)
        self._weight = events.weight
        self._grids: dict[int, tuple[FloatArray, FloatArray]] = {}

    def fixed_point(self) -> float:
        """The bandwidth that the error at that bandwidth equals, from above."""
        upper, lower = 1.0, 0.0
        if upper < self.error(upper):
            return upper
        for _ in range(_HALVINGS):
            middle = (upper + lower) / 2
            if middle < _SMALLEST_BANDWIDTH or middle < self.error(middle):
                lower = middle
            else:
                upper = middle
        return upper

    def error(self, bandwidth: float) -> float:
        """Mean absolute value of the smoothed residuals."""
        n_points = max(_GRID_POINTS, round(20 / bandwidth)) // 2 + 1
        kernel = np.exp(-((np.linspace(0, 1, n_points) - 0.5) ** 2) / (2 * bandwidth**2))
        grid = np.linspace(0, 1, n_points)
        evaluated = np.linspace(0, 1, max(round(10 / bandwidth), _EVALUATED_POINTS))
        residual, density = (
            np.interp(evaluated, grid, _smoothed_with_reflection(values, kernel))
            for values in self._on_grid(n_points)
        )
        return float(np.abs(residual).sum() / density.sum())

    def _on_grid(self, n_points: int) -> tuple[FloatArray, FloatArray]:
        """Residuals and weights at grid points, each row shared between its two neighbours."""
        if n_points not in self._grids:
            place = self._score * (n_points - 1)
            left = np.minimum(place.astype(np.intp), n_points - 2)
            right_share = place - left
            residual, density = (
                sums_by_index(left, values * (1 - right_share), n_points)
                + sums_by_index(left + 1, values * right_share, n_points)
                for values in (self._residual, self._weight)
            )
            self._grids[n_points] = residual, density
        return self._grids[n_points]


def _smoothed_with_reflection(values: FloatArray, kernel: FloatArray) -> FloatArray:
    """Convolution on the unit interval; what would leave it at an end is reflected there."""
    from scipy.signal import fftconvolve

    n = len(values)
    mirrored = np.concatenate([values[:0:-1], values, values[-2::-1]])
    smoothed: FloatArray = fftconvolve(mirrored, kernel, mode="valid")[n // 2 : n // 2 + n]
    return smoothed
