"""`TunedLogisticRegression`: logistic regression whose regularisation strength is chosen node by node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from dichotomies._common.parallel import Context
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, LabelArray, Matrix
from dichotomies._common.validation import check_indices, check_magnitude, row_weights
from dichotomies.learners.base import LEARNERS, SCORER, Learner, NodeScorer, Unsupported
from dichotomies.learners.logistic.learner import Settings, check_class_weight
from dichotomies.learners.logistic.strength import choose_strength
from dichotomies.learners.logistic.training import NodeTraining
from dichotomies.persistence import Estimator, savable
from dichotomies.persistence.checks import Array, Size
from dichotomies.rows import NodeTask, Rows
from dichotomies.rows.folds import fold_of_rows
from dichotomies.tree import ClassTree

_DEFAULT_CS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


@savable("tuned-scorer", nodes=SCORER, C=Array("float", "n_nodes"), n_steps=Array("integer", "n_nodes"))
@dataclass(frozen=True)
class TunedScorer:
    """Trained nodes, each with the C it was trained with.

    Attributes
    ----------
    nodes : NodeScorer
    C : (n_nodes,)
    n_steps : (n_nodes,)
        Number of Newton steps; negative or 0 if they did not converge.
    """

    nodes: NodeScorer
    C: FloatArray
    n_steps: IntArray

    @property
    def is_trained(self) -> BoolArray:
        """True where a node had training rows on both sides."""
        return self.nodes.is_trained

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        return self.nodes.log_odds(X)

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        return self.nodes.pair_log_odds(X, rows, nodes)


@savable(
    "tuned-logistic-regression",
    Estimator(),
    coef_=Array("float", 1, "n_features"),
    intercept_=Array("float", 1),
    n_features_in_=Size("n_features"),
)
class TunedLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression with an L2 penalty whose strength is chosen by out-of-fold log-loss.

    In a nested dichotomy, C is chosen for every node, or for every depth of the tree, because nodes deep in
    the tree have few rows and need stronger regularisation. Solutions along the grid of C and across folds
    are warm-started from one another, so the search is cheap. The losses of a node are shrunk towards the
    mean losses of its depth by 100 pseudo-rows, and those of a depth towards the whole tree's in the same
    way, so a node too small for folds follows the others.

    Used alone, it is a binary classifier.

    Parameters
    ----------
    Cs : sequence of float, default=(0.01, 0.1, 1, 10, 100, 1000)
        Candidate inverse regularisation strengths.
    per : "node" or "depth", default="node"
        Choose C for each node, or one for all nodes of a depth.
    cv : int, splitter or iterable of (train, test), default=3
        Folds for the out-of-fold loss.
    fit_intercept : bool, default=True
    class_weight : None, "balanced" or dict, default=None
        As in scikit-learn's `LogisticRegression`. The loss by which C is chosen ignores it.
    tol : float, default=1e-4
        Stopping tolerance: the largest derivative of the mean loss.
    max_iter : int, default=100
        Maximum number of Newton steps.
    random_state : int, RandomState or None, default=None
        Seed of the folds. If None, a nested dichotomy uses its own.

    Attributes
    ----------
    C_ : float
        The C chosen.
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    n_iter_ : int
        Number of Newton steps of the final model.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Defined if `X` was a data frame.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> TunedLogisticRegression(random_state=0).fit(scale(X), y).C_
    1.0
    """

    def __init__(
        self,
        Cs: Any = _DEFAULT_CS,
        *,
        per: str = "node",
        cv: Any = 3,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.per = per
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Matrix, y: Any, sample_weight: Any = None) -> Self:
        """Choose C and train.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Labels of two classes.
        sample_weight : array of shape (n_rows,), optional
        """
        learner = self._learner()
        check_indices(X)
        X, y = validate_data(self, X, y, **_ACCEPTED)
        check_magnitude(X)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._check_two_classes(y)
        weight = None
        if sample_weight is not None:
            weight = row_weights(sample_weight, X.shape[0])
        tree = ClassTree([1, 0], [0])  # class 1 on the left: log-odds of left are those of the second class
        task = NodeTask(Rows(X, codes, self.classes_, weight), tree)
        scorer = learner.fit(task, Context(check_random_state(self.random_state)))
        self.C_, self.n_iter_ = float(scorer.C[0]), abs(int(scorer.n_steps[0]))
        self.coef_, self.intercept_ = _parameters(scorer.nodes, X.shape[1])
        return self

    def _learner(self) -> TunedLogisticLearner:
        """Create the learner of a tree with one node, with a tight tolerance because that is cheap here."""
        try:
            learner = TunedLogisticLearner.recognise(self)
        except Unsupported as reason:
            raise ValueError(f"{type(self).__name__} cannot be trained, because {reason}.") from None
        return replace(learner, settings=replace(learner.settings, tol=min(self.tol, 1e-8)))

    def _check_two_classes(self, y: LabelArray) -> None:
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}. More classes need a NestedDichotomyClassifier with this estimator."
            )
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"A classifier needs two classes, but y has only one class: {only!r}.")

    def decision_function(self, X: Matrix) -> FloatArray:
        """Log-odds of the second class for the rows of `X`, shape (n_rows,)."""
        check_is_fitted(self)
        check_indices(X)
        X = validate_data(self, X, reset=False, **_ACCEPTED)
        check_magnitude(X)
        return np.asarray(X @ self.coef_[0] + self.intercept_[0], dtype=np.float64)

    def predict_proba(self, X: Matrix) -> FloatArray:
        """Probabilities of both classes for the rows of `X`, shape (n_rows, 2)."""
        log_odds = self.decision_function(X)
        return np.column_stack([expit(-log_odds), expit(log_odds)])

    def predict_log_proba(self, X: Matrix) -> FloatArray:
        """Logarithms of the probabilities for the rows of `X`, shape (n_rows, 2)."""
        log_odds = self.decision_function(X)
        return np.column_stack([log_expit(-log_odds), log_expit(log_odds)])

    def predict(self, X: Matrix) -> LabelArray:
        """Predict the more probable class of each row of `X`."""
        is_second = self.decision_function(X) > 0
        labels: LabelArray = self.classes_[is_second.astype(np.intp)]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


_ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}


@LEARNERS.register("tuned-logistic")
@dataclass(frozen=True)
class TunedLogisticLearner(Learner):
    """Logistic regression whose C is chosen at each node, or each depth, by out-of-fold loss.

    In cross-fitting, each fold's model chooses its own C on its training rows, so that out-of-fold scores
    depend on the scored row neither through the model nor through C.

    Attributes
    ----------
    Cs : ndarray of shape (n_values,)
        The grid.
    per_depth : bool
        Choose one value for all nodes of a depth.
    cv : int or splitter
        Folds of the choice.
    settings : Settings
        Other parameters of the regression.
    seed : int, RandomState or None
        Seed of the folds.
    """

    equals_clones = nodes_are_independent = False  # the choice of C pools losses over nodes
    trains: ClassVar = {"tuned-logistic": TunedLogisticRegression}

    Cs: FloatArray
    per_depth: bool
    cv: Any
    settings: Settings
    seed: Any = None

    @classmethod
    def recognise(cls, estimator: Any) -> Self:
        """Recognise a `TunedLogisticRegression`."""
        grid = np.unique(np.asarray(estimator.Cs, dtype=np.float64))
        if not len(grid) or not (np.isfinite(grid) & (grid > 0)).all():
            raise ValueError(f"Cs must be positive, finite numbers, got {estimator.Cs!r}.")
        if estimator.per not in ("node", "depth"):
            raise ValueError(f"per must be 'node' or 'depth', got {estimator.per!r}.")
        check_class_weight(estimator.class_weight)
        settings = Settings(
            free_intercept=bool(estimator.fit_intercept),
            intercept_scale=0.0,
            class_weight=estimator.class_weight,
            tol=estimator.tol,
            max_iter=estimator.max_iter,
        )
        return cls(grid, estimator.per == "depth", estimator.cv, settings, estimator.random_state)

    @property
    def description(self) -> str:
        """One line for users: the name of the learner and its method."""
        per = "depth" if self.per_depth else "node"
        return f"tuned-logistic: Newton's method for all nodes together, C chosen per {per}"

    def fit(self, task: NodeTask, context: Context) -> TunedScorer:
        """Choose each node's C and train it."""
        rng = context.rng if self.seed is None else check_random_state(self.seed)
        C = self._choose(task.prepared(), fold_of_rows(task.rows.codes, self.cv, rng), context)
        trained = NodeTraining(task, self.settings, C[:, None], None, 1, context).run()
        return TunedScorer(trained.members[0], C, trained.results.n_steps[0])

    def _choose(self, task: NodeTask, folds: IntArray, context: Context) -> FloatArray:
        grid = np.tile(self.Cs, (task.n_nodes, 1))
        training = NodeTraining(task, self.settings, grid, folds, 0, context.titled("choosing C, "))
        results = training.run().results
        segments = task.segments(results.scores)
        scored = segments.sums(np.where(np.isnan(results.scores), 0.0, 1.0))
        return choose_strength(task.depth, self.Cs, results.nll, scored, per_depth=self.per_depth)


def _parameters(scorer: Any, n_features: int) -> tuple[FloatArray, FloatArray]:
    """Return weights and intercept of the only node from dense or sparse storage."""
    if hasattr(scorer, "weights"):
        return scorer.weights.astype(np.float64), scorer.intercept.copy()
    weights = np.zeros((1, n_features))
    weights[0, np.flatnonzero(np.diff(scorer.feature_offsets))] = scorer.value
    return weights, scorer.intercept.copy()
