"""Random calls of the public interface with ordinary and absurd arguments, and what must come of them.

A call either raises a documented exception (a `ValueError` or a `TypeError`) with a sentence, or gives finite
probabilities that sum to 1. A test makes some calls, ``python -m benchmarks.robustness`` very many.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

from dichotomies import (
    HistAdaBoostClassifier,
    HistGradientBoostClassifier,
    NestedDichotomyClassifier,
    NestedDichotomyEnsemble,
    TunedLogisticRegression,
)
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.structures import STRUCTURES

_SCALES = [0.0, 1e-320, 1e-200, 1e-8, 1.0, 1.0, 1.0, 1e8, 1e99, 1e120, 1e300]
_ODD = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, 5e-324]


@dataclass
class Findings:
    """What came of the calls so far.

    Attributes
    ----------
    answers, refusals : int
        Calls that gave probabilities, and that raised a documented exception.
    wrong : list of str
        Descriptions of all others.
    """

    answers: int = 0
    refusals: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def n_calls(self) -> int:
        """Number of calls."""
        return self.answers + self.refusals + len(self.wrong)


class Caller:
    """Makes random calls; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.findings = Findings()

    def make(self, n_calls: int) -> Findings:
        """Go on until at least so many calls have been made."""
        while self.findings.n_calls < n_calls:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                self._one_classifier()
        return self.findings

    def _one_classifier(self) -> None:
        """Fit a random classifier to random rows; if that is possible, ask it what it can be asked."""
        n_rows, n_features = int(self._rng.integers(0, 30)), int(self._rng.integers(0, 6))
        clf, X, y = self._classifier(), self._features(n_rows, n_features), self._labels(n_rows)
        weight = self._weights(n_rows)
        if self._call("fit", clf, lambda: clf.fit(X, y, sample_weight=weight)) is None:
            return
        for _ in range(6):
            rows = (
                X if self._rng.random() < 0.3 else self._features(int(self._rng.integers(0, 9)), n_features)
            )
            way = self._one_of(["predict_proba", "predict_log_proba", "predict", "predict_top_k"])
            self._call(way, clf, lambda way=way, rows=rows: self._asked(clf, way, rows))

    def _asked(self, clf: Any, way: str, rows: Any) -> Any:
        if way == "predict_top_k" and hasattr(clf, way):
            labels, proba = clf.predict_top_k(rows, self._one_of([1, 2, 5, 100]))
            _expect(labels.shape == proba.shape, "a probability for each label")
            _expect(np.isfinite(proba).all() and (proba <= 1 + 1e-9).all(), "probabilities")
            return proba
        if way == "predict":
            labels = clf.predict(rows)
            _expect(np.isin(labels, clf.classes_).all(), "labels are classes")
            return labels
        proba = np.exp(clf.predict_log_proba(rows)) if way == "predict_log_proba" else clf.predict_proba(rows)
        _expect(np.isfinite(proba).all(), "finite probabilities")
        _expect(np.abs(proba.sum(axis=1) - 1).max(initial=0) < 1e-6, "rows that sum to 1")
        return proba

    def _call(self, name: str, clf: Any, call: Any) -> Any:
        try:
            answer = call()
        except (ValueError, TypeError) as refusal:
            if str(refusal).strip():
                self.findings.refusals += 1
            else:
                self._note(name, clf, "an exception without a sentence")
            return None
        except Exception as error:
            self._note(name, clf, repr(error))
            return None
        self.findings.answers += 1
        return answer

    def _note(self, name: str, clf: Any, what: str) -> None:
        self.findings.wrong.append(f"{name} of {' '.join(repr(clf).split())}: {what}")

    # ------------------------------------------------------------------ arguments

    def _one_of(self, values: Any) -> Any:
        return values[int(self._rng.integers(len(values)))]

    def _classifier(self) -> Any:
        base = self._one_of(
            [
                LogisticRegression(max_iter=20),
                TunedLogisticRegression(Cs=[0.1, 10.0], max_iter=20),
                GaussianNB(),
                MultinomialNB(),
                ComplementNB(),
                BernoulliNB(),
                HistAdaBoostClassifier(3),
                HistGradientBoostClassifier(3),
                DecisionTreeClassifier(max_depth=2),
            ]
        )
        settings = {
            "structure": self._one_of([*STRUCTURES.names(), "no such structure"]),
            "internal_calibration": self._one_of([None, None, *BINARY.names()]),
            "external_calibration": self._one_of([None, "vector", *MULTICLASS.names()]),
            "calibration_size": self._one_of([0.1, 0.5, "cross-fit", "cross-fit", 2.0]),
            "cv": self._one_of([2, 3, 3, 100, 0]),
            "random_state": 0,
        }
        if self._rng.random() < 0.2:
            return NestedDichotomyEnsemble(base, n_estimators=int(self._rng.integers(0, 4)), **settings)
        return NestedDichotomyClassifier(base, **settings)

    def _features(self, n_rows: int, n_features: int) -> Any:
        X = self._rng.standard_normal((n_rows, n_features)) * self._one_of(_SCALES)
        kind = self._rng.random()
        if kind < 0.3:
            X = np.abs(X)
        elif kind < 0.4:
            X = np.round(X)
        elif kind < 0.5 and X.size:
            X.flat[int(self._rng.integers(X.size))] = self._one_of(_ODD)
        elif kind < 0.55:
            X = np.repeat(X[:1], n_rows, axis=0)
        form = self._one_of(
            [None] * 5 + [csr_array, csc_array, coo_array, np.asfortranarray, "single", "objects"]
        )
        if form == "single":
            return X.astype(np.float32)
        if form == "objects":
            return X.astype(object)
        X = X if form is None else form(X)
        if form is csr_array and X.nnz and self._rng.random() < 0.2:
            X.indices[0] = self._one_of([-1, n_features, 2**31 - 1])
        return X

    def _labels(self, n_rows: int) -> Any:
        codes = self._rng.integers(0, int(self._rng.integers(1, 9)), size=n_rows)
        kind = self._one_of(["codes"] * 4 + ["text", "big", "floats", "objects", "mixed", "short"])
        if kind == "text":
            return codes.astype(str)
        if kind == "big":
            return codes + 2**60
        if kind == "floats":
            return codes + self._one_of([0.0, 0.5, np.nan])
        if kind == "objects":
            return codes.astype(str).astype(object)
        if kind == "mixed":
            return [str(code) if code % 2 else int(code) for code in codes]
        return codes[:-1] if kind == "short" else codes

    def _weights(self, n_rows: int) -> Any:
        if self._rng.random() < 0.6:
            return None
        weight = self._rng.random(n_rows) * self._one_of([0.0, 1e-320, 1e-293, 1e-200, 1.0, 1e200, 1e307])
        if n_rows and self._rng.random() < 0.3:
            weight[int(self._rng.integers(n_rows))] = self._one_of(_ODD)
        return weight


def _expect(holds: Any, what: str) -> None:
    if not holds:
        raise AssertionError(f"not {what}")
