"""What the benchmarks are run on: real data, prepared as its users would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer

from dichotomies.rows.folds import hold_out
from dichotomies.structures import STRUCTURES
from experiments.datasets import load

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, IntArray, Matrix
    from dichotomies.tree import ClassTree


@dataclass(frozen=True)
class Problem:
    """Rows to train on, rows to test on, and a random tree over the classes."""

    name: str
    X: Matrix
    y: IntArray
    X_test: Matrix
    y_test: IntArray

    @property
    def tree(self) -> ClassTree:
        """The paper's kind of tree."""
        tree: ClassTree = STRUCTURES.create("random").grow(None, self.y, random_state=0)
        return tree

    @property
    def size(self) -> str:
        """Rows, features and classes, for tables."""
        return f"{self.X.shape[0]:,} x {self.X.shape[1]:,}, {self.tree.n_classes:,} classes"


def _divided(name: str, X: Any, y: Any, test: BoolArray) -> Problem:
    codes = np.unique(y, return_inverse=True)[1]
    return Problem(name, X[~test], codes[~test], X[test], codes[test])


def letter() -> Problem:
    """Letters, in sixteen numbers."""
    data = load("letter")
    return _divided("letter", data.X / 15, data.y, np.isin(np.arange(len(data.y)), data.extra["test_idx"]))


def omniglot(n_classes: int | None = None) -> Problem:
    """Handwritten characters; the last five of twenty drawers are for testing."""
    data = load("omniglot")
    few = np.isin(data.y, np.unique(data.y)[:n_classes])
    return _divided("omniglot", data.X[few] / 255, data.y[few], data.extra["drawer"][few] > 15)


def kanji_fonts(n_classes: int | None = None) -> Problem:
    """Printed kanji; one font in ten is for testing."""
    data = load("kanji_fonts")
    few = np.isin(data.y, np.unique(data.y)[:n_classes])
    return _divided("kanji_fonts", data.X[few] / 255, data.y[few], data.extra["font"][few] % 10 == 0)


def text(name: str, *, weighted: bool, n_classes: int | None = None) -> Problem:
    """Short texts as counts of words, or weighted (log TF-IDF, unit rows); one row in ten is for testing."""
    data = load(name)
    few = np.isin(data.y, np.unique(data.y)[:n_classes])
    X, codes = data.X[few], np.unique(data.y[few], return_inverse=True)[1]
    problem = _divided(name, X, codes, hold_out(codes, 0.1, np.random.RandomState(0)))
    return tfidf(problem) if weighted else problem


def own_split(name: str) -> Problem:
    """Short texts, weighted, on the training and test rows that the data come with."""
    data = load(name)
    codes = np.unique(data.y, return_inverse=True)[1]
    train, test = data.extra["train_idx"], data.extra["test_idx"]
    return tfidf(Problem(name, data.X[train], codes[train], data.X[test], codes[test]))


def tfidf(problem: Problem) -> Problem:
    """Log TF-IDF, unit rows."""
    weighting = TfidfTransformer(sublinear_tf=True).fit(problem.X)
    X, X_test = weighting.transform(problem.X), weighting.transform(problem.X_test)
    return Problem(problem.name, X, problem.y, X_test, problem.y_test)
