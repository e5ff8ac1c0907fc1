"""`HistAdaBoostClassifier` and `HistGradientBoostClassifier`: boosted small trees for two classes."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from dichotomies._common.weights import row_weights
from dichotomies._kernels.boosting.ensembles import DISCRETE, GRADIENT, REAL, Boosting
from dichotomies.learners.boosting.binning import bin_rows
from dichotomies.learners.boosting.trees import BoostedTrees, Ranges
from dichotomies.persistence import Estimator, savable
from dichotomies.persistence.checks import Part, Size, declares

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray, FloatArray, LabelArray, Matrix

#: Minimum Hessian of a leaf, as in scikit-learn's gradient boosting.
_MIN_HESSIAN = 1e-3


@declares(n_features_in_=Size("n_features"), _trees=Part(BoostedTrees, "n_features", n_nodes=1))
class _HistBoostClassifier(ClassifierMixin, BaseEstimator):
    """Base class of both: everything but the boosting algorithm."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 1, 8, closed="both")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "max_bins": [Interval(Integral, 2, 255, closed="both")],
    }

    max_bins: int

    @abstractmethod
    def boosting_parameters(self) -> Boosting:
        """The parameters in the form kernels take."""

    def fit(self, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Bin the features and boost trees.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)
            Finite numbers.
        y : array of shape (n_rows,)
            Two different labels.
        sample_weight : array of shape (n_rows,), optional
            A row of weight 0 counts as absent.

        Returns
        -------
        self
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        weight = row_weights(sample_weight, len(X))
        is_positive = self._validated_target(y, weight)
        # the positive class is on the left, so that log-odds are those of the second class
        rows = np.argsort(~is_positive, kind="stable")
        bins = bin_rows(X, rows, None if sample_weight is None else weight, self.max_bins)
        split, end = int(is_positive.sum()), len(rows)
        ranges = Ranges(np.array([0]), np.array([split]), np.array([end]), np.array([True]))
        self._trees = BoostedTrees.train(bins, ranges, self.boosting_parameters(), weight[rows])
        return self

    def _validated_target(self, y: Any, weight: FloatArray) -> BoolArray:
        """Set `classes_`, and mark the rows of the second class."""
        check_classification_targets(y)
        name = type(self).__name__
        if (kind := type_of_target(y, input_name="y")) != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}. For more "
                f"classes, train it at the nodes of a tree: NestedDichotomyClassifier({name}())."
            )
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(np.unique(codes[weight > 0])) < 2:
            raise ValueError("A classifier needs rows of two classes, but y has only one class.")
        is_positive: BoolArray = codes == 1
        return is_positive

    def decision_function(self, X: Matrix) -> FloatArray:
        """Log-odds of the second class.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        X = self._validated_for_prediction(X)
        return self._trees.log_odds(X)[:, 0]

    def staged_decision_function(self, X: Matrix) -> Iterator[FloatArray]:
        """Log-odds of the second class by the first tree, by the first two, and so on.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)

        Yields
        ------
        ndarray of shape (n_rows,)
        """
        X = self._validated_for_prediction(X)
        for stages in range(1, self.n_trees_ + 1):
            yield self._first_trees(stages).log_odds(X)[:, 0]

    def _first_trees(self, n: int) -> BoostedTrees:
        trees = self._trees
        cut = trees.feature[:n], trees.threshold[:n], trees.value[:n], np.array([0, n])
        return BoostedTrees(*cut, trees.base, self._scale(trees.value[:n]), trees.is_trained)

    @abstractmethod
    def _scale(self, value: FloatArray) -> FloatArray:
        """Factor of the sum of these trees' values."""

    def predict_proba(self, X: Matrix) -> FloatArray:
        """Probabilities of both classes.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, 2)
        """
        log_odds = self.decision_function(X)
        proba: FloatArray = expit(np.column_stack([-log_odds, log_odds]))
        return proba

    def predict_log_proba(self, X: Matrix) -> FloatArray:
        """Logarithms of the probabilities of both classes.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, 2)
        """
        log_odds = self.decision_function(X)
        log_proba: FloatArray = log_expit(np.column_stack([-log_odds, log_odds]))
        return log_proba

    def predict(self, X: Matrix) -> LabelArray:
        """Predict the more probable class of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        positive = (self.decision_function(X) > 0).astype(np.intp)
        labels: LabelArray = self.classes_[positive]
        return labels

    def _validated_for_prediction(self, X: Matrix) -> FloatArray:
        check_is_fitted(self)
        checked: FloatArray = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return checked

    @property
    def n_trees_(self) -> int:
        """Number of trees: fewer than `n_estimators` where boosting stopped early."""
        check_is_fitted(self)
        return len(self._trees.feature)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_trees")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@savable("hist-ada-boost-classifier", Estimator(["_trees"]))
class HistAdaBoostClassifier(_HistBoostClassifier):
    """AdaBoost of small decision trees on binned features, for two classes.

    A fast implementation of the paper's boosted trees. If no feature has more than `max_bins` distinct
    values, ``algorithm="discrete"`` gives the splits and probabilities of scikit-learn's
    ``AdaBoostClassifier(DecisionTreeClassifier(max_depth=3))`` up to ties between splits: scikit-learn breaks
    them at random; here they go to the first feature in an order that changes from tree to tree, and to the
    lowest threshold. Training is deterministic.
    For more than two classes, train it at the nodes of a tree with `NestedDichotomyClassifier`, which bins
    the rows once for all nodes; if no feature has more than `max_bins` distinct values, the result is exactly
    that of one clone per node.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees; boosting stops early if a tree makes no error or is no better than guessing.
    max_depth : int, default=3
        Depth of every tree, at most 8.
    learning_rate : float, default=1.0
        Shrinkage: factor of the logarithm of every weight update.
    algorithm : {"discrete", "real"}, default="discrete"
        "discrete" (SAMME) sums weighted votes of the trees; the log-odds are twice their weighted mean, and
        so within -2 and 2: they rank well, but need calibration. "real" (SAMME.R, as in scikit-learn up to
        version 1.5) averages the log-odds of the trees' leaves.
    min_samples_leaf : int, default=1
        Minimum number of rows in a leaf.
    max_bins : int, default=255
        Maximum number of bins; a feature with more distinct values is binned into quantiles.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    n_trees_ : int
        Number of trees; 0 if no split is better than guessing, in which case all probabilities are
        one half.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit, if `X` was a data frame with string column names.

    References
    ----------
    Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost*, Statistics and its Interface 2 (2009).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dichotomies.learners.boosting import HistAdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = HistAdaBoostClassifier(n_estimators=20).fit(X[::2], y[::2])
    >>> clf.score(X[1::2], y[1::2]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_HistBoostClassifier._parameter_constraints,
        "algorithm": [StrOptions({"discrete", "real"})],
    }

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        max_depth: int = 3,
        learning_rate: float = 1.0,
        algorithm: str = "discrete",
        min_samples_leaf: int = 1,
        max_bins: int = 255,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.algorithm = algorithm
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins

    def boosting_parameters(self) -> Boosting:
        """Return the parameters as kernels take them."""
        kind = REAL if self.algorithm == "real" else DISCRETE
        size = int(self.n_estimators), int(self.max_depth)
        return Boosting(kind, *size, float(self.learning_rate), int(self.min_samples_leaf), 0.0, 0.0)

    def _scale(self, value: FloatArray) -> FloatArray:
        if self.algorithm == "real":
            return np.array([1 / len(value)])
        return np.array([2 / np.abs(value).max(axis=1).sum()])


