"""A fast learner against one scikit-learn clone per node: same tree, same rows, same number of threads."""

from __future__ import annotations

from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.race import seconds
from dichotomies import NestedDichotomyClassifier
from tests.reference import CalibratedNode, RecursiveNestedDichotomy

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.problems import Problem

HEADER = [
    "learner", "data", "size", "fit", "fit with 3-fold Platt", "predict_proba", "predict_proba, Platt",
    "NLL (clones)", "NLL, Platt (clones)",
]  # fmt: skip

#: Probabilities are not taken to be below this: the clones' products underflow.
_LEAST = 1e-15


def race(
    title: str,
    problem: Problem,
    estimator: Any,
    clone: Any = None,
    *,
    repeats: int = 1,
    test_rows: int = 2000,
) -> list[str]:
    """A row of the table.

    Parameters
    ----------
    clone : classifier, optional
        What the other side clones, by default `estimator`.
    repeats : int
        Runs of our side, whose median is taken; the clones take long and run once.
    test_rows : int
        Rows to predict; the clones take long.
    """
    few = np.random.RandomState(0).permutation(len(problem.y_test))[:test_rows]
    X_test, y_test = problem.X_test[few], problem.y_test[few]
    clone = estimator if clone is None else clone
    with threadpool_limits(1):
        plain = _one_race(problem, X_test, y_test, estimator, None, clone, repeats)
        platt = _one_race(problem, X_test, y_test, estimator, "platt", CalibratedNode(clone), repeats)
    fits, predictions, losses = zip(plain, platt, strict=True)
    row = [title, problem.name, problem.size, *fits, *predictions, *losses]
    print(*row, sep=" | ", flush=True)
    return row


def _one_race(
    problem: Problem, X_test: Any, y_test: Any, estimator: Any, internal: str | None, clone: Any, repeats: int
) -> tuple[str, str, str]:
    tree = problem.tree
    ours = NestedDichotomyClassifier(
        estimator, tree, internal_calibration=internal, external_calibration=None, random_state=0
    )
    theirs = RecursiveNestedDichotomy(clone, tree.to_nested())
    _ = ours.fit(problem.X, problem.y).predict_proba(X_test[:10])  # compiles what is not compiled yet
    # Ours first: thousands of clones leave the memory of the process in pieces, for whoever comes next.
    fit = 1 / _median_seconds(lambda: ours.fit(problem.X, problem.y), repeats)
    predict = 1 / _median_seconds(lambda: ours.predict_proba(X_test), repeats)
    fit *= seconds(lambda: theirs.fit(problem.X, problem.y), process_time)
    predict *= seconds(lambda: theirs.predict_proba(X_test), process_time)
    losses = [_nll(model.predict_proba(X_test), y_test) for model in (ours, theirs)]
    return f"{fit:.0f}x", f"{predict:.0f}x", f"{losses[0]:.3f} ({losses[1]:.3f})"


def _median_seconds(work: Callable[[], Any], repeats: int) -> float:
    return median(seconds(work, process_time) for _ in range(repeats))


def _nll(proba: Any, y: Any) -> float:
    return float(-np.log(np.clip(proba[np.arange(len(y)), y], _LEAST, 1)).mean())
