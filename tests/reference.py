"""The plainest nested dichotomy: recursion, one clone per node, probabilities multiplied.

Independent of the package; the tests compare with it and the benchmarks race against it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import _SigmoidCalibration


class RecursiveNestedDichotomy:
    """Trained by walking nested lists of labels from the top."""

    def __init__(self, estimator: Any, nested: Any) -> None:
        self.estimator = estimator
        self.nested = nested

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RecursiveNestedDichotomy:
        self.classes_ = np.unique(y)
        self._column = {label: i for i, label in enumerate(self.classes_.tolist())}
        codes = np.searchsorted(self.classes_, y)
        self._root = self._fit_node(self.nested, X, codes, np.arange(len(codes)), sample_weight)
        return self

    def _codes_below(self, nested: Any) -> list[int]:
        if isinstance(nested, list | tuple):
            return self._codes_below(nested[0]) + self._codes_below(nested[1])
        return [self._column[nested]]

    def _fit_node(self, nested: Any, X: Any, codes: Any, rows: Any, sample_weight: Any) -> Any:
        if not isinstance(nested, list | tuple):
            return self._column[nested]
        is_left = np.isin(codes[rows], self._codes_below(nested[0]))
        params = {} if sample_weight is None else {"sample_weight": sample_weight[rows]}
        model = clone(self.estimator).fit(X[rows], is_left, **params)
        left = self._fit_node(nested[0], X, codes, rows[is_left], sample_weight)
        right = self._fit_node(nested[1], X, codes, rows[~is_left], sample_weight)
        return model, left, right

    def predict_proba(self, X: Any) -> Any:
        out = np.empty((X.shape[0], len(self.classes_)))
        self._fill(self._root, X, np.ones(X.shape[0]), out)
        return out

    def _fill(self, node: Any, X: Any, reach: Any, out: Any) -> None:
        if not isinstance(node, tuple):
            out[:, node] = reach
            return
        model, left, right = node
        probabilities = model.predict_proba(X)
        self._fill(left, X, reach * probabilities[:, 1], out)
        self._fill(right, X, reach * probabilities[:, 0], out)


class CalibratedNode(ClassifierMixin, BaseEstimator):
    """Platt scaling of any classifier: one clone per fold, scikit-learn's own sigmoid, one more clone."""

    def __init__(self, estimator: Any, n_folds: int = 3, bound: float = 200.0) -> None:
        self.estimator = estimator
        self.n_folds = n_folds
        self.bound = bound

    def fit(self, X: Any, y: Any) -> CalibratedNode:
        self.classes_ = np.unique(y)
        fold = np.empty(len(y), dtype=int)
        for side in (y, ~y):
            fold[side] = np.arange(side.sum()) % self.n_folds
        scores = np.empty(len(y))
        for f in range(self.n_folds):
            model = clone(self.estimator).fit(X[fold != f], y[fold != f])
            scores[fold == f] = self._log_odds(model, X[fold == f])
        self._sigmoid = _SigmoidCalibration().fit(scores, y)
        self._model = clone(self.estimator).fit(X, y)
        return self

    def predict_proba(self, X: Any) -> Any:
        positive = self._sigmoid.predict(self._log_odds(self._model, X))
        return np.column_stack([1 - positive, positive])

    def _log_odds(self, model: Any, X: Any) -> Any:
        if hasattr(model, "decision_function"):
            scores = model.decision_function(X)
        else:
            log_proba = model.predict_log_proba(X)
            scores = log_proba[:, 1] - log_proba[:, 0]
        return np.clip(scores, -self.bound, self.bound)
