"""Class probabilities to be calibrated: of flat models on rows that they were not trained on."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import problems
from experiments.datasets import load

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

_LEAST = 1e-15  # of probabilities: several packages read lower ones as about this
_FOLDS = 5


@dataclass(frozen=True)
class Probabilities:
    """Probabilities and labels of calibration rows and of test rows."""

    proba: FloatArray
    y: IntArray
    test_proba: FloatArray
    test_y: IntArray

    def few(self, rows_per_class: int, seed: int) -> Probabilities:
        """Keep so many calibration rows a class in the mean, of each class its share, one at least."""
        counts = np.bincount(self.y, minlength=self.proba.shape[1])
        wanted = np.maximum(np.rint(rows_per_class * counts / counts.mean()), 1)
        order = np.lexsort((np.random.default_rng(seed).random(len(self.y)), self.y))
        sorted_y = self.y[order]
        rank = np.arange(len(order)) - np.searchsorted(sorted_y, sorted_y)
        kept = np.sort(order[rank < wanted[sorted_y]])
        return Probabilities(self.proba[kept], self.y[kept], self.test_proba, self.test_y)

    def halves(self) -> Probabilities:
        """Return the binary problem: first half of the classes (1) or the others (0)."""
        half = self.proba.shape[1] // 2
        sums = (
            np.column_stack([p[:, half:].sum(axis=1), p[:, :half].sum(axis=1)])
            for p in (self.proba, self.test_proba)
        )
        proba, test_proba = (p / p.sum(axis=1, keepdims=True) for p in sums)
        return Probabilities(proba, (self.y < half).astype(int), test_proba, (self.test_y < half).astype(int))


@dataclass(frozen=True)
class Problem:
    """A flat model's probabilities of rows that it was not trained on, divided into folds.

    Attributes
    ----------
    name, model : str
        Dataset and model.
    make : callable
        Returns probabilities and labels.
    """

    name: str
    model: str
    make: Callable[[], tuple[FloatArray, IntArray]]

    @cached_property
    def rows(self) -> tuple[FloatArray, IntArray]:
        """Probabilities, bounded from below, and labels of all rows."""
        proba, y = self.make()
        proba = np.maximum(np.asarray(proba, dtype=np.float64), _LEAST)
        return proba / proba.sum(axis=1, keepdims=True), y

    def folds(self) -> Iterator[Probabilities]:
        """Calibrate on four fifths, test on the last, in turn."""
        proba, y = self.rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes with fewer rows than folds
            parts = list(StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(proba, y))
        for old, new in parts:
            yield Probabilities(proba[old], y[old], proba[new], y[new])


def _out_of_fold(model: Any, X: Any, y: Any, n_folds: int = 3) -> tuple[FloatArray, IntArray]:
    """Probabilities of all rows, each by a model trained on the other folds."""
    codes = np.unique(y, return_inverse=True)[1]
    proba = np.zeros((len(codes), codes.max() + 1))
    for old, new in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(codes, codes):
        fitted = clone(model).fit(X[old], codes[old])
        proba[np.ix_(new, fitted.classes_)] = fitted.predict_proba(X[new])
    return proba, codes


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def cifar100() -> tuple[FloatArray, IntArray]:
    """Images, by a wide residual network whose probabilities are published."""
    data = load("cifar100_probs")
    return data.X, np.unique(data.y, return_inverse=True)[1]


def _dense(name: str, model: Any) -> tuple[FloatArray, IntArray]:
    data = load(name)
    return _out_of_fold(_scaled(model), data.X, data.y)


def _text(name: str, model: Any, *, weighted: bool) -> tuple[FloatArray, IntArray]:
    """Counts, or their log TF-IDF, of all rows."""
    data = load(name)
    X = problems.own_split(name).X if weighted else data.X
    y = problems.own_split(name).y if weighted else data.y
    return _out_of_fold(model, X, y)


def _characters(n_classes: int, model: Any) -> tuple[FloatArray, IntArray]:
    """Handwritten characters, 20 rows each."""
    data = load("omniglot")
    few = np.isin(data.y, np.unique(data.y)[:n_classes])
    return _out_of_fold(model, data.X[few] / 255, data.y[few])


def _kanji(n_classes: int, model: Any) -> tuple[FloatArray, IntArray]:
    """Printed characters in 39 fonts."""
    data = load("kanji_fonts")
    few = np.isin(data.y, np.unique(data.y)[:n_classes])
    return _out_of_fold(model, data.X[few] / 15, data.y[few])


def _mlp() -> Any:
    return MLPClassifier((128,), max_iter=40, random_state=0)


def _forest() -> Any:
    return RandomForestClassifier(random_state=0)


def _logistic(C: float = 1.0) -> Any:
    return LogisticRegression(C=C, max_iter=1000)


_LOGISTIC = "logistic regression"

PROBLEMS = (
    Problem("cifar100_probs", "wide residual network", cifar100),
    Problem("letter", "naive Bayes", lambda: _dense("letter", GaussianNB())),
    Problem("letter", "random forest", lambda: _dense("letter", _forest())),
    Problem("letter", _LOGISTIC, lambda: _dense("letter", _logistic())),
    Problem("optdigits", "random forest", lambda: _dense("optdigits", _forest())),
    Problem("clinc150", "naive Bayes", lambda: _text("clinc150", MultinomialNB(), weighted=False)),
    Problem("clinc150", _LOGISTIC, lambda: _text("clinc150", _logistic(10), weighted=True)),
    Problem("clinc150_minilm", _LOGISTIC, lambda: _dense("clinc150_minilm", _logistic())),
    Problem("reuters52", _LOGISTIC, lambda: _text("reuters52", _logistic(10), weighted=True)),
    Problem("omniglot, 400", "network", lambda: _characters(400, _mlp())),
    Problem("omniglot, 400", "naive Bayes", lambda: _characters(400, GaussianNB(var_smoothing=0.01))),
    Problem("kanji_fonts, 300", "network", lambda: _kanji(300, _mlp())),
    Problem("kanji_fonts, 300", _LOGISTIC, lambda: _kanji(300, _logistic(0.1))),
)
