"""Trustworthy class probabilities when there are many classes."""

from dichotomies.calibrated import CalibratedClassifier
from dichotomies.classifier import NestedDichotomyClassifier
from dichotomies.learners.boosting import HistAdaBoostClassifier, HistGradientBoostClassifier
from dichotomies.learners.logistic import TunedLogisticRegression
from dichotomies.tree import ClassTree

__version__ = "0.1.0"

__all__ = [
    "CalibratedClassifier",
    "ClassTree",
    "HistAdaBoostClassifier",
    "HistGradientBoostClassifier",
    "NestedDichotomyClassifier",
    "TunedLogisticRegression",
    "__version__",
]
