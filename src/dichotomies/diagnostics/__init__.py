"""Diagnostics of fitted models: sources of their error, as plain data for tables, plots and reports."""

from dichotomies.diagnostics.confusion import ConfusedPairs, confused_pairs
from dichotomies.diagnostics.depth import CutStage, DepthCuts, GroupPredictions, depth_cuts, predict_groups
from dichotomies.diagnostics.evaluated_model import DiagnosticTable
from dichotomies.diagnostics.ledger import Ledger, ledger
from dichotomies.diagnostics.reliability import ClassCalibration, Reliability, class_calibration

__all__ = [
    "ClassCalibration",
    "ConfusedPairs",
    "CutStage",
    "DepthCuts",
    "DiagnosticTable",
    "GroupPredictions",
    "Ledger",
    "Reliability",
    "class_calibration",
    "confused_pairs",
    "depth_cuts",
    "ledger",
    "predict_groups",
]
