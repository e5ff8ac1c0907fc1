"""Class probabilities to be calibrated: of models on rows that they were not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from benchmarks import problems
from dichotomies import NestedDichotomyClassifier
from experiments.datasets import load

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

_LEAST = 1e-15  # of probabilities: several packages read lower ones as about this


@dataclass(frozen=True)
class Probabilities:
    """Probabilities and labels of calibration rows and of test rows."""

    name: str
    proba: FloatArray
    y: IntArray
    test_proba: FloatArray
    test_y: IntArray

    @classmethod
    def of(cls, name: str, proba: FloatArray, y: IntArray) -> Probabilities:
        """Divide rows into calibration and test rows at random."""
        proba = np.maximum(np.asarray(proba, dtype=np.float64), _LEAST)
        proba /= proba.sum(axis=1, keepdims=True)
        order = np.random.default_rng(0).permutation(len(y))
        old, new = order[: len(y) // 2], order[len(y) // 2 :]
        return cls(name, proba[old], y[old], proba[new], y[new])

    def halves(self) -> Probabilities:
        """Return the binary problem: first half of the classes (1) or the others (0)."""
        half = self.proba.shape[1] // 2
        sums = (
            np.column_stack([p[:, half:].sum(axis=1), p[:, :half].sum(axis=1)])
            for p in (self.proba, self.test_proba)
        )
        proba, test_proba = (p / p.sum(axis=1, keepdims=True) for p in sums)
        return Probabilities(
            self.name, proba, (self.y < half).astype(int), test_proba, (self.test_y < half).astype(int)
        )


def _of_model(name: str, model: Any, X: Any, y: Any, is_train: Any) -> Probabilities:
    codes = np.unique(y, return_inverse=True)[1]
    proba = model.fit(X[is_train], codes[is_train]).predict_proba(X[~is_train])
    return Probabilities.of(name, proba, codes[~is_train])


def _two_fifths(n_rows: int) -> Any:
    return np.random.default_rng(0).random(n_rows) < 0.4


def _tree(estimator: Any) -> NestedDichotomyClassifier:
    return NestedDichotomyClassifier(estimator, "2-means", external_calibration=None, random_state=0)


def cifar100_probs() -> Probabilities:
    """Images, by a wide residual network."""
    data = load("cifar100_probs")
    return Probabilities.of(data.name, data.X, np.unique(data.y, return_inverse=True)[1])


def letter() -> Probabilities:
    """Letters, by Gaussian naive Bayes."""
    data = load("letter")
    return _of_model("letter", GaussianNB(), data.X, data.y, _two_fifths(len(data.y)))


def optdigits() -> Probabilities:
    """Digits, by a random forest."""
    data = load("optdigits")
    forest = RandomForestClassifier(random_state=0)
    return _of_model("optdigits", forest, data.X, data.y, _two_fifths(len(data.y)))


def clinc150() -> Probabilities:
    """Intents, by multinomial naive Bayes."""
    data = load("clinc150")
    is_train = np.isin(np.arange(len(data.y)), data.extra["train_idx"])
    return _of_model("clinc150", MultinomialNB(), data.X, data.y, is_train)


def reuters52() -> Probabilities:
    """News, by a tree of logistic regressions."""
    problem = problems.own_split("reuters52")
    model = _tree(LogisticRegression(C=10, max_iter=1000)).fit(problem.X, problem.y)
    return Probabilities.of("reuters52", model.predict_proba(problem.X_test), problem.y_test)


def omniglot() -> Probabilities:
    """Characters of ten drawers, by a tree of logistic regressions that has seen ten others."""
    data = load("omniglot")
    few = np.isin(data.y, np.unique(data.y)[:200])
    X, y, drawer = data.X[few] / 255, data.y[few], data.extra["drawer"][few]
    return _of_model("omniglot", _tree(LogisticRegression(C=0.1, max_iter=1000)), X, y, drawer <= 10)


PROBLEMS = (cifar100_probs, letter, optdigits, clinc150, reuters52, omniglot)
