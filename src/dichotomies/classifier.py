"""`NestedDichotomyClassifier`: the scikit-learn face; it validates, wires and delegates."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from dichotomies._parallel import say
from dichotomies.calibrators.binary import BINARY, BinaryCalibrator
from dichotomies.calibrators.multiclass import MULTICLASS, MulticlassCalibrator
from dichotomies.inference import log_proba_of, most_probable
from dichotomies.learners import GenericScorer, NodeTask, choose, expect_fits, input_dtypes
from dichotomies.persistence import Estimator, savable, save
from dichotomies.persistence.checks import expect, expect_fitted_on, expect_type
from dichotomies.plan import Plan
from dichotomies.report import make
from dichotomies.scorers import AveragedScorer, base_scorers
from dichotomies.structures import GrowingTask, resolve
from dichotomies.training import train, tree_judge
from dichotomies.tree import ClassTree

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt

    from dichotomies._typing import FloatArray, IntArray, LabelArray, Matrix
    from dichotomies.report import Report


@savable("nested-dichotomy-classifier", Estimator(["_scorer"]))
class NestedDichotomyClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A binary tree over the classes with a binary classifier at every node.

    A node's classifier separates the classes on its left from those on its right; the probability of a
    class is the product of the probabilities on its path from the root.

    Parameters
    ----------
    estimator : scikit-learn classifier, default=None
        Trained at every node, as a clone of it would be; it gets two classes, 0 and 1, and numeric arrays,
        also where `X` is a data frame. It must be able to give probabilities, or scores that
        `internal_calibration` makes probabilities of. None means `LogisticRegression()`.
    structure : str, structure, ClassTree or nested lists of labels, default="random"
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
        structure: Any = "random",
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

    # ------------------------------------------------------------------ training

    def fit(
        self, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> NestedDichotomyClassifier:
        """Grow the tree and train its nodes.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
            The features.
        y : array of shape (n_rows,)
            The labels: strings, integers or booleans; at least two different ones.
        sample_weight : array of shape (n_rows,), optional
            Weights, passed on to every node.

        Returns
        -------
        self
        """
        plan = self._plan()
        X, codes = self._validated(X, y)
        weight = self._validated_weight(sample_weight, X)
        random_state = check_random_state(self.random_state)
        structure = resolve(self.structure)
        node_weight = weight if self._nodes_get_weight(weight) else None
        judge = tree_judge(plan, X, codes, node_weight)
        self.tree_ = structure.grow_from(GrowingTask(X, codes, self.classes_, weight, judge), random_state)
        task = NodeTask(self.tree_, X, codes, node_weight)
        if self.verbose:
            say(plan.learner.description)
        trained = train(plan, task, random_state)
        self._scorer, self.external_calibrator_ = trained.scorer, trained.external
        self.learner_ = plan.learner.description
        return self

    def _plan(self) -> Plan:
        """The parameters, names resolved and values checked."""
        internal, external = self.internal_calibration, self.external_calibration
        return Plan(
            learner=choose(self._base(), self.learner, calibrated=internal is not None),
            internal=None if internal is None else BINARY.resolve(internal, BinaryCalibrator),
            external=None if external is None else MULTICLASS.resolve(external, MulticlassCalibrator),
            cv=self.cv,
            ensemble=self.ensemble,
            calibrated_nodes=self.calibrated_nodes,
            calibration_size=self.calibration_size,
            n_jobs=self.n_jobs,
            verbose=bool(self.verbose),
        )

    def _validated(self, X: Matrix, y: Any) -> tuple[Matrix, IntArray]:
        """Check X and y; set `classes_` and return the class code of each row."""
        X, y = validate_data(self, X, y, **self._accepted())
        if y.dtype.kind not in "USbiu":  # strings, booleans and integers always are labels
            check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"A classifier needs at least two classes, but y has only one class: {only!r}.")
        return X, codes

    def _validated_weight(self, sample_weight: npt.ArrayLike | None, X: Matrix) -> FloatArray | None:
        if sample_weight is None:
            return None
        weight: FloatArray = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        return weight

    def _accepted(self) -> dict[str, Any]:
        """What X may be: what the base learner takes."""
        accepts = get_tags(self._base()).input_tags
        return {
            "accept_sparse": "csr" if accepts.sparse else False,
            "dtype": input_dtypes(self._base()),
            "order": "C",  # rows are what nodes and chunks take
            "ensure_all_finite": not accepts.allow_nan,
        }

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _nodes_get_weight(self, weight: FloatArray | None) -> bool:
        """Whether weights go to the nodes: always, unless metadata routing says they should not."""
        if weight is None or not get_config()["enable_metadata_routing"]:
            return True
        return "sample_weight" in process_routing(self, "fit", sample_weight=weight).estimator.fit

    # ------------------------------------------------------------------ prediction

    def predict_log_proba(self, X: Matrix) -> FloatArray:
        """Logarithms of the class probabilities, exact even where the probability underflows.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        X = self._validated_for_prediction(X)
        return log_proba_of(self.tree_, self._scorer, X, self.external_calibrator_, self.n_jobs)

    def predict_proba(self, X: Matrix) -> FloatArray:
        """Class probabilities; every row sums to 1.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        log_proba = self.predict_log_proba(X)
        return np.exp(log_proba, out=log_proba)

    def predict(self, X: Matrix) -> LabelArray:
        """The most probable class of each row.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        X = self._validated_for_prediction(X)
        best = most_probable(self.tree_, self._scorer, X, self.external_calibrator_, self.n_jobs)
        labels: LabelArray = self.classes_[best]
        return labels

    def report(
        self,
        X: Matrix,
        y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        examples: Sequence[object] | None = None,
    ) -> Report:
        """How far the probabilities can be trusted on these rows: one HTML page that opens offline.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
            Rows that the classifier has not seen.
        y : array of shape (n_rows,)
            Their labels.
        sample_weight : array of shape (n_rows,), optional
            Weights: 2 counts as the row twice.
        examples : sequence of length n_rows, optional
            What to call the rows on the page: names or texts.

        Returns
        -------
        Report
            Shows itself in a notebook; ``save(path)`` writes the page.
        """
        return make(self, X, y, sample_weight=sample_weight, examples=examples)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file, which `dichotomies.load` reads.

        Parameters
        ----------
        path : str or path
            One file of arrays (safetensors) and JSON, no pickle; it is replaced as a whole or not at all.
        """
        check_is_fitted(self)
        save(self, path)

    def check_loaded(self) -> None:
        """Refuse fitted attributes that do not fit together; see `dichotomies.persistence`."""
        if not hasattr(self, "_scorer"):
            return
        expect_type(self.tree_, ClassTree, "tree_")
        expect_type(self.classes_, np.ndarray, "classes_")
        expect(len(self.classes_) > 1, "there are two classes or more")
        expect(np.array_equal(self.tree_.classes, self.classes_), "the tree is one over the classes")
        expect_fitted_on(self)
        expect_fits(self._scorer, self.tree_.n_nodes, self.n_features_in_)
        if self.external_calibrator_ is not None:
            expect_type(self.external_calibrator_, MulticlassCalibrator, "external_calibrator_")
            expect(self.external_calibrator_.n_classes_ == len(self.classes_), "all classes are calibrated")
        expect_type(self.learner_, str, "learner_")
        expect_type(0 if self.n_jobs is None else self.n_jobs, Integral, "n_jobs")
        self._accepted()

    def _validated_for_prediction(self, X: Matrix) -> Matrix:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._accepted())

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

    # ------------------------------------------------------------------ scikit-learn's protocols

    def get_metadata_routing(self) -> MetadataRouter:
        """Where `sample_weight` goes: this estimator uses it, and passes it to those that request it."""
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(
            estimator=self._base(), method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepts = get_tags(self._base()).input_tags
        tags.input_tags.sparse = accepts.sparse
        tags.input_tags.allow_nan = accepts.allow_nan
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_scorer")
