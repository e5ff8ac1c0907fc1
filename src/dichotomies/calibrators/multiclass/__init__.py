"""External calibration of class log-probabilities, one file per family."""

from dichotomies.calibrators.multiclass._calibration_rows import LOWEST
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator, calibration_rows

__all__ = ["LOWEST", "MULTICLASS", "MulticlassCalibrator", "calibration_rows"]

__getattr__, __dir__ = MULTICLASS.exports(__all__)
