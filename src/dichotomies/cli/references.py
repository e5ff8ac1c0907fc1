"""Flat classifiers that `dichotomies compare` adds as references, each calibrated like the others."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dichotomies.tables import Table

#: Largest array that sparse rows are turned into for references that need one.
MOST_BYTES = 2**30

#: Classes above which references are left out that fit a tree for every class in every iteration.
MANY_CLASSES = 100


def references(wanted: str, n_classes: int) -> dict[str, Callable[..., Any]]:
    """Return the makers of classifiers by name, called with the training rows and `n_jobs`."""
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
    from sklearn.naive_bayes import GaussianNB, MultinomialNB

    if not is_sparse(table):
        return _calibrated(GaussianNB())
    counts = MultinomialNB() if not table.date and _least(table.X) >= 0 else _of_dense(GaussianNB())
    return _calibrated(counts)


def _boosting(table: "Table", n_jobs: int | None) -> Any:  # noqa: ARG001
    from sklearn.ensemble import HistGradientBoostingClassifier

    boosting = HistGradientBoostingClassifier(random_state=0)
    return _calibrated(_of_dense(boosting) if is_sparse(table) else boosting)


def _lightgbm(table: "Table", n_jobs: int | None) -> Any:  # noqa: ARG001
    lightgbm = import_module("lightgbm")
    return _calibrated(lightgbm.LGBMClassifier(verbose=-1, random_state=0, n_jobs=n_jobs))


def _of_dense(estimator: Any) -> Any:
    """Pipeline for an estimator that takes no sparse rows."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    return make_pipeline(FunctionTransformer(as_dense, accept_sparse=True), estimator)


def as_dense(X: Any) -> Any:
    """Convert sparse rows to an array; raise if that is too large."""
    size = 8 * X.shape[0] * X.shape[1]
    if size > MOST_BYTES:
        from dichotomies._common.chunks import written  # takes long to import

        raise ValueError(f"It takes no sparse rows, and these would be {written(size)} as an array.")
    return X.toarray() if hasattr(X, "toarray") else X


def _least(X: Any) -> float:
    """The least number in a table, 0 without any."""
    values = X.data if hasattr(X, "indptr") else X
    return float(values.min(initial=0.0, where=~np.isnan(values)))


def _calibrated(estimator: Any) -> Any:
    """The calibrator that is chosen for these probabilities, as it is for nested dichotomies, out of fold."""
    from dichotomies import CalibratedClassifier

    return CalibratedClassifier(estimator, "auto")


def is_sparse(table: "Table") -> bool:
    """Return True for tables whose features will be sparse: svmlight files and texts."""
    texts = set(table.texts) - {*table.categorical, *table.date}
    return bool(texts) or hasattr(table.X, "indptr")
