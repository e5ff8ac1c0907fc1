"""`ScaledLogisticRegression`: logistic regression on standardised features, for features as they are."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import validate_data

from dichotomies._common.parallel import Context
from dichotomies._common.typing import FloatArray, Matrix
from dichotomies._common.validation import row_weights
from dichotomies.learners.base import LEARNERS, CrossFitted, Wanted
from dichotomies.learners.logistic.learner import LogisticLearner
from dichotomies.learners.weights import DenseWeights
from dichotomies.persistence import Estimator, savable
from dichotomies.persistence.checks import Array, Size
from dichotomies.rows import NodeTask, Rows

#: Rows that the variation of a feature must rest on to be trusted.
_FEWEST_ROWS = 5.0


@savable(
    "scaled-logistic-regression",
    Estimator(),
    coef_=Array("float", "n_scores", "n_features"),
    intercept_=Array("float", "n_scores"),
    n_features_in_=Size("n_features"),
)
class ScaledLogisticRegression(LogisticRegression):
    """Logistic regression whose features are standardised first, so that `C` does not depend on their units.

    It is scikit-learn's ``make_pipeline(StandardScaler(), LogisticRegression())`` in one object: the weights
    are converted back, so that predictions take the features as they are. In a nested dichotomy, features are
    standardised once, on all training rows, and not again at every node. Dense features only; parameters and
    attributes are those of scikit-learn's `LogisticRegression`.

    Features that vary in fewer than five rows are scaled down: how far they vary is not known, and new rows
    may be thousands of standard deviations away.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dichotomies import ScaledLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ScaledLogisticRegression(C=0.3).fit(X[::2], y[::2])
    >>> clf.score(X[1::2], y[1::2]) > 0.95
    True
    """

    def fit(self, X: Matrix, y: Any, sample_weight: Any = None) -> Self:
        """Standardise the features and train.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        names = getattr(self, "feature_names_in_", None)
        weight = None if sample_weight is None else row_weights(sample_weight, len(X))
        scaled = Standardised.of(X, weight)
        fitted: Any = super().fit(scaled.X, y, sample_weight)
        self.coef_, self.intercept_ = scaled.converted(fitted.coef_, fitted.intercept_)
        if names is not None:
            self.feature_names_in_ = names
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


@dataclass(frozen=True, eq=False)
class Standardised:
    """Features with mean 0 and standard deviation 1, or less if they vary in few rows; constant ones are 0.

    Attributes
    ----------
    X : (n_rows, n_features)
        The standardised features.
    mean, scale : (n_features,)
        Subtrahend and divisor of each feature.
    memo : dict
        See `Rows.remember`.
    """

    X: FloatArray
    mean: FloatArray
    scale: FloatArray
    memo: dict[Hashable, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, X: FloatArray, weight: FloatArray | None) -> Self:
        """Standardise; a row of weight 2 counts as two rows."""
        weight = np.ones(len(X)) if weight is None else weight
        total = max(float(weight.sum()), np.finfo(float).tiny)
        share = weight / total
        counted = X if weight.all() else X[weight > 0]
        largest = np.maximum(counted.max(axis=0), -counted.min(axis=0))
        tiny = np.sqrt(np.finfo(X.dtype).tiny)
        unit = np.where(largest > tiny, largest, 1).astype(X.dtype)  # so that no square over- or underflows
        Z = X / unit
        mean = share @ Z
        Z -= mean.astype(X.dtype)
        deviation = np.sqrt(np.einsum("i,ij,ij->j", share, Z, Z))
        is_constant = deviation <= 10 * np.finfo(X.dtype).eps
        deviation = np.where(is_constant, 1.0, deviation)
        Z /= deviation.astype(X.dtype)
        Z[:, is_constant] = 0.0
        n_rows = max(total, 1 / max(float(share @ share), np.finfo(float).tiny))  # also of weights below 1
        doubt = np.maximum(1.0, _FEWEST_ROWS / n_rows * _kurtosis(Z, share))
        Z /= doubt.astype(X.dtype)
        return cls(Z, mean * unit, deviation * doubt * unit)

    def converted(self, weights: FloatArray, intercept: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights and intercepts for the features as they were."""
        converted = weights / self.scale
        return converted.astype(weights.dtype), intercept - converted @ self.mean


def _kurtosis(Z: FloatArray, share: FloatArray) -> FloatArray:
    """Kurtosis of standardised features: the number of rows divided by that of rows the variation rests on.

    It is the number of rows if a feature is zero in all of them but one.
    """
    squares = Z * Z
    return np.asarray(np.einsum("i,ij,ij->j", share, squares, squares))


@LEARNERS.register("scaled-logistic")
class ScaledLogisticLearner(LogisticLearner):
    """`ScaledLogisticRegression` at all nodes together, on features that are standardised once.

    Folds share the scale of all rows, which depends on features but not on labels. `C` and `settings` are
    those of `LogisticLearner`.
    """

    equals_clones = False  # which would standardise anew at every node
    trains: ClassVar = {"scaled-logistic": ScaledLogisticRegression}

    @property
    def description(self) -> str:
        """One line for users: the name of the learner and its method."""
        return "scaled-logistic: Newton's method for all nodes together, on features standardised once"

    def fit(self, task: NodeTask, context: Context) -> DenseWeights:
        """Train all nodes; nothing is random."""
        scaled = _standardised(task.rows)
        return _converted(scaled, super().fit(_on(scaled, task), context))

    def cross_fit(self, task: NodeTask, wanted: Wanted, context: Context) -> CrossFitted:
        """Train all nodes on all rows and without each fold, every node in one visit."""
        scaled = _standardised(task.rows)
        fitted = super().cross_fit(_on(scaled, task), wanted, context)
        full = None if fitted.full is None else _converted(scaled, fitted.full)
        return CrossFitted(full, [_converted(scaled, each) for each in fitted.members], fitted.scores)


def _standardised(rows: Rows) -> Standardised:
    scaled: Standardised = rows.remember("standardised", lambda: Standardised.of(rows.X, rows.weight))
    return scaled


def _on(scaled: Standardised, task: NodeTask) -> NodeTask:
    return replace(task, rows=replace(task.rows, base=scaled.X, index=None, memo=scaled.memo))


def _converted(scaled: Standardised, scorer: Any) -> DenseWeights:
    weights, intercept = scaled.converted(scorer.weights, scorer.intercept)
    return DenseWeights(weights, intercept, scorer.is_trained)
