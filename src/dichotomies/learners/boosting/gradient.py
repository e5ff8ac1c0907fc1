"""`HistGradientBoostClassifier`: gradient boosting of trees for two classes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from dichotomies._kernels.boosting.boosting import GradientBoosting
from dichotomies.learners.boosting.base import HistBoostClassifier
from dichotomies.learners.frames import FrameCategories, positions
from dichotomies.persistence import Estimator, savable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import BoolArray, FloatArray

#: Step of a single class tree; number of members of an ensemble that have all rounds; least share of them.
#: These and `by_rows` were chosen by the NLL of rows that were held out from the training rows of letter,
#: optdigits and parts of omniglot and kanji_fonts, and on generated tables, for single trees and ensembles of
#: four and eight. The more rows there are, the more and the larger trees pay, up to 63 leaves, beyond which
#: noisy labels are learned by heart; many members with few rounds each are better than few with many
#: (``python -m benchmarks.boosting_budget``).
STEP, FULL_MEMBERS, LEAST_SHARE = 0.35, 10, 0.25

_AUTO = StrOptions({"auto"})
_SHARE = Interval(Real, 0, 1, closed="right")


def _upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """Parameters of files of earlier versions, which limited trees by depth alone."""
    earlier = {"max_leaf_nodes": None, "max_tree_features": 1.0, "subsample": 1.0, "min_child_weight": 1e-3}
    return state if "max_leaf_nodes" in state else state | earlier


@savable("hist-gradient-boost-classifier", Estimator(["_trees"], _upgraded))
class HistGradientBoostClassifier(HistBoostClassifier):
    """Gradient boosting of decision trees on binned features, for two classes.

    Minimises the logistic loss, with Newton steps in the leaves; the most promising leaf is split first.
    Missing values (NaN) go to the side of each split that lowers the loss more; categorical features are
    split into two sets of categories. If no feature has more than `max_bins` distinct values, it gives the
    splits and probabilities of scikit-learn's ``HistGradientBoostingClassifier`` with the same parameters,
    up to ties.

    For more than two classes, train it at the nodes of a tree with `NestedDichotomyClassifier`, which bins
    the rows once for all nodes. Parameters that are "auto" follow the number of rows of each node, or their
    total weight.

    Parameters
    ----------
    n_estimators : int or "auto", default="auto"
        Number of trees; "auto" is ``8 * log2(n_rows) - 4``, from 12 to 130, or the share in `n_members`.
    max_leaf_nodes : int, None or "auto", default="auto"
        Maximum number of leaves of a tree, at most 256; None for no limit but `max_depth`; "auto" is
        ``n_rows / 128``, from 8 to 63.
    max_depth : int or None, default=None
        Maximum depth of a tree; at most 8 without `max_leaf_nodes`.
    learning_rate : float or "auto", default="auto"
        Shrinkage: factor of the value of every leaf; "auto" is 0.35, or more with a share of the trees.
    n_members : int or "auto", default="auto"
        Number of class trees of the ensemble that nodes belong to; "auto" is that of the
        `NestedDichotomyEnsemble` that trains them, and otherwise 1. If `n_estimators` and `learning_rate` are
        "auto", each of more than ten members has the share ``10 / n_members`` of the trees, a quarter at
        least, and steps larger by the power 3/4 of its inverse.
    l2_regularization : float, default=0.3
        Added to the Hessian of every leaf.
    min_samples_leaf : int, default=1
        Minimum number of rows in a leaf. Nodes of a tree over many classes have few rows; scikit-learn's
        default of 20 would leave most of them without a split.
    min_child_weight : float, default=0.01
        Minimum Hessian of a leaf: the sum of ``p * (1 - p)`` over its rows.
    subsample : float, default=0.7
        Share of the rows that each tree is grown on; the values of its leaves are those of all rows. Rows
        with the same features are drawn together.
    max_tree_features : float or "auto", default="auto"
        Share of the features that each tree may use; "auto" is ``2 / sqrt(n_features)``, at most 1.
    max_features : float, default=1.0
        Share of a tree's features that each split tries.
    early_stopping : bool, default=False
        Choose the number of trees, up to `n_estimators`, by the loss of rows that were held out, in three
        folds; at the nodes of a tree, for each node. Where nodes are trained on folds anyway (internal
        calibration, ``calibration_size="cross-fit"``), it costs nothing.
    categorical_features : "from_dtype", array of bool, int or str, or None, default="from_dtype"
        Features whose values are categories: those of a categorical type in a data frame of pandas or
        polars; a mask, positions or names; or none. Of a feature with more than `max_bins` categories, the
        most frequent ones are told apart. The others, and those that training has not seen, count as missing.
    max_bins : int, default=255
        Maximum number of bins; a feature with more distinct values is binned into quantiles.
    random_state : int, default=0
        Seed of the draws of rows and features.
    n_jobs : int or None, default=None
        Threads that bin features; None means 1, -1 all cores. The number changes no result. Ignored inside
        `NestedDichotomyClassifier`, whose `n_jobs` trains different nodes at the same time.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    n_trees_ : int
        Number of trees; fewer than `n_estimators` if no further split lowers the loss.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during fit, if `X` was a data frame with string column names.

    References
    ----------
    Friedman, *Greedy function approximation: a gradient boosting machine*, Annals of Statistics 29 (2001).
    Chen & Guestrin, *XGBoost: a scalable tree boosting system*, KDD 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dichotomies.learners.boosting import HistGradientBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X[::7, ::3] = np.nan
    >>> clf = HistGradientBoostClassifier().fit(X[::2], y[::2])
    >>> clf.score(X[1::2], y[1::2]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **HistBoostClassifier._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left"), _AUTO],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), _AUTO],
        "n_members": [Interval(Integral, 1, None, closed="left"), _AUTO],
        "max_leaf_nodes": [Interval(Integral, 2, 256, closed="both"), None, _AUTO],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "l2_regularization": [Interval(Real, 0, None, closed="left")],
        "min_child_weight": [Interval(Real, 0, None, closed="left")],
        "subsample": [_SHARE],
        "max_tree_features": [_SHARE, _AUTO],
        "max_features": [_SHARE],
        "early_stopping": ["boolean"],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "random_state": [Interval(Integral, 0, 2**32 - 1, closed="both")],
        "n_jobs": [Integral, None],
    }

    _takes_missing = True

    def __init__(
        self,
        n_estimators: int | str = "auto",
        *,
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        learning_rate: float | str = "auto",
        n_members: int | str = "auto",
        l2_regularization: float = 0.3,
        min_samples_leaf: int = 1,
        min_child_weight: float = 0.01,
        subsample: float = 0.7,
        max_tree_features: float | str = "auto",
        max_features: float = 1.0,
        early_stopping: bool = False,
        categorical_features: Sequence[Any] | str | None = "from_dtype",
        max_bins: int = 255,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.n_members = n_members
        self.l2_regularization = l2_regularization
        self.min_samples_leaf = min_samples_leaf
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.max_tree_features = max_tree_features
        self.max_features = max_features
        self.early_stopping = early_stopping
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.max_leaf_nodes is None and (self.max_depth is None or self.max_depth > 8):
            raise ValueError(
                f"A tree has at most 256 leaves, but max_leaf_nodes is None and max_depth {self.max_depth}; "
                "set max_leaf_nodes to a number, or max_depth to at most 8."
            )

    def boosting_parameters(self, n_rows: FloatArray, is_categorical: BoolArray) -> GradientBoosting:
        """Return the parameters as kernels take them, for `n_rows`; `is_categorical` marks features."""
        auto, ones = by_rows(n_rows, len(is_categorical)), np.ones(len(n_rows), dtype=np.intp)
        n_members = self._n_sharing
        auto["n_estimators"] = np.rint(share_of_rounds(n_members) * auto["n_estimators"])
        step = STEP / share_of_rounds(n_members) ** 0.75  # larger steps make up for fewer rounds
        step = step if isinstance(self.learning_rate, str) else self.learning_rate
        given = {name: self._given(name, value) for name, value in auto.items()}
        depth = 255 if self.max_depth is None else min(self.max_depth, 255)
        leaves = 2**depth * ones if self.max_leaf_nodes is None else given["max_leaf_nodes"]
        return GradientBoosting(
            n_estimators=given["n_estimators"].astype(np.intp),
            max_depth=depth * ones,
            max_leaves=leaves.astype(np.intp),
            min_rows=int(self.min_samples_leaf) * ones,
            tree_features=given["max_tree_features"],
            learning_rate=float(step),
            l2_regularization=float(self.l2_regularization),
            min_hessian=float(self.min_child_weight),
            subsample=float(self.subsample),
            split_features=float(self.max_features),
            seed=int(self.random_state),
        )

    @property
    def _n_sharing(self) -> int:
        """Number of members that share the trees: 1 where their number or the learning rate is given."""
        is_given = not (isinstance(self.n_estimators, str) and isinstance(self.learning_rate, str))
        return 1 if is_given or isinstance(self.n_members, str) else int(self.n_members)

    def frame_categories(self, X: Any) -> FrameCategories | None:
        """Find the categorical columns of a data frame `X`."""
        return FrameCategories.of(X, self.categorical_features)

    def is_categorical(self, n_features: int) -> BoolArray:
        """Mark which of `n_features` are categories; in a data frame they are numbers already."""
        mask = np.zeros(n_features, dtype=np.bool_)
        if self.categorical_features is not None and not isinstance(self.categorical_features, str):
            mask[positions(self.categorical_features, n_features)] = True
        return mask

    def _given(self, name: str, auto: FloatArray) -> FloatArray:
        """The value of a parameter at every node."""
        value: Any = getattr(self, name)
        return auto if isinstance(value, str) else np.full(len(auto), value, dtype=np.float64)


def share_of_rounds(n_members: int) -> float:
    """Share of the rounds that each member of an ensemble has: more than ten share the rounds of ten."""
    return min(max(FULL_MEMBERS / n_members, LEAST_SHARE), 1.0)


def by_rows(n_rows: FloatArray, n_features: int) -> dict[str, FloatArray]:
    """Values of the parameters that are "auto", for nodes with these numbers of rows, or total weights."""
    return {
        "n_estimators": np.rint(np.clip(8 * np.log2(np.maximum(n_rows, 1)) - 4, 12, 130)),
        "max_leaf_nodes": np.rint(np.clip(n_rows / 128, 8, 63)),
        "max_tree_features": np.full(len(n_rows), min(1.0, 2 / np.sqrt(n_features))),
    }
