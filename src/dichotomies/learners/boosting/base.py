"""Base class of the boosted-tree classifiers for two classes: everything but the boosting algorithm."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from dichotomies._common.parallel import Context
from dichotomies._common.validation import row_weights
from dichotomies._kernels.boosting.node_rows import Ranges
from dichotomies.learners.boosting.binning import Binning
from dichotomies.learners.boosting.training import NONE, SortedRows, train_models
from dichotomies.learners.boosting.trees import BoostedTrees
from dichotomies.learners.frames import FrameCategories
from dichotomies.persistence.checks import Optional, Part, Size, declares

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray, FloatArray, LabelArray, Matrix
    from dichotomies._kernels.boosting.boosting import AdaBoosting, GradientBoosting


@declares(
    n_features_in_=Size("n_features"),
    _trees=Part(BoostedTrees, "n_features", n_nodes=1),
    categories_=Optional(Part(FrameCategories, "n_features"), may_be_missing=True),
)
class HistBoostClassifier(ClassifierMixin, BaseEstimator):
    """Base class of both: everything but the boosting algorithm."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "max_bins": [Interval(Integral, 2, 255, closed="both")],
    }

    max_bins: int
    n_jobs: int | None = None
    _takes_missing = False

    @abstractmethod
    def boosting_parameters(
        self, n_rows: FloatArray, is_categorical: BoolArray
    ) -> AdaBoosting | GradientBoosting:
        """Return the parameters as kernels take them, for nodes with these numbers of rows."""

    def frame_categories(self, X: Any) -> FrameCategories | None:  # noqa: ARG002 - see gradient boosting
        """Find the categorical columns of a data frame `X`."""
        return None

    def is_categorical(self, n_features: int) -> BoolArray:
        """Mark which of `n_features` are categories."""
        return np.zeros(n_features, dtype=np.bool_)

    @property
    def stops_early(self) -> bool:
        """True if the number of trees is chosen by the loss of rows that were held out."""
        return bool(getattr(self, "early_stopping", False))

    def _numbered(self, X: Any) -> Any:
        """A data frame with numbers for its categories."""
        categories = getattr(self, "categories_", None)
        return X if categories is None else categories.numbered(X)

    def _accepted(self) -> dict[str, Any]:
        finite = "allow-nan" if self._takes_missing else True
        return {"dtype": [np.float64, np.float32], "accept_sparse": "csr", "ensure_all_finite": finite}

    def fit(self, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Bin the features and boost trees.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
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
        self.categories_ = self.frame_categories(X)
        X, y = validate_data(self, self._numbered(X), y, **self._accepted())
        weight = row_weights(sample_weight, X.shape[0])
        is_positive = self._validated_target(y, weight)
        # the positive class is on the left, so that log-odds are those of the second class
        rows = np.argsort(~is_positive, kind="stable")
        is_categorical = np.zeros(X.shape[1], dtype=np.bool_)
        if self.categories_ is None:
            is_categorical = self.is_categorical(X.shape[1])
        else:
            is_categorical[self.categories_.positions] = True
        weighted, n_jobs = None if sample_weight is None else weight, self.n_jobs
        binning = Binning.find(X, weighted, self.max_bins, is_categorical, n_jobs)
        split, end = int(is_positive.sum()), len(rows)
        ranges = Ranges(np.array([0]), np.array([split]), np.array([end]), np.array([True]))
        bins = binning.encode(X, n_jobs)
        sorted_rows = SortedRows(binning, bins, rows, ranges, weight[rows])
        (self._trees,), _ = train_models(self, sorted_rows, [NONE], Context(n_jobs=n_jobs))
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
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

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
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Yields
        ------
        ndarray of shape (n_rows,)
        """
        X = self._validated_for_prediction(X)
        for stages in range(1, self.n_trees_ + 1):
            yield self._first_trees(stages).log_odds(X)[:, 0]

    def _first_trees(self, n: int) -> BoostedTrees:
        return self._trees.truncated(np.array([n]))

    def predict_proba(self, X: Matrix) -> FloatArray:
        """Probabilities of both classes.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

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
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

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
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        positive = (self.decision_function(X) > 0).astype(np.intp)
        labels: LabelArray = self.classes_[positive]
        return labels

    def _validated_for_prediction(self, X: Matrix) -> FloatArray:
        check_is_fitted(self)
        checked: FloatArray = validate_data(self, self._numbered(X), reset=False, **self._accepted())
        return checked

    @property
    def n_trees_(self) -> int:
        """Number of trees: fewer than `n_estimators` where boosting stopped early."""
        check_is_fitted(self)
        return len(self._trees.split_offsets) - 1

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_trees")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing
        return tags
