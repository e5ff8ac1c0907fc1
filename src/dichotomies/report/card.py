"""The model card: properties of the model and of its training."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sklearn.pipeline import Pipeline

from dichotomies.diagnostics.evaluated_model import fitted_dichotomy
from dichotomies.report.measurements import Measurements
from dichotomies.report.words import count, name_of, plural

_PACKAGES = ("dichotomies", "numpy", "scipy", "scikit-learn")


def facts(measured: Measurements) -> list[tuple[str, str]]:
    """Return names and values, in display order."""
    clf = fitted_dichotomy(measured.clf)
    tree, evaluation = measured.tree, measured.evaluation
    intervals = (
        f"{evaluation.confidence_level:.0%}: Wilson for accuracies, bootstrap over rows "
        f"({evaluation.n_resamples} resamples) for the rest"
    )
    lines = [
        ("Model", _steps(measured.clf)),
        ("Classes", f"{tree.n_classes:,}"),
        ("Evaluated on", _rows(measured)),
        ("Features", f"{clf.n_features_in_:,}"),
        (
            "Tree",
            f"{_text(clf.structure)}; {tree.mean_depth:.1f} decisions on average, {tree.max_depth} at most",
        ),
        *_pool(clf),
        ("Estimator at each node", _text(clf.base_estimator)),
        ("Training", clf.learner_),
        ("Internal calibration", clf.calibration_.internal),
        ("External calibration", _external(clf)),
        *([("Choice of calibration", str(clf.calibration_))] if clf.calibration_.nll else []),
        ("Intervals", intervals),
        ("Software", ", ".join([f"Python {platform.python_version()}", *_versions()])),
    ]
    return [(name, name_of(value)) for name, value in lines]


def parameters(measured: Measurements) -> list[tuple[str, str]]:
    """Return the parameters of the classifier."""
    given = fitted_dichotomy(measured.clf).get_params(deep=False)
    return [(name, name_of(_text(value))) for name, value in sorted(given.items())]


def _steps(clf: Any) -> str:
    parts = [step for _, step in clf.steps] if isinstance(clf, Pipeline) else [clf]
    return " after ".join(type(part).__name__ for part in reversed(parts))


def _rows(measured: Measurements) -> str:
    rows = plural(len(measured.facts), "row", "rows")
    return (
        rows
        if measured.n_rows == len(measured.facts)
        else f"{rows}, of total weight {count(measured.n_rows)}"
    )


def _pool(clf: Any) -> list[tuple[str, str]]:
    """Return the entries for an ensemble: the tree shown, and the pooling."""
    if not hasattr(clf, "trees_"):
        return []
    n_trees = len(clf.trees_)
    return [
        (
            "Trees",
            f"{n_trees}, their probabilities pooled ({clf.pooling_} mean); the tree shown is the first one, "
            "along which the pooled probabilities are decomposed",
        ),
    ]


def _external(clf: Any) -> str:
    if clf.calibration_.external != "none" and clf.external_calibrator_ is None:
        return f"none: no row could be held out for {clf.calibration_.external}"
    return str(clf.calibration_.external)


def _text(value: Any) -> str:
    """Return a parameter as text on one line."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else " ".join(repr(value).split())


def _versions() -> list[str]:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # imported from the source tree, not installed
            continue
    return found
