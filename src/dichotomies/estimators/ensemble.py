"""`NestedDichotomyEnsemble`: several trees, pooled."""

from __future__ import annotations

from sklearn.utils.validation import check_is_fitted

from dichotomies.calibrators.multiclass import MulticlassCalibrator
from dichotomies.estimators.base import DichotomyEstimator
from dichotomies.estimators.old_files import upgraded
from dichotomies.persistence import Estimator, savable
from dichotomies.training.parameters import EnsembleParameters, documented
from dichotomies.tree import ClassTree


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