@savable("hist-gradient-boost-classifier", Estimator(["_trees"]))
class HistGradientBoostClassifier(_HistBoostClassifier):
    """Gradient boosting of small decision trees on binned features, for two classes.

    Minimises the logistic loss, with Newton steps in the leaves. If no feature has more than `max_bins`
    distinct values, it gives the splits and probabilities of scikit-learn's
    ``HistGradientBoostingClassifier(max_iter=n_estimators, max_depth=max_depth, max_leaf_nodes=None,
    early_stopping=False)`` up to ties. For more than two classes, train it at the nodes of a tree with
    `NestedDichotomyClassifier`, which bins the rows once for all nodes; if no feature has more than
    `max_bins` distinct values, the result is exactly that of one clone per node.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees.
    max_depth : int, default=3
        Depth of every tree, at most 8.
    learning_rate : float, default=0.1
        Shrinkage: factor of the value of every leaf.
    l2_regularization : float, default=0.0
        Added to the Hessian of every leaf.
    min_samples_leaf : int, default=1
        Minimum number of rows in a leaf. Nodes of a tree over many classes have few rows; scikit-learn's
        default of 20 would leave most of them without a split.
    max_bins : int, default=255
        Maximum number of bins; a feature with more distinct values is binned into quantiles.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    n_trees_ : int
        Number of trees; fewer than `n_estimators` if no further split lowers the loss.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit, if `X` was a data frame with string column names.

    References
    ----------
    Friedman, *Greedy function approximation: a gradient boosting machine*, Annals of Statistics 29 (2001).
    Chen & Guestrin, *XGBoost: a scalable tree boosting system*, KDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dichotomies.learners.boosting import HistGradientBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = HistGradientBoostClassifier().fit(X[::2], y[::2])
    >>> clf.score(X[1::2], y[1::2]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_HistBoostClassifier._parameter_constraints,
        "l2_regularization": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        max_depth: int = 3,
        learning_rate: float = 0.1,
        l2_regularization: float = 0.0,
        min_samples_leaf: int = 1,
        max_bins: int = 255,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.l2_regularization = l2_regularization
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins

    def boosting_parameters(self) -> Boosting:
        """Return the parameters as kernels take them."""
        size = int(self.n_estimators), int(self.max_depth)
        rate, least = float(self.learning_rate), int(self.min_samples_leaf)
        return Boosting(GRADIENT, *size, rate, least, float(self.l2_regularization), _MIN_HESSIAN)

    def _scale(self, value: FloatArray) -> FloatArray:  # noqa: ARG002 - gradient boosting sums, never averages
        return np.ones(1)
