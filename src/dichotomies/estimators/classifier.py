"""`NestedDichotomyClassifier`: one tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dichotomies._common.typing import FloatArray
from dichotomies.estimators.base import DichotomyEstimator
from dichotomies.estimators.old_files import upgraded
from dichotomies.inference.scorers import AveragedScorer, base_scorers
from dichotomies.learners import GenericScorer
from dichotomies.persistence import Estimator, savable
from dichotomies.training.parameters import documented


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
