"""Smooth calibration error: kernel smoothing with a data-driven bandwidth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray
from dichotomies.metrics.binning import EventQuery, sums_by_index
from dichotomies.metrics.facts import ScoredEvents

# The discretisation of the authors' package `relplot`, so that the values agree.
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
    """Smooth calibration error (smECE): kernel smoothing in place of bins.

    The residuals of outcome and score are smoothed by a Gaussian kernel, reflected at 0 and 1, and the
    absolute value of the result is averaged. The bandwidth is the fixed point at which it equals the error,
    found by bisection. There is no tuning parameter, and the error is continuous in the scores.

    Parameters
    ----------
    y_true, y_proba, labels, sample_weight, k
        See `expected_calibration_error`.
    kind : {"top-label", "top-k", "class-wise"}, optional
        See `expected_calibration_error`.
    bandwidth : float, optional
        Fixed standard deviation of the kernel.

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
    query = EventQuery(y_true, y_proba, labels, sample_weight, kind, k)
    each = query.class_events() if query.is_classwise else [query.events()]
    return float(np.mean([smooth_error(events, bandwidth) for events in each]))


def smooth_error(events: ScoredEvents, bandwidth: float | None = None) -> float:
    """Return the smooth calibration error of one set of events."""
    residuals = _Residuals(events)
    return residuals.error(residuals.fixed_point() if bandwidth is None else bandwidth)


class _Residuals:
    """Residuals of score and outcome on grids of the unit interval."""

    def __init__(self, events: ScoredEvents) -> None:
        self._score = events.score
        self._residual = events.weight * (events.score - events.happened)
        self._weight = events.weight
        self._grids: dict[int, tuple[FloatArray, FloatArray]] = {}

    def fixed_point(self) -> float:
        """Return the bandwidth that equals the error at that bandwidth, from above."""
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
        """Return the mean absolute value of the smoothed residuals."""
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
        """Return residuals and weights at grid points, each row divided between its two neighbours."""
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
    """Convolve on the unit interval with reflection at both ends."""
    from scipy.signal import fftconvolve

    n = len(values)
    mirrored = np.concatenate([values[:0:-1], values, values[-2::-1]])
    smoothed: FloatArray = fftconvolve(mirrored, kernel, mode="valid")[n // 2 : n // 2 + n]
    return smoothed
