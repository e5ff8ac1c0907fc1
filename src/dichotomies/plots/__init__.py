"""Plots of diagnostics, as Display classes in the style of scikit-learn; they need matplotlib."""

from dichotomies.plots.classes import ClassCalibrationDisplay
from dichotomies.plots.depth import DepthCalibrationDisplay, DepthReliabilityDisplay
from dichotomies.plots.ledger import LedgerDisplay
from dichotomies.plots.reliability import ReliabilityDisplay

__all__ = [
    "ClassCalibrationDisplay",
    "DepthCalibrationDisplay",
    "DepthReliabilityDisplay",
    "LedgerDisplay",
    "ReliabilityDisplay",
]
