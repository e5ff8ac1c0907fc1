"""Cross-validation of several settings on the same folds."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs

if TYPE_CHECKING:
    from dichotomies.tables import Table, TableModel

#: Makes an unfitted classifier for a table: called with it and `n_jobs`.
Maker = Callable[..., Any]

#: Metrics, with their titles in tables.
METRICS = {
    "nll": "NLL",
    "accuracy": "accuracy",
    "top_5_accuracy": "top-5",
    "ece": "ECE",
    "fit_seconds": "fit, s",
}


#: Number of rows that is enough to compile every kernel.
_FEW_ROWS = 200


@dataclass
class Scores:
    """Scores of one configuration on every fold, and the reason why it has none if it failed."""

    name: str
    failure: str = ""
    folds: dict[str, list[float]] = field(default_factory=lambda: {metric: [] for metric in METRICS})

    def mean(self, metric: str) -> float:
        """Mean over the folds."""
        return float(np.mean(self.folds[metric]))

    def spread(self, metric: str) -> float:
        """Standard deviation over the folds."""
        return float(np.std(self.folds[metric], ddof=1))


def folds_of(labels: Any, n_folds: int, seed: int) -> Any:
    """Return the test fold of each row; -1 for the only row of a class, which is always trained on.

    Rows of a class are assigned to the folds in turn, so that every tested class is also trained on.
    """
    from dichotomies.rows.folds import fold_of_rows

    _, codes = np.unique(labels, return_inverse=True)
    tested = np.bincount(codes)[codes] > 1
    if not tested.any():
        raise ValueError("No label has two rows, one to train on and one to test; nothing can be compared.")
    _, dense = np.unique(codes[tested], return_inverse=True)
    folds = np.full(len(codes), -1, dtype=np.intp)
    folds[tested] = fold_of_rows(dense, n_folds, np.random.RandomState(seed))
    return folds


def warm_up(make: Maker, table: "Table", **settings: Any) -> None:
    """Fit to a few rows, so that compilation is not in the measured time."""
    few = np.linspace(0, len(table) - 1, num=min(len(table), _FEW_ROWS)).astype(np.intp)
    if len(np.unique(table.labels[few])) > 1:
        _fit(make, table.rows(few), **settings)


def score(make: Maker, table: "Table", is_test: Any, **settings: Any) -> dict[str, float]:
    """Fit to the training rows, encoding of columns included, and compute the metrics on the test rows."""
    from dichotomies.metrics import evaluate

    train, test = (table.rows(np.flatnonzero(rows)) for rows in (~is_test, is_test))
    begun = time.perf_counter()
    model = _fit(make, train, **settings)
    seconds = time.perf_counter() - begun
    found = evaluate(model.classifier, model.matrix(test), test.labels, sample_weight=test.weight).metrics
    return {metric: seconds if metric == "fit_seconds" else found[metric] for metric in METRICS}


def _fit(make: Maker, table: "Table", *, n_jobs: int | None, **settings: Any) -> "TableModel":
    from threadpoolctl import threadpool_limits

    from dichotomies.tables import TableModel

    with threadpool_limits(effective_n_jobs(n_jobs)):  # flat classifiers would take all cores
        return TableModel.fit(make(table, n_jobs=n_jobs), table, **settings)
