"""External calibration of class log-probabilities, one file per family."""

from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator

__all__ = ["MULTICLASS", "MulticlassCalibrator"]

__getattr__, __dir__ = MULTICLASS.exports(__all__)
