"""External calibration: class log-probabilities in, better ones out; one file per family."""

from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator

__all__ = ["MULTICLASS", "MulticlassCalibrator"]
