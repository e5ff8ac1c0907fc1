"""A trained node: a fitted scikit-learn classifier and the method that gives its log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from dichotomies._common.typing import FloatArray, Matrix
from dichotomies._kernels.log_odds import from_log_probabilities, from_probabilities
from dichotomies.persistence import savable
from dichotomies.persistence.checks import expect

#: Number of rows on which a decision function must agree with predict_proba to be taken as log-odds.
_PROBE_ROWS = 16

#: Methods of classifiers that log-odds are computed from.
_METHODS = ("decision_function", "predict_log_proba", "predict_proba")

#: Log-odds beyond which probabilities are saturated and do not determine the score.
_SATURATED = 10.0


@savable("fitted-node", method=str, sign=float, prior=float)
@dataclass(frozen=True)
class FittedNode:
    """A trained clone and the method that gives its log-odds.

    Attributes
    ----------
    estimator : fitted classifier or None
        None if the node had training rows on one side only; its log-odds are then `prior`.
    method : str
        The method that gives log-odds, see `_probability_method`.
    sign : float
        +1 where the clone's positive class is the left side, -1 where it is the right.
    prior : float
        Smoothed log-odds of the left side among the training rows (Laplace's rule of succession).
    """

    estimator: Any
    method: str
    sign: float
    prior: float

    @classmethod
    def constant(cls, prior: float) -> FittedNode:
        """Create a node that had training rows on one side only."""
        return cls(None, "prior", 1.0, prior)

    @classmethod
    def read(cls, estimator: Any, X: Matrix, left_is_positive: bool, prior: float) -> FittedNode:
        """Determine method and sign of a classifier that was fitted on `X`."""
        sign = (1.0 if left_is_positive else -1.0) * _orientation(estimator)
        return cls(estimator, _probability_method(estimator, X), sign, prior)

    def log_odds(self, X: Matrix, out: FloatArray) -> None:
        """Write the log-odds of going left for each row."""
        if self.estimator is None:
            out[:] = self.prior
            return
        answer = np.asarray(getattr(self.estimator, self.method)(X), dtype=np.float64)
        if self.method == "decision_function":
            np.multiply(answer.reshape(len(out)), self.sign, out=out)
            return
        if answer.shape != (len(out), 2):
            name = type(self.estimator).__name__
            raise ValueError(f"{name}.{self.method} answered with shape {answer.shape}, not (n_rows, 2).")
        if self.method == "predict_log_proba":
            from_log_probabilities(answer, self.sign, out)
        else:
            from_probabilities(answer, self.sign, out)

    def check_relations(self, names: dict[str, Any]) -> None:  # noqa: ARG002 - called by `check`
        """Raise unless `method` is one that gives log-odds; see `dichotomies.persistence.checks`."""
        if self.estimator is None:
            expect(self.method == "prior", "a node without an estimator gives its prior")
        else:
            answers = self.method in _METHODS and callable(getattr(self.estimator, self.method, None))
            expect(answers, f"the log-odds of a node come from one of {_METHODS}")


def _orientation(estimator: Any) -> int:
    """Return +1 if the classes of a fitted classifier are [0, 1], -1 if they are [1, 0]."""
    classes = np.asarray(getattr(estimator, "classes_", [0, 1])).tolist()
    if classes not in ([0, 1], [1, 0]):
        name = type(estimator).__name__
        raise ValueError(f"{name} was fitted on the classes 0 and 1, but its classes_ are {classes}.")
    return 1 if classes == [0, 1] else -1


def _probability_method(estimator: Any, X: Matrix) -> str:
    """Choose the method of a fitted classifier that gives its log-odds most accurately.

    A decision function is taken only if it *is* the log-odds of predict_proba. That is known of some
    estimators and tested on a few rows for all others, including pipelines and third-party estimators.
    Second choice are log-probabilities, which may not have been rounded to 0 or 1.
    """
    kind = type(estimator)
    if kind.__module__.startswith("sklearn.") and kind.__name__ in _KNOWN_METHODS:
        return _KNOWN_METHODS[kind.__name__]
    if not hasattr(estimator, "predict_proba"):
        return "decision_function"  # scores, to be calibrated
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if scores.ndim == 1 and _is_log_odds(estimator, X, scores):
            return "decision_function"
    return "predict_log_proba" if hasattr(estimator, "predict_log_proba") else "predict_proba"


def _is_log_odds(estimator: Any, X: Matrix, scores: FloatArray) -> bool:
    """Test it on the rows nearest to the boundary; far from it, any probability rounds to 0 or 1."""
    near = np.argsort(np.abs(scores))[:_PROBE_ROWS]
    positive = np.asarray(estimator.predict_proba(X[near]), dtype=np.float64)[:, 1]
    unsaturated = np.abs(scores[near]) < _SATURATED
    unlikelier = np.where(scores[near] > 0, 1.0 - positive, positive)  # more digits than near 1
    expected = expit(-np.abs(scores[near]))
    return bool(unsaturated.any()) and np.allclose(expected, unlikelier, rtol=1e-4, atol=1e-6)


#: Methods of scikit-learn's estimators that need not be tested. Naive Bayes computes log-probabilities and
#: exponentiates them; trees compute probabilities and take their logarithm, which `log_odds` does as well.
_KNOWN_METHODS = {
    "LogisticRegression": "decision_function",
    "LogisticRegressionCV": "decision_function",
    "BernoulliNB": "predict_log_proba",
    "ComplementNB": "predict_log_proba",
    "GaussianNB": "predict_log_proba",
    "MultinomialNB": "predict_log_proba",
    "DecisionTreeClassifier": "predict_proba",
    "ExtraTreesClassifier": "predict_proba",
    "RandomForestClassifier": "predict_proba",
}
