"""Decomposition of losses into calibration and refinement."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.isotonic import SegmentArrays, pool_ties, pool_violators
from dichotomies.metrics._input import check_choice
from dichotomies.metrics.binning import EventQuery, binned, sums_by_index
from dichotomies.metrics.facts import RowFacts, ScoredEvents

LOSSES = ("nll", "brier")
METHODS = ("isotonic", "binned")


class Decomposition(NamedTuple):
    """A loss and its parts: ``total == calibration + refinement``.

    Attributes
    ----------
    total : float
        The mean loss.
    calibration : float
        The part that recalibration would remove.
    refinement : float
        The part that remains.
    """

    total: float
    calibration: float
    refinement: float


def _loss_of_scores(events: ScoredEvents, loss: str) -> FloatArray:
    """Return the loss of each score."""
    score, happened = events.score, events.happened
    if loss == "brier":
        return (score - happened) ** 2
    with np.errstate(divide="ignore"):
        log_complement = np.log1p(-score) if events.log_complement is None else events.log_complement
        return -np.where(happened, np.log(score), log_complement)


def _loss_of_shares(happened: FloatArray, missed: FloatArray, loss: str) -> FloatArray:
    """Return the total loss of each group of events with the group's frequency as score."""
    weight = happened + missed
    if loss == "brier":
        return happened * missed / weight
    log_likelihood: Any = xlogy(happened, happened / weight) + xlogy(missed, missed / weight)
    return np.asarray(-log_likelihood, dtype=np.float64)


def loss_decomposition(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    loss: str = "nll",
    kind: str | None = None,
    k: int = 5,
    method: str = "isotonic",
    n_bins: int = 20,
    strategy: str = "quantile",
    recalibrated: npt.ArrayLike | None = None,
) -> Decomposition:
    """Decompose a loss into calibration, which recalibration would remove, and refinement, which remains.

    Refinement is the loss after optimal recalibration of the scores, and calibration is the rest. The
    optimal recalibration is estimated:

    - "isotonic": by the best non-decreasing map (CORP), which has no tuning parameter and never gives
      negative calibration. The map is fitted to the rows it is evaluated on, so calibration is
      over-estimated with few rows.
    - "binned": by the frequency of the event in each bin.
    - Or by your own recalibration, such as an external calibrator fitted to other rows: pass its
      probabilities as `recalibrated`. Only this applies to the loss over all classes at once; the
      calibration part is negative if the recalibration increases the loss.

    Parameters
    ----------
    y_true, y_proba, labels, sample_weight
        See `expected_calibration_error`.
    loss : {"nll", "brier"}, default="nll"
        The loss: negative log-likelihood, or the squared distance (for one event, between 0 and 1).
    kind : {"top-label", "top-k", "class-wise"}, optional
        Event of a matrix: the most probable class is the true one (the default); the true class is among
        the `k` most probable; or each class against the rest, *summed* over the classes (for "brier", the
        total is then `brier_score`).
    k : int, default=5
        Number of classes for "top-k".
    method : {"isotonic", "binned"}, default="isotonic"
        Estimate of the optimal recalibration.
    n_bins : int, default=20
        Number of bins for "binned".
    strategy : {"uniform", "quantile"}, default="quantile"
        Bins of equal width, or of equal mass.
    recalibrated : array of the shape of `y_proba`, optional
        Probabilities after recalibration. The loss is then `negative_log_likelihood` or `brier_score` over
        all classes, and `kind`, `method` and the bins are ignored.

    Returns
    -------
    Decomposition
        ``total``, ``calibration`` and ``refinement``. With "nll", total and calibration are infinite if an
        event of probability 0 occurred.

    References
    ----------
    Dimitriadis, Gneiting & Jordan, *Stable reliability diagrams for probabilistic classifiers*, PNAS 2021
    (CORP; refinement is their uncertainty less discrimination). Bröcker, *Reliability, sufficiency, and the
    decomposition of proper scores*, 2009. Berta, Holzmüller, Jordan & Bach, *Rethinking Early Stopping:
    Refine, Then Calibrate*, 2025 (by a recalibration of the whole distribution).

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.metrics import loss_decomposition
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(5000)
    >>> happened = rng.random(5000) < proba
    >>> total, calibration, refinement = loss_decomposition(happened, proba**2, loss="brier")
    >>> round(calibration, 3), round(refinement, 3)  # 1 / 30 and 1 / 6 with very many rows
    (0.031, 0.164)
    """
    check_choice("loss", loss, LOSSES)
    if recalibrated is not None:
        return _by_recalibration(y_true, (y_proba, recalibrated), labels, sample_weight, loss)
    query = EventQuery(y_true, y_proba, labels, sample_weight, kind, k)
    each = query.class_events() if query.is_classwise else [query.events()]
    parts = np.array([decomposed(events, loss, method, n_bins, strategy) for events in each])
    return Decomposition(*parts.sum(axis=0).tolist())


def decomposed(
    events: ScoredEvents,
    loss: str,
    method: str = "isotonic",
    n_bins: int = 20,
    strategy: str = "quantile",
) -> Decomposition:
    """Decompose the mean loss of one set of events."""
    check_choice("method", method, METHODS)
    if method == "isotonic":
        positive, negative = _isotonic_groups(events)
    else:
        bins = binned(events, n_bins, strategy)
        positive, negative = (side[bins.weight > 0] for side in (bins.outcome, bins.weight - bins.outcome))
    total = float(np.average(_loss_of_scores(events, loss), weights=events.weight))
    refinement = float(_loss_of_shares(positive, negative, loss).sum() / events.weight.sum())
    return Decomposition(total, total - refinement, refinement)


def _isotonic_groups(events: ScoredEvents) -> tuple[FloatArray, FloatArray]:
    """Return the weights of events that did and did not occur, per block of the isotonic regression."""
    order = np.argsort(events.score, kind="stable")
    one = SegmentArrays(events.score, events.happened, events.weight, np.array([0, len(order)]))
    blocks = pool_violators(pool_ties(one, order))
    return blocks.positive, blocks.negative


def _by_recalibration(
    y_true: npt.ArrayLike,
    before_and_after: tuple[npt.ArrayLike, npt.ArrayLike],
    labels: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
    loss: str,
) -> Decomposition:
    losses = []
    for proba in before_and_after:
        facts = RowFacts.from_predictions(y_true, proba, labels=labels, sample_weight=sample_weight)
        losses.append(facts.mean(facts.brier if loss == "brier" else -facts.log_proba))
    total, refinement = losses
    return Decomposition(total, total - refinement, refinement)


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
