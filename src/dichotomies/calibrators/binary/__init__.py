"""Binary calibrators, for a single scorer or for all nodes of a tree at once."""

from dichotomies.calibrators.binary.base import (
    BINARY,
    BinaryCalibrator,
    cross_fitted_log_odds,
    cross_fitted_nll,
)
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.rows.segments import Segments, row_nll, segment_nll

__all__ = [
    "BINARY",
    "BinaryCalibrator",
    "ScoreMaps",
    "Segments",
    "cross_fitted_log_odds",
    "cross_fitted_nll",
    "row_nll",
    "segment_nll",
]

__getattr__, __dir__ = BINARY.exports(__all__)
