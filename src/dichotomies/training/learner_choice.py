"""Choice of the base learner by out-of-fold NLL, where the user names none.

Candidates are tried on a sample, on one tree: "2-means". The rows are drawn with a fixed seed, and nothing
depends on clocks, so that the same rows give the same choice.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

import dichotomies.learners.naive_bayes  # noqa: F401 - a candidate: so that it is found first
from dichotomies.calibrators.multiclass.temperature import TemperatureScaling
from dichotomies.learners import choose
from dichotomies.learners.logistic import ScaledLogisticRegression
from dichotomies.rows import NodeTask, Rows
from dichotomies.rows.folds import sample_in_folds
from dichotomies.structures import STRUCTURES, GrowingTask
from dichotomies.training.judging import JUDGING_FOLDS, calibrated_nll, only_present

if TYPE_CHECKING:
    from dichotomies._common.typing import Matrix
    from dichotomies.learners import Learner
    from dichotomies.learners.boosting import HistGradientBoostClassifier
    from dichotomies.training.plan import Plan

#: Rows that candidates are tried on: this share of them, within these bounds.
_SHARE, _LEAST_ROWS, _MOST_ROWS = 0.2, 3_000, 5_000
#: Classes from which on all rows of some classes are drawn, instead of some rows of every class.
_MANY_CLASSES = 100
#: Boosted trees are tried on at least so many rows, since fewer do not pay for kernels that may have to be
#: compiled, with at most so many features, and at least so many rows per class on average.
_MANY_ROWS, _MOST_FEATURES, _ROWS_PER_CLASS = 3_000, 200, 10
#: Share by which a candidate must lower the NLL of those before it, which are simpler or quicker; the second,
#: divided by the root of the number of rows, is what chance may do.
_LEAST_GAIN, _CHANCE = 0.02, 0.5

#: C times the mean squared length of a row; other steps are tried where the first of these is no worse.
_C_FIRST, _C_NEXT = (10.0, 100.0), {10.0: 1.0, 100.0: 1_000.0}
#: The largest, and the share of the NLL that each step beyond those, and the one before it, must save: a few
#: features that separate many classes need it, while on texts more is not better on all rows.
_MOST_C, _WORTH_C = 100_000.0, 0.1


@dataclass(frozen=True)
class LearnerChoice:
    """The estimator chosen for the nodes.

    Attributes
    ----------
    estimator : scikit-learn classifier
        Unfitted.
    learner : Learner
        The way to train it at all nodes.
    nll : dict
        Out-of-fold NLL of every candidate, in the order in which they were tried.
    n_rows : int
        Number of rows they were tried on.
    """

    estimator: Any
    learner: Learner
    nll: dict[str, float]
    n_rows: int

    def __str__(self) -> str:
        if not self.nll:
            return f"{named(self.estimator)} is the only candidate that takes missing values"
        mine = named(self.estimator)
        others = sorted((nll, name) for name, nll in self.nll.items() if name != mine)
        second = ""
        if others:
            least, name = others[0]
            second = f" ({name}: {least:.3f}{', not clearly lower' if least < self.nll[mine] else ''})"
        return (
            f"chosen of {len(self.nll)} by NLL out of fold on {self.n_rows:,} rows: "
            f"{mine} {self.nll[mine]:.3f}{second}"
        )


def choose_learner(plan: Plan, rows: Rows) -> LearnerChoice:
    """Choose the estimator with the lowest out-of-fold NLL; a simpler one if it is nearly as good."""
    if _has_missing(rows.X):
        if not isinstance(rows.X, np.ndarray):
            raise ValueError("X is sparse and has missing values (NaN): impute them, or give dense rows.")
        return LearnerChoice(boosted_trees(), choose(boosted_trees()), {}, 0)
    trial = _Trial.on(plan, rows)
    best, n_rows = _best_logistic(trial), len(trial.task.rows)
    gain = max(_LEAST_GAIN, _CHANCE / math.sqrt(n_rows))
    for estimator in _others(rows):
        if trial.nll(estimator) < (1 - gain) * trial.nll(best):
            best = estimator
    return LearnerChoice(best, choose(best), trial.found, n_rows)


def _best_logistic(trial: _Trial) -> Any:
    """Logistic regression with the best of a few C, on features as they are or standardised."""
    rows = trial.task.rows
    ways: list[tuple[type[LogisticRegression], float]] = [(LogisticRegression, _squared_length(rows))]
    if isinstance(rows.X, np.ndarray):
        ways.append((ScaledLogisticRegression, float(rows.n_features)))

    def made(way: tuple[type[LogisticRegression], float], strength: float) -> Any:
        kind, length = way
        return kind(C=_rounded(strength / length))

    best_way = min(ways, key=lambda way: trial.nll(made(way, _C_FIRST[0])))

    def nll(strength: float) -> float:
        return trial.nll(made(best_way, strength))

    best = min(_C_FIRST, key=nll)
    best, before = min((best, _C_NEXT[best]), key=nll), best
    while before < best < _MOST_C and all(
        nll(b) < (1 - _WORTH_C) * nll(a) for a, b in ((before, best), (best, 10 * best))
    ):
        best, before = 10 * best, best
    return made(best_way, best)


def _others(rows: Rows) -> list[Any]:
    """Candidates beside logistic regression that suit the features."""
    is_dense = isinstance(rows.X, np.ndarray)
    others: list[Any] = [GaussianNB()] if is_dense else []
    if (rows.X if is_dense else rows.X.data).min(initial=0) >= 0:
        others += [MultinomialNB(), MultinomialNB(alpha=0.1)]
    if (
        is_dense
        and len(rows) >= _MANY_ROWS
        and rows.n_features <= _MOST_FEATURES
        and len(rows) >= _ROWS_PER_CLASS * rows.n_classes
    ):
        others.append(boosted_trees())
    return others


def boosted_trees() -> HistGradientBoostClassifier:
    """The candidate that also takes missing values."""
    from dichotomies.learners.boosting import HistGradientBoostClassifier  # takes long to import

    return HistGradientBoostClassifier()


@dataclass(frozen=True, eq=False)
class _Trial:
    """Rows and a tree that candidates are tried on, and the NLLs found."""

    plan: Plan
    task: NodeTask
    found: dict[str, float]

    @classmethod
    def on(cls, plan: Plan, rows: Rows) -> _Trial:
        rng = np.random.RandomState(0)
        most = int(np.clip(_SHARE * len(rows), _LEAST_ROWS, _MOST_ROWS))
        whole = rows.n_classes >= _MANY_CLASSES
        sample = only_present(sample_in_folds(rows, most, JUDGING_FOLDS, rng, whole_classes=whole))
        tree = STRUCTURES.create("2-means").grow_from(GrowingTask(sample), rng)
        return cls(plan, NodeTask(sample, tree), {})

    def nll(self, estimator: Any) -> float:
        """Mean out-of-fold NLL, as it will be after calibration."""
        name = named(estimator)
        if name not in self.found:
            with warnings.catch_warnings():  # of candidates; the one chosen is trained again
                warnings.simplefilter("ignore", ConvergenceWarning)
                plan = replace(self.plan, learner=choose(estimator))
                self.found[name] = calibrated_nll(plan, self.task, TemperatureScaling())
        return self.found[name]


def named(estimator: Any) -> str:
    """Name an estimator by its class and the parameters that are not at their defaults."""
    return " ".join(repr(estimator).split())


def _squared_length(rows: Rows) -> float:
    """Mean squared distance of rows from their mean or, where they are sparse, from zero."""
    X, total = rows.X, max(float(rows.class_weight.sum()), np.finfo(float).tiny)
    share = np.full(len(rows), 1 / total) if rows.weight is None else rows.weight / total
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(X, np.ndarray):
            length = float(share @ np.square(X - share @ X, dtype=np.float64).sum(axis=1))
        else:
            length = float(share @ np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return length if 0 < length < np.inf else 1.0


def _rounded(value: float) -> float:
    """Two digits, so that it can be said and repeated."""
    return float(f"{value:.2g}") if math.isfinite(value) else 1.0


def _has_missing(X: Matrix) -> bool:
    values = X if isinstance(X, np.ndarray) else X.data
    return bool(np.isnan(values.sum(dtype=np.float64))) and bool(np.isnan(values).any())
