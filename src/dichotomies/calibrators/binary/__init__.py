"""Binary calibrators, for a single scorer or for all nodes of a tree at once."""

from dichotomies.calibrators.binary.auto import Auto
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.beta import BetaCalibration
from dichotomies.calibrators.binary.cross_fitting import cross_fitted_log_odds, cross_fitted_nll
from dichotomies.calibrators.binary.isotonic import IsotonicCalibration
from dichotomies.calibrators.binary.platt import PlattScaling
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.calibrators.binary.temperature import BinaryTemperature
from dichotomies.calibrators.binary.venn_abers import VennAbers
from dichotomies.rows.segments import Segments, row_nll, segment_nll

__all__ = [
    "BINARY",
    "Auto",
    "BetaCalibration",
    "BinaryCalibrator",
    "BinaryTemperature",
    "IsotonicCalibration",
    "PlattScaling",
    "ScoreMaps",
    "Segments",
    "VennAbers",
    "cross_fitted_log_odds",
    "cross_fitted_nll",
    "row_nll",
    "segment_nll",
]
