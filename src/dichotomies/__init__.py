"""Trustworthy class probabilities when there are many classes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dichotomies.estimators.calibrated import CalibratedClassifier
    from dichotomies.estimators.classifier import NestedDichotomyClassifier, NestedDichotomyEnsemble
    from dichotomies.learners.boosting import HistAdaBoostClassifier, HistGradientBoostClassifier
    from dichotomies.learners.logistic import ScaledLogisticRegression, TunedLogisticRegression
    from dichotomies.persistence import load
    from dichotomies.tree import ClassTree

__version__ = "0.2.0"

__all__ = [
    "CalibratedClassifier",
    "ClassTree",
    "HistAdaBoostClassifier",
    "HistGradientBoostClassifier",
    "NestedDichotomyClassifier",
    "NestedDichotomyEnsemble",
    "ScaledLogisticRegression",
    "TunedLogisticRegression",
    "__version__",
    "load",
]

# Everything is imported on first use, so that the command line starts at once.

#: Module of each public name.
_HOMES = {
    "CalibratedClassifier": "estimators.calibrated",
    "ClassTree": "tree",
    "HistAdaBoostClassifier": "learners.boosting",
    "HistGradientBoostClassifier": "learners.boosting",
    "NestedDichotomyClassifier": "estimators.classifier",
    "NestedDichotomyEnsemble": "estimators.classifier",
    "ScaledLogisticRegression": "learners.logistic",
    "TunedLogisticRegression": "learners.logistic",
    "load": "persistence",
}
#: Modules that people use by name.
_MODULES = (
    "calibrators",
    "diagnostics",
    "learners",
    "metrics",
    "persistence",
    "plots",
    "structures",
)
#: Modules whose classes may be in model files; they register themselves when they are imported.
_SAVABLE = (
    "estimators.classifier",
    "estimators.calibrated",
    "tables",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dichotomies.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'dichotomies' has no attribute {name!r}")
    for module in _SAVABLE if name == "load" else ():
        import_module(f"dichotomies.{module}")
    return getattr(import_module(f"dichotomies.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
