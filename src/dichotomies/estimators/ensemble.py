"""`NestedDichotomyEnsemble`: several trees, pooled."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dichotomies.estimators.base import CALIBRATOR, DichotomyEstimator, check_whole, multiclass_calibrator
from dichotomies.inference.pooling import POOLINGS
from dichotomies.inference.prediction import ImpliedScorer, PooledModel
from dichotomies.learners import takes_weight
from dichotomies.learners.base import SCORER
from dichotomies.persistence import Estimator, savable
from dichotomies.persistence.checks import Each, Part, Such
from dichotomies.structures import resolve
from dichotomies.structures.auto import Auto
from dichotomies.tree.forest import Forest

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.learners import Scorer
    from dichotomies.structures import GrowingTask
    from dichotomies.training.plan import Plan
    from dichotomies.training.train import Trained
    from dichotomies.tree import ClassTree


@savable(
    "nested-dichotomy-ensemble",
    Estimator(["_forest", "_nodes"]),
    _forest=Part(Forest, "n_trees", "classes", n_different="n_nodes"),
    _nodes=SCORER,
    member_calibrators_=Each(CALIBRATOR, "n_trees", may_be_empty=True),
    pooling_=Such(POOLINGS.__contains__, "is a way to pool"),
)
class NestedDichotomyEnsemble(DichotomyEstimator):
    """Several different trees over the classes, whose probabilities are pooled.

    Every tree errs in its own way: where one has to tell a class from an unlucky mixture of others, the next
    has another mixture. The trees share their work: what does not depend on the tree (statistics of classes,
    bins, sorted rows) is computed once, and nodes that split the same classes the same way are trained once.

    Parameters
    ----------
    estimator : scikit-learn classifier, default=None
        Trained at every node, see `NestedDichotomyClassifier`. None means `LogisticRegression()`.
    structure : str or structure, default="auto"
        How trees are grown; "auto" is "random-pair" here. Structures without chance give different trees as
        well, because each tree sees other features.
    n_estimators : int, default=10
        How many trees.
    max_features : float, default=0.5
        The share of the features, drawn at random, that each tree is grown on. The nodes are trained on all
        features, whatever it is.
    bootstrap : bool, default=False
        Whether each tree's nodes are trained on a bootstrap sample of the rows of every class; then trees
        cannot share nodes. The base learner must take sample weights.
    pooling : "geometric" or "arithmetic", default="geometric"
        Which mean of the trees' probabilities is taken; the geometric one is normalised.
    internal_calibration : str, BinaryCalibrator or None, default=None
        How the answers of every node are calibrated, see `NestedDichotomyClassifier`.
    member_calibration : str, MulticlassCalibrator or None, default=None
        How each tree's class probabilities are calibrated before they are pooled.
    external_calibration : str, MulticlassCalibrator or None, default="vector"
        How the pooled class probabilities are calibrated.
    cv : int, splitter or iterable of (train, test), default=3
        Folds of internal calibration and of "cross-fit", the same for all trees.
    ensemble : bool, default=False
        With internal calibration: whether each node averages the models of its folds, see
        `NestedDichotomyClassifier`.
    calibrated_nodes : "all", list of depths or float, default="all"
        Nodes that internal calibration applies to; a node that several trees share is at the depth where it
        first occurs.
    calibration_size : float or "cross-fit", default=0.1
        Rows for calibrating trees and pool: the share held out from training, or "cross-fit".
    learner : str, default="auto"
        How all nodes are trained, see `NestedDichotomyClassifier`.
    n_jobs : int, default=None
        Nodes trained, and chunks of rows predicted, at a time. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds trees, features, samples and folds, and the base learners.
    verbose : bool or int, default=0
        Whether to report progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    trees_ : list of ClassTree
        The trees over `classes_`.
    n_different_nodes_ : int
        How many nodes were trained: of all trees together, those that split different classes, or the same
        classes differently.
    member_calibrators_ : list of MulticlassCalibrator or None
        The fitted calibrator of each tree; empty without.
    pooling_ : str
        Which mean is taken, as `pooling` said when fitting.
    external_calibrator_ : MulticlassCalibrator or None
        The fitted calibrator of the pool; None without one, and where no row could be held out for it.
    learner_ : str
        How the nodes were trained and, where it was by clones, why.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
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

    def __init__(
        self,
        estimator: Any = None,
        structure: Any = "auto",
        *,
        n_estimators: int = 10,
        max_features: float = 0.5,
        bootstrap: bool = False,
        pooling: str = "geometric",
        internal_calibration: Any = None,
        member_calibration: Any = None,
        external_calibration: Any = "vector",
        cv: Any = 3,
        ensemble: bool = False,
        calibrated_nodes: Any = "all",
        calibration_size: float | str = 0.1,
        learner: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = 0,
    ) -> None:
        self.estimator = estimator
        self.structure = structure
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.pooling = pooling
        self.internal_calibration = internal_calibration
        self.member_calibration = member_calibration
        self.external_calibration = external_calibration
        self.cv = cv
        self.ensemble = ensemble
        self.calibrated_nodes = calibrated_nodes
        self.calibration_size = calibration_size
        self.learner = learner
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def _plan(self, **others: Any) -> Plan:
        """The parameters, names resolved and values checked."""
        check_whole(self.n_estimators, "n_estimators")
        if self.bootstrap and not takes_weight(self._base()):
            raise TypeError(
                f"bootstrap=True draws rows by weighting them, but {type(self._base()).__name__} takes no "
                "sample_weight; leave bootstrap at False, or choose an estimator that takes weights."
            )
        _check_share(self.max_features)
        member = multiclass_calibrator(self.member_calibration)
        return super()._plan(member=member, pooling=self.pooling, **others)

    def _grow(self, task: GrowingTask, rng: Any) -> Forest:
        structure = resolve(self.structure)
        structure = Auto(diverse=True) if isinstance(structure, Auto) else structure
        trees = [
            structure.grow_from(self._with_some_features(task, rng), rng) for _ in range(self.n_estimators)
        ]
        forest = Forest.of(trees, shared=not self.bootstrap)
        if len(trees) > 1 and not self.bootstrap and forest.n_different == trees[0].n_nodes > 3:
            warnings.warn(
                f"All {len(trees)} trees are the same, so that pooling them changes nothing: choose a "
                "structure with chance, lower max_features, or set bootstrap=True.",
                stacklevel=3,
            )
        return forest

    def _with_some_features(self, task: GrowingTask, rng: Any) -> GrowingTask:
        n_features = task.X.shape[1]
        n_taken = max(1, round(self.max_features * n_features))
        if n_taken == n_features:
            return task
        return replace(task, X=task.X[:, np.sort(rng.permutation(n_features)[:n_taken])])

    def _bags(self, codes: IntArray, weight: FloatArray | None, rng: Any) -> list[FloatArray] | None:
        """For each tree, how often each row is drawn, times its weight; as many of a class as it has rows."""
        if not self.bootstrap:
            return None
        order = np.argsort(codes, kind="stable")
        counts = np.bincount(codes)[codes[order]]
        begin = np.searchsorted(codes[order], codes[order])
        bags = []
        for _ in range(self.n_estimators):
            drawn = order[begin + np.floor(rng.random_sample(len(codes)) * counts).astype(np.intp)]
            times = np.bincount(drawn, minlength=len(codes)).astype(np.float64)
            bags.append(times if weight is None else times * weight)
        return bags

    def _keep(self, forest: Forest, trained: Trained) -> None:
        self._forest, self._nodes, self.pooling_ = forest, trained.scorer, self.pooling
        self.member_calibrators_ = list(trained.members)
        self.external_calibrator_ = trained.external

    # ------------------------------------------------------------------ prediction

    @property
    def _model(self) -> PooledModel:
        return replace(self._uncalibrated, external=self.external_calibrator_)

    @property
    def _uncalibrated(self) -> PooledModel:
        """The pool before it is calibrated."""
        return PooledModel(self._forest, self._nodes, self.pooling_, self.member_calibrators_)

    @property
    def trees_(self) -> list[ClassTree]:
        """The trees."""
        check_is_fitted(self)
        return list(self._forest.trees)

    @property
    def n_different_nodes_(self) -> int:
        """How many nodes were trained."""
        check_is_fitted(self)
        return self._forest.n_different

    # ------------------------------------------------------------------ how diagnostics look at it

    @property
    def tree_(self) -> ClassTree:
        """The first tree, along which diagnostics and reports take the pooled probabilities apart."""
        return self._forest.trees[0]

    @property
    def _scorer(self) -> Scorer:
        """The log-odds that the pooled probabilities imply at the nodes of `tree_`."""
        return ImpliedScorer(self.tree_, self._uncalibrated)


def _check_share(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not 0 < value <= 1:
        raise ValueError(f"max_features must be a share of the features, above 0 and up to 1, got {value!r}.")
