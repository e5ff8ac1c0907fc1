"""Flat classifiers that `dichotomies compare` adds as references, each calibrated like the others."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dichotomies.tables import Table

#: Classes above which references are left out that fit a tree for every class in every iteration.
MANY_CLASSES = 100


def references(wanted: str, n_classes: int) -> dict[str, Callable[..., Any]]:
    """Return the makers of classifiers by name, called with the training rows and `n_jobs`.

    Parameters
    ----------
    wanted : {"auto", "all", "none"}
        "auto" leaves out boosting if there are more than 100 classes.
    """
    if wanted == "none":
        return {}
    found: dict[str, Callable[..., Any]] = {
        "flat logistic regression": _logistic,
        "flat naive Bayes": _naive_bayes,
    }
    if wanted == "all" or n_classes <= MANY_CLASSES:
        found["flat HistGradientBoosting"] = _boosting
        if find_spec("lightgbm") is not None:
            found["flat LightGBM"] = _lightgbm
    return found


def _logistic(table: "Table", n_jobs: int | None) -> Any:  # noqa: ARG001 - of other references
    from sklearn.linear_model import LogisticRegression

    return _calibrated(LogisticRegression(max_iter=1000))


def _naive_bayes(table: "Table", n_jobs: int | None) -> Any:  # noqa: ARG001
    from dichotomies.cli.estimators import estimator_named

    return _calibrated(estimator_named("naive-bayes", {}, sparse=is_sparse(table)))


def _boosting(table: "Table", n_jobs: int | None) -> Any:  # noqa: ARG001
    from sklearn.ensemble import HistGradientBoostingClassifier

    return _calibrated(HistGradientBoostingClassifier(random_state=0))


def _lightgbm(table: "Table", n_jobs: int | None) -> Any:  # noqa: ARG001
    lightgbm = import_module("lightgbm")
    return _calibrated(lightgbm.LGBMClassifier(verbose=-1, random_state=0, n_jobs=n_jobs))


def _calibrated(estimator: Any) -> Any:
    """The calibrator that is chosen for these probabilities, as it is for nested dichotomies, out of fold."""
    from dichotomies import CalibratedClassifier

    return CalibratedClassifier(estimator, "auto")


def is_sparse(table: "Table") -> bool:
    """Return True for tables whose features will be sparse: svmlight files and texts."""
    texts = set(table.texts) - {*table.categorical, *table.date}
    return bool(texts) or hasattr(table.X, "indptr")
