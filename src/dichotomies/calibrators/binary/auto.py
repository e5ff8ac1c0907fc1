"""Selection of a calibration method, or none, at each node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.beta import BetaCalibration
from dichotomies.calibrators.binary.cross_fitting import cross_fitted_log_odds
from dichotomies.calibrators.binary.isotonic import IsotonicCalibration
from dichotomies.calibrators.binary.platt import PlattScaling
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.calibrators.binary.temperature import BinaryTemperature
from dichotomies.rows.segments import row_nll

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray
    from dichotomies.rows.segments import Segments

#: Methods from least to most flexible, with the minimum number of rows on each side.
CANDIDATES: tuple[tuple[BinaryCalibrator, int], ...] = (
    (BinaryTemperature(), 2),
    (PlattScaling(), 2),
    (BetaCalibration(), 10),
    (IsotonicCalibration(), 100),
)


@BINARY.register("auto")
class Auto(BinaryCalibrator):
    """Chooses none, temperature, Platt, beta or isotonic at each node by cross-fitted log-loss.

    Going from the least to the most flexible, a method replaces the current one if its cross-fitted
    log-loss is lower by more than `margin` standard errors of the difference. The log-loss is computed
    against Platt's targets, ``(N+ + 1) / (N+ + 2)`` and ``1 / (N- + 2)``, which penalise extreme scores at
    nodes with few rows: a small sample without errors does not justify a score of 100. Temperature and
    Platt need 2 rows on either side, beta 10, isotonic 100. The method chosen at each node is in ``names``
    of the `ScoreMaps`.

    Parameters
    ----------
    n_folds : int
        Number of folds for cross-fitting.
    margin : float
        Number of standard errors by which a more flexible method must improve.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.binary import Auto
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=1000)
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-log_odds))
    >>> Auto().fit(log_odds, y).maps_.names.tolist()
    ['none']
    >>> Auto().fit(3 * log_odds, y).maps_.names.tolist()
    ['temperature']
    """

    is_monotone: ClassVar[bool] = False

    def __init__(self, n_folds: int = 5, margin: float = 1.0) -> None:
        self.n_folds = n_folds
        self.margin = margin

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        segments = replace(segments, weights=segments.counts)
        has_weight = segments.row_weights > 0
        smaller_side = np.minimum(
            segments.count(segments.targets & has_weight), segments.count(~segments.targets & has_weight)
        )
        maps = ScoreMaps.identity(len(segments))
        loss = _soft_nll(segments.scores, segments)
        for calibrator, needed in CANDIDATES:
            maps, loss = self._compare(calibrator, segments, smaller_side >= needed, maps, loss)
        return maps

    def _compare(
        self,
        calibrator: BinaryCalibrator,
        segments: Segments,
        allowed: BoolArray,
        maps: ScoreMaps,
        loss: FloatArray,
    ) -> tuple[ScoreMaps, FloatArray]:
        """Return the maps and their cross-fitted losses (n,) after comparison with one more method."""
        if not allowed.any():
            return maps, loss
        sizes = np.diff(segments.offsets)
        tried = segments.take(np.repeat(allowed, sizes))
        new_loss = loss.copy()
        log_odds = cross_fitted_log_odds(calibrator, tried, self.n_folds)
        new_loss[np.repeat(allowed, sizes)] = _soft_nll(log_odds, tried)
        better = allowed & self._improves(loss - new_loss, segments)
        maps = calibrator.fit_segments(segments).where(better, maps)
        return maps, np.where(np.repeat(better, sizes), new_loss, loss)

    def _improves(self, gain: FloatArray, segments: Segments) -> BoolArray:
        """Return the segments whose gain exceeds the margin, with variance ``sum w (g - mean g)^2``."""
        total, square = segments.sums(gain), segments.sums(gain**2)
        weight = np.maximum(segments.sums(np.ones_like(gain)), np.finfo(float).tiny)
        variance = np.maximum(square - total**2 / weight, 0.0)
        won: BoolArray = total > self.margin * np.sqrt(variance)
        return won


def _soft_nll(log_odds: FloatArray, segments: Segments) -> FloatArray:
    """Return the negative log-likelihood (n,) of Platt's targets t: ``log(1 + exp(z)) - t z``."""
    positive = segments.sums(segments.targets.astype(np.float64))
    negative = segments.sums((~segments.targets).astype(np.float64))
    doubt = np.repeat(
        np.column_stack([1 / (negative + 2), 1 / (positive + 2)]), np.diff(segments.offsets), axis=0
    )
    towards = np.where(segments.targets, log_odds * doubt[:, 1], -log_odds * doubt[:, 0])
    loss: FloatArray = row_nll(log_odds, segments) + towards
    return loss
