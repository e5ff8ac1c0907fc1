"""`NestedDichotomyClassifier`: one tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dichotomies._common.typing import FloatArray
from dichotomies.calibrators.multiclass import MulticlassCalibrator
from dichotomies.estimators.base import DichotomyEstimator
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import AveragedScorer, base_scorers
from dichotomies.learners import GenericScorer
from dichotomies.persistence import Estimator, savable
from dichotomies.persistence.checks import check_value, expect
from dichotomies.training.external import Calibration, name_of
from dichotomies.training.parameters import EnsembleParameters, documented
from dichotomies.tree import ClassTree
from dichotomies.tree.forest import Forest

#: Parameters of earlier versions.
_GONE = ("bootstrap", "member_calibration")


def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """Parameters and fitted attributes of today from those of any earlier version."""
    state = {name: value for name, value in _with_model(state).items() if name not in _GONE}
    if "model_" not in state or "calibration_" in state:
        return state
    internal, external = (name_of(state.get(f"{kind}_calibration")) for kind in ("internal", "external"))
    return state | {"calibration_": Calibration(internal, external)}


def _with_model(state: dict[str, Any]) -> dict[str, Any]:
    """Parameters and fitted attributes of today from those of format 1; others are returned unchanged."""
    if "ensemble" not in state:
        return state
    state = dict(state)
    state["average_folds"] = state.pop("ensemble")
    if "learner_" not in state:
        return state
    expect("external_calibrator_" in state, "there is an external calibrator, or None")
    external = state.pop("external_calibrator_")
    if "_scorer" in state:
        expect("tree_" in state, "there is a tree")
        tree = state.pop("tree_")
        check_value(ClassTree, tree, "tree_", {})
        state["model_"] = FittedForest(Forest.of([tree]), state.pop("_scorer"), external=external)
        return state
    names = ("_forest", "_nodes", "pooling_", "member_calibrators_")
    expect(all(name in state for name in names), "there are trees and their nodes")
    forest, scorer, pooling, members = (state.pop(name) for name in names)
    state["model_"] = FittedForest(forest, scorer, pooling, members, external)
    return state


@savable("nested-dichotomy-classifier", Estimator(upgrade=upgraded))
@documented
class NestedDichotomyClassifier(DichotomyEstimator):
    """A binary tree over the classes with a binary classifier at every node.

    A node's classifier separates the classes on its left from those on its right; the probability of a
    class is the product of the probabilities on its path from the root.

    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        Number of training rows of each class.
    tree_ : ClassTree
        The tree over `classes_`.
    estimators_ : list of classifiers
        The trained clones, in the order of the tree's nodes; None where a node saw rows of one side only
        (when all rows of a class have weight zero). A list of such lists, one per fold, with `average_folds`.
        Only where the nodes were trained as clones (``learner="clones"``).
    node_C_ : ndarray of shape (n_nodes,)
        The penalty chosen at every node, where `estimator` is a `TunedLogisticRegression`; one row per fold
        with `average_folds`.
    calibration_ : Calibration
        The calibrators inside and outside, and the out-of-fold NLL of the pairs that were compared.
    model_ : FittedForest
        Everything that was fitted: the tree, the trained nodes and the calibrators.
    external_calibrator_ : MulticlassCalibrator or None
        The fitted external calibrator; None without one, and where no row could be held out for it.
    learner_ : str
        Way in which the nodes were trained; for clones and chosen estimators, also the reason.
    estimator_ : scikit-learn classifier
        The estimator that was chosen; only where `estimator` names none.
    learner_nll_ : dict of str to float
        Out-of-fold NLL of every candidate for it, by name.
    structure_ : str or None
        Trees that were compared and why one was chosen; None where none were.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during fit, where `X` was a data frame with such names.

    References
    ----------
    Leathart, Frank, Pfahringer & Holmes, *On the Calibration of Nested Dichotomies for Large Multiclass
    Tasks*. Frank & Kramer, *Ensembles of nested dichotomies for multi-class problems*, ICML 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dichotomies import NestedDichotomyClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(LogisticRegression(), [0, [1, 2]], random_state=0).fit(X, y)
    >>> clf.calibration_.internal, clf.calibration_.external
    ('none', 'vector-odds')
    >>> clf.predict_proba(X[[0, 60, 120]]).round(2)
    array([[0.99, 0.  , 0.  ],
           [0.  , 0.99, 0.  ],
           [0.  , 0.  , 0.99]])
    """

    @property
    def estimators_(self) -> list[Any]:
        """The trained clones, in the order of the tree's nodes."""
        check_is_fitted(self)
        scorers = base_scorers(self.model_.scorer)
        if not isinstance(scorers[0], GenericScorer):
            raise AttributeError(
                f"estimators_ exists only where every node was trained as a clone (learner='clones'); here "
                f"the nodes were trained together ({self.learner_})."
            )
        models = [[node.estimator for node in scorer.nodes] for scorer in scorers]
        return models if isinstance(self.model_.scorer, AveragedScorer) else models[0]

    @property
    def node_C_(self) -> FloatArray:  # noqa: N802 - as LogisticRegressionCV.C_
        """The C each node was trained with, where `estimator` chose it."""
        check_is_fitted(self)
        scorers = base_scorers(self.model_.scorer)
        if not hasattr(scorers[0], "C"):
            raise AttributeError("node_C_ exists only where the nodes are TunedLogisticRegression.")
        chosen = np.stack([scorer.C for scorer in scorers])
        return chosen if isinstance(self.model_.scorer, AveragedScorer) else chosen[0]


