"""`HistAdaBoostClassifier`: AdaBoost of small trees for two classes."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from dichotomies._kernels.boosting.boosting import AdaBoosting
from dichotomies.learners.boosting.base import HistBoostClassifier
from dichotomies.persistence import Estimator, savable

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray
    from dichotomies.learners.boosting.trees import BoostedTrees


@savable("hist-ada-boost-classifier", Estimator(["_trees"]))
class HistAdaBoostClassifier(HistBoostClassifier):
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
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
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
        **HistBoostClassifier._parameter_constraints,
        "max_depth": [Interval(Integral, 1, 8, closed="both")],
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

    def boosting_parameters(
        self,
        n_rows: FloatArray,
        is_categorical: BoolArray,  # noqa: ARG002 - as all
    ) -> AdaBoosting:
        """Return the parameters as kernels take them, for `n_rows`; `is_categorical` marks features."""
        ones = np.ones(len(n_rows), dtype=np.intp)
        return AdaBoosting(
            n_estimators=self.n_estimators * ones,
            max_depth=self.max_depth * ones,
            max_leaves=2**self.max_depth * ones,
            min_rows=self.min_samples_leaf * ones,
            learning_rate=float(self.learning_rate),
            real=self.algorithm == "real",
        )

    def _first_trees(self, n: int) -> BoostedTrees:
        trees = super()._first_trees(n)
        votes = np.abs(np.maximum.reduceat(np.abs(trees.value), trees.split_offsets[:-1] + np.arange(n)))
        scale = 1 / n if self.algorithm == "real" else 2 / votes.sum()
        return replace(trees, scale=np.array([scale]))
