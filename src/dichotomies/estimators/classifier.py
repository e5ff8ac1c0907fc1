"""`NestedDichotomyClassifier`: one tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dichotomies.estimators.base import DichotomyEstimator
from dichotomies.inference.prediction import TreeModel
from dichotomies.inference.scorers import AveragedScorer, base_scorers
from dichotomies.learners import GenericScorer
from dichotomies.learners.base import SCORER
from dichotomies.persistence import Estimator, savable
from dichotomies.persistence.checks import Part
from dichotomies.structures import resolve
from dichotomies.tree import ClassTree
from dichotomies.tree.forest import Forest

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray
    from dichotomies.inference.prediction import Model
    from dichotomies.structures import GrowingTask
    from dichotomies.training.train import Trained


@savable(
    "nested-dichotomy-classifier",
    Estimator(["_scorer"]),
    tree_=Part(ClassTree, "n_nodes", "classes"),
    _scorer=SCORER,
)
class NestedDichotomyClassifier(DichotomyEstimator):
    """A binary tree over the classes with a binary classifier at every node.

    A node's classifier separates the classes on its left from those on its right; the probability of a
    class is the product of the probabilities on its path from the root.

    Parameters
    ----------
    estimator : scikit-learn classifier, default=None
        Trained at every node, as a clone of it would be; it gets two classes, 0 and 1, and numeric arrays,
        also where `X` is a data frame. It must be able to give probabilities, or scores that
        `internal_calibration` makes probabilities of. None means `LogisticRegression()`.
    structure : str, structure, ClassTree or nested lists of labels, default="auto"
        The tree: the name of a way to grow one (``dichotomies list`` shows them), an object that grows
        one, or the tree itself, which must have a leaf for every label in `y` (leaves for labels that do
        not occur are left out). Give a very deep tree as a `ClassTree`: Python cannot copy lists nested
        many hundred levels deep, which scikit-learn's `clone` must.
    internal_calibration : str, BinaryCalibrator or None, default=None
        How the answers of every node are calibrated, on scores of models that had not seen the row:
        "platt", "isotonic", "beta", "venn-abers", "temperature", "auto" (chosen per node), or an object.
    external_calibration : str, MulticlassCalibrator or None, default="vector"
        How the class probabilities of the whole tree are calibrated: "vector" (penalised vector
        scaling), "vector-ml" (the paper's), "temperature", "bias-temperature", "matrix", "dirichlet",
        "isotonic", "auto", or an object.
    cv : int, splitter or iterable of (train, test), default=3
        Folds of internal calibration and of "cross-fit". Classes with fewer rows than folds are fine.
    ensemble : bool, default=False
        With internal calibration: False trains the nodes once more on all rows and calibrates them on
        the pooled out-of-fold scores; True averages the models of the folds at every node, each with a
        calibrator of its own.
    calibrated_nodes : "all", list of depths or float, default="all"
        Nodes that internal calibration applies to: all, those at the given depths, or the given share of
        the nodes, those where it lowers the NLL of the whole tree most.
    calibration_size : float or "cross-fit", default=0.1
        Rows for external calibration: the share held out from training, stratified, never the last row
        of a class; or "cross-fit", which holds out none and calibrates on probabilities of models trained
        on the other folds of the same tree: slower, and better where there are few rows.
    learner : str, default="auto"
        How all nodes are trained. "auto" takes a fast way that gives what one clone of `estimator` per node
        would give, where there is one for this estimator and its parameters, and the clones otherwise;
        `learner_` says which and why. "clones" always trains clones.
    n_jobs : int, default=None
        Nodes trained, and chunks of rows predicted, at a time, as everywhere in scikit-learn. Training
        runs on the joblib backend chosen by `joblib.parallel_config`; prediction uses threads. The
        result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the tree, the folds, and every ``random_state`` parameter of `estimator` and its parts that
        is None.
    verbose : bool or int, default=0
        Whether to report progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    tree_ : ClassTree
        The tree over `classes_`.
    estimators_ : list of classifiers
        The trained clones, in the order of the tree's nodes; None where a node saw rows of one side only
        (when all rows of a class have weight zero). A list of such lists, one per fold, with `ensemble`.
        Only where the nodes were trained as clones (``learner="clones"``).
    node_C_ : ndarray of shape (n_nodes,)
        The penalty chosen at every node, where `estimator` is a `TunedLogisticRegression`; one row per fold
        with `ensemble`.
    external_calibrator_ : MulticlassCalibrator or None
        The fitted external calibrator; None without one, and where no row could be held out for it.
    learner_ : str
        How the nodes were trained and, where it was by clones, why.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit, where `X` was a data frame with such names.

    References
    ----------
    Leathart, Frank, Pfahringer & Holmes, *On the Calibration of Nested Dichotomies for Large Multiclass
    Tasks*. Frank & Kramer, *Ensembles of nested dichotomies for multi-class problems*, ICML 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies import NestedDichotomyClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(structure=[0, [1, 2]], external_calibration=None).fit(X, y)
    >>> clf.predict_proba(X[[0, 60, 120]]).round(3)
    array([[0.984, 0.016, 0.   ],
           [0.055, 0.937, 0.008],
           [0.   , 0.03 , 0.97 ]])
    """

    def __init__(
        self,
        estimator: Any = None,
        structure: Any = "auto",
        *,
        internal_calibration: Any = None,
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
        self.internal_calibration = internal_calibration
        self.external_calibration = external_calibration
        self.cv = cv
        self.ensemble = ensemble
        self.calibrated_nodes = calibrated_nodes
        self.calibration_size = calibration_size
        self.learner = learner
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _grow(self, task: GrowingTask, rng: Any) -> Forest:
        return Forest.of([resolve(self.structure).grow_from(task, rng)])

    def _keep(self, forest: Forest, trained: Trained) -> None:
        [self.tree_] = forest.trees
        self._scorer, self.external_calibrator_ = trained.scorer, trained.external

    @property
    def _model(self) -> Model:
        return TreeModel(self.tree_, self._scorer, self.external_calibrator_)

    @property
    def estimators_(self) -> list[Any]:
        """The trained clones, in the order of the tree's nodes."""
        check_is_fitted(self)
        scorers = base_scorers(self._scorer)
        if not isinstance(scorers[0], GenericScorer):
            raise AttributeError(
                f"estimators_ exists only where every node was trained as a clone (learner='clones'); here "
                f"the nodes were trained together ({self.learner_})."
            )
        models = [[node.estimator for node in scorer.nodes] for scorer in scorers]
        return models if isinstance(self._scorer, AveragedScorer) else models[0]

    @property
    def node_C_(self) -> FloatArray:  # noqa: N802 - as LogisticRegressionCV.C_
        """The C each node was trained with, where `estimator` chose it."""
        check_is_fitted(self)
        scorers = base_scorers(self._scorer)
        if not hasattr(scorers[0], "C"):
            raise AttributeError("node_C_ exists only where the nodes are TunedLogisticRegression.")
        chosen = np.stack([scorer.C for scorer in scorers])
        return chosen if isinstance(self._scorer, AveragedScorer) else chosen[0]