@savable("nested-dichotomy-ensemble", Estimator(upgrade=upgraded))
@documented
class NestedDichotomyEnsemble(EnsembleParameters, DichotomyEstimator):
    """Several different trees over the classes, whose probabilities are pooled.

    Each tree errs in its own way: where one has to separate a class from an unlucky mixture of others, the
    next has another mixture. The trees share their work: results that do not depend on the tree (statistics
    of classes, bins, sorted rows) are computed once, and nodes that split the same classes the same way are
    trained once.

    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        Number of training rows of each class.
    trees_ : list of ClassTree
        The trees over `classes_`.
    n_different_nodes_ : int
        Number of nodes trained: of all trees together, those that split different classes, or the same
        classes differently.
    member_calibrators_ : list of MulticlassCalibrator or None
        The calibrator of each tree in models of earlier versions; otherwise empty.
    pooling_ : str
        Mean of the trees' probabilities: the value of `pooling` in the fit.
    calibration_ : Calibration
        The calibrators inside and of the pool, and the out-of-fold NLL of the pairs that were compared.
    model_ : FittedForest
        Everything that was fitted: the trees, the trained nodes and the calibrators.
    external_calibrator_ : MulticlassCalibrator or None
        The fitted calibrator of the pool; None without one, and where no row could be held out for it.
    learner_ : str
        Way in which the nodes were trained; for clones and chosen estimators, also the reason.
    estimator_ : scikit-learn classifier
        The estimator that was chosen; only where `estimator` names none.
    learner_nll_ : dict of str to float
        Out-of-fold NLL of every candidate for it, by name.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during fit, where `X` was a data frame with such names.

    References
    ----------
    Frank & Kramer, *Ensembles of nested dichotomies for multi-class problems*, ICML 2004. Leathart,
    Pfahringer & Frank, *Building ensembles of adaptive nested dichotomies with random-pair selection*,
    ECML PKDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dichotomies import NestedDichotomyEnsemble
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NestedDichotomyEnsemble(random_state=0).fit(X[:1000] / 16, y[:1000])
    >>> round(clf.score(X[1000:] / 16, y[1000:]), 2)
    0.93
    >>> labels, proba = clf.predict_top_k(X[1000:1002] / 16, k=3)
    >>> labels[:, 0].tolist()
    [1, 4]
    """

    @property
    def trees_(self) -> list[ClassTree]:
        """The trees."""
        check_is_fitted(self)
        return list(self.model_.forest.trees)

    @property
    def n_different_nodes_(self) -> int:
        """Number of nodes trained."""
        check_is_fitted(self)
        return self.model_.forest.n_different

    @property
    def pooling_(self) -> str:
        """Mean of the trees' probabilities."""
        check_is_fitted(self)
        return self.model_.pooling

    @property
    def member_calibrators_(self) -> list[MulticlassCalibrator | None]:
        """The calibrator of each tree in models of earlier versions; otherwise empty."""
        check_is_fitted(self)
        return list(self.model_.members)
