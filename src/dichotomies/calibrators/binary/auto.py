"""The method that pays at each node, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.beta import BetaCalibration
from dichotomies.calibrators.binary.cross_fitting import cross_fitted_log_odds
from dichotomies.calibrators.binary.isotonic import IsotonicCalibration
from dichotomies.calibrators.binary.platt import PlattScaling
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.rows.segments import row_nll
from dichotomies.calibrators.binary.temperature import BinaryTemperature

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray
    from dichotomies.rows.segments import Segments

#: From the stiffest to the most flexible, with the rows that either side must have.
LADDER: tuple[tuple[BinaryCalibrator, int], ...] = (
    (BinaryTemperature(), 2),
    (PlattScaling(), 2),
    (BetaCalibration(), 10),
    (IsotonicCalibration(), 100),
)


@BINARY.register("auto")
class Auto(BinaryCalibrator):
    """Chooses none, temperature, Platt, beta or isotonic at each node by cross-fitted log-loss.

    Going from the stiffest to the most flexible, a method replaces the one chosen so far where its
    log-loss on rows it was not fitted to is lower by more than `margin` standard errors of the
    difference. The log-loss is taken against Platt's targets, ``(N+ + 1) / (N+ + 2)`` and
    ``1 / (N- + 2)``: a node whose few rows are all on the right side has not shown that scores of 100
    are right, and this charges them for the error that has not been seen yet. Temperature and Platt
    need 2 rows on either side, beta 10, isotonic 100. Which method a node got is in ``names`` of the
    `ScoreMaps`.

    Parameters
    ----------
    n_folds : int
        Number of folds of the comparison.
    margin : float
        Standard errors by which a more flexible method must win.

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

    def __init__(self, n_folds: int = 5, margin: float = 1.0) -> None:
        self.n_folds = n_folds
        self.margin = margin

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        weighty = segments.row_weights > 0
        smaller_side = np.minimum(
            segments.count(segments.targets & weighty), segments.count(~segments.targets & weighty)
        )
        maps = ScoreMaps.identity(len(segments))
        loss = _soft_nll(segments.scores, segments)
        for calibrator, needed in LADDER:
            maps, loss = self._climb(calibrator, segments, smaller_side >= needed, maps, loss)
        return maps

    def _climb(
        self,
        calibrator: BinaryCalibrator,
        segments: Segments,
        allowed: BoolArray,
        maps: ScoreMaps,
        loss: FloatArray,
    ) -> tuple[ScoreMaps, FloatArray]:
        """The maps and their cross-fitted losses (n,) after this calibrator had its chance."""
        if not allowed.any():
            return maps, loss
        sizes = np.diff(segments.offsets)
        tried = segments.take(np.repeat(allowed, sizes))
        new_loss = loss.copy()
        log_odds = cross_fitted_log_odds(calibrator, tried, self.n_folds)
        new_loss[np.repeat(allowed, sizes)] = _soft_nll(log_odds, tried)
        better = allowed & self._wins(loss - new_loss, segments)
        maps = calibrator.fit_segments(segments).where(better, maps)
        return maps, np.where(np.repeat(better, sizes), new_loss, loss)

    def _wins(self, gain: FloatArray, segments: Segments) -> BoolArray:
        """Where the summed gain exceeds its margin; ``sum w (g - mean g)^2`` estimates its variance."""
        total, square = segments.sums(gain), segments.sums(gain**2)
        weight = np.maximum(segments.sums(np.ones_like(gain)), np.finfo(float).tiny)
        variance = np.maximum(square - total**2 / weight, 0.0)
        won: BoolArray = total > self.margin * np.sqrt(variance)
        return won


def _soft_nll(log_odds: FloatArray, segments: Segments) -> FloatArray:
    """Negative log-likelihood (n,) of Platt's targets t: ``log(1 + exp(z)) - t z``."""
    positive = segments.sums(segments.targets.astype(np.float64))
    negative = segments.sums((~segments.targets).astype(np.float64))
    doubt = np.repeat(
        np.column_stack([1 / (negative + 2), 1 / (positive + 2)]), np.diff(segments.offsets), axis=0
    )
    towards = np.where(segments.targets, log_odds * doubt[:, 1], -log_odds * doubt[:, 0])
    loss: FloatArray = row_nll(log_odds, segments) + towards
    return loss
