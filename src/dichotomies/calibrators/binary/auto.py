"""Selection of one calibration method, or none, for all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from dichotomies._common.best_of import best_of
from dichotomies._common.typing import FloatArray
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator, cross_fitted_log_odds
from dichotomies.calibrators.binary.score_maps import IDENTITY, ScoreMaps
from dichotomies.rows.segments import Segments, row_nll


@BINARY.register("auto")
class Auto(BinaryCalibrator):
    """The best of several methods for all nodes together, by cross-fitted NLL.

    One choice for all nodes, because a choice at each node by itself is noisy where nodes have few rows. The
    first candidate is kept unless the best is better by more than one standard error of the difference. As
    the internal calibration of a classifier, it is chosen together with the external one, see
    `dichotomies.training.calibration_choice`.

    Parameters
    ----------
    candidates : sequence of str, default=("none", "shrunk-platt", "smooth-isotonic")
        Names of binary calibrators, the simplest first; "none" leaves the scores unchanged.
    n_folds : int, default=5
        Number of folds for cross-fitting.

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
    ['shrunk-platt']
    """

    is_monotone: ClassVar[bool] = False

    def __init__(
        self, candidates: Sequence[str] = (IDENTITY, "shrunk-platt", "smooth-isotonic"), n_folds: int = 5
    ) -> None:
        self.candidates = candidates
        self.n_folds = n_folds

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Choose a method and calibrate many nodes with it; see `BinaryCalibrator`."""
        segments = replace(segments, weights=segments.counts)
        losses = {name: self._losses(name, segments) for name in self.candidates}
        chosen = best_of(losses, segments.row_weights)
        if chosen == IDENTITY:
            return ScoreMaps.identity(len(segments))
        return BINARY.create(chosen).fit_segments(segments)

    def _losses(self, name: str, segments: Segments) -> FloatArray:
        """Return the negative log-likelihood (n,) of every row under a map fitted on the other folds."""
        if name == IDENTITY:
            return row_nll(segments.scores, segments)
        log_odds = cross_fitted_log_odds(BINARY.create(name), segments, self.n_folds)
        return row_nll(log_odds, segments)
