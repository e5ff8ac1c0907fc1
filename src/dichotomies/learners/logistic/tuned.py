"""`TunedLogisticRegression`: logistic regression that finds out how much to shrink, node by node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from dichotomies.learners.base import LEARNERS, Effort, Learner, NodeTask, Unsupported, expect_fits
from dichotomies.learners.logistic.settings import Settings, check_class_weight
from dichotomies.learners.logistic.training import NodeTraining
from dichotomies.learners.logistic.tuning import chosen_strength
from dichotomies.persistence import Estimator, savable
from dichotomies.persistence.checks import expect_array
from dichotomies.rows.folds import fold_of_rows
from dichotomies.tree import ClassTree

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, LabelArray, Matrix
    from dichotomies.learners.base import NodeScorer

_DEFAULT_CS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


@savable("tuned-scorer")
@dataclass(frozen=True)
class TunedScorer:
    """Trained nodes, each with the C it was trained with.

    Attributes
    ----------
    nodes : NodeScorer
    C : (n_nodes,)
    n_steps : (n_nodes,)
        Newton steps; negative, or 0, where they did not lead to the optimum.
    """

    nodes: NodeScorer
    C: FloatArray
    n_steps: IntArray

    @property
    def is_trained(self) -> BoolArray:
        """True for nodes that had rows on both sides to learn from."""
        return self.nodes.is_trained

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        return self.nodes.log_odds(X)

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        return self.nodes.pair_log_odds(X, rows, nodes)

    def check_fits(self, n_nodes: int, n_features: int) -> None:
        """Refuse to be for another tree or other rows; see `NodeScorer`."""
        expect_fits(self.nodes, n_nodes, n_features)
        expect_array(self.C, "float", (n_nodes,), "C")
        expect_array(self.n_steps, "integer", (n_nodes,), "n_steps")


@LEARNERS.register("tuned-logistic")
@dataclass(frozen=True)
class TunedLogisticLearner(Learner):
    """Logistic regression whose C is chosen at each node, or each depth, by out-of-fold loss.

    Trained on folds, each model chooses for itself, on the rows it may see: a row is never scored by a model,
    or with a C, that has seen it.
    """

    nodes_are_independent = False  # they choose C together

    Cs: FloatArray
    per_depth: bool
    cv: Any
    settings: Settings
    seed: Any = None

    @classmethod
    def recognise(cls, estimator: Any) -> Self | None:
        """Take over a `TunedLogisticRegression`."""
        if type(estimator) is not TunedLogisticRegression:
            return None
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
        """Which way the nodes are trained, for people."""
        per = "depth" if self.per_depth else "node"
        return f"tuned-logistic: Newton's method for all nodes together, C chosen per {per}"

    def fit(
        self, task: NodeTask, *, random_state: Any, effort: Effort | None = None, title: str = ""
    ) -> TunedScorer:
        """Choose each node's C and train it."""
        task, effort = task.prepared(), effort or Effort()
        rng = random_state if self.seed is None else check_random_state(self.seed)
        C = self._choose(task, fold_of_rows(task.codes, self.cv, rng), effort, title)
        trained = NodeTraining(task, self.settings, C[:, None], None, 1, effort, title).run()
        return TunedScorer(trained.members[0], C, trained.results.n_steps[0])

    def _choose(self, task: NodeTask, folds: IntArray, effort: Effort, title: str) -> FloatArray:
        grid = np.tile(self.Cs, (task.n_nodes, 1))
        results = (
            NodeTraining(task, self.settings, grid, folds, 0, effort, f"{title}choosing C, ").run().results
        )
        pairs = task.own_pairs()
        weight = np.ones(len(pairs.rows)) if task.sample_weight is None else task.sample_weight[pairs.rows]
        node = np.repeat(np.arange(task.n_nodes), task.node_size)
        weight[np.isnan(results.scores)] = 0.0
        scored = np.bincount(node, weights=weight, minlength=task.n_nodes).astype(np.float64)
        return chosen_strength(task.depth, self.Cs, results.nll, scored, per_depth=self.per_depth)


@savable("tuned-logistic-regression", Estimator())
class TunedLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression with an L2 penalty whose strength is chosen by out-of-fold log-loss.

    As the estimator of a nested dichotomy every node, or every depth of the tree, chooses its own: nodes
    deep in the tree have few rows and want to be shrunk more. The path over C and the folds start from one
    another's solutions, so that trying costs little. A node chooses as if it had 100 more rows with the mean
    losses of its depth, and a depth as if it had 100 more with those of the tree: a node too small for folds
    follows the others.

    On its own it is a classifier of two classes.

    Parameters
    ----------
    Cs : sequence of float, default=(0.01, 0.1, 1, 10, 100, 1000)
        Inverse strengths of the penalty to choose from.
    per : "node" or "depth", default="node"
        Who chooses.
    cv : int, splitter or iterable of (train, test), default=3
        Folds on which to try.
    fit_intercept : bool, default=True
    class_weight : None, "balanced" or dict, default=None
        As in scikit-learn's `LogisticRegression`. It does not enter the loss by which C is chosen.
    tol : float, default=1e-4
        Largest derivative of the mean loss.
    max_iter : int, default=100
        Newton steps.
    random_state : int, RandomState or None, default=None
        Deals the rows to folds. A nested dichotomy uses its own where this is None.

    Attributes
    ----------
    C_ : float
        The C chosen.
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    n_iter_ : int
        Newton steps of the last model.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where `X` was a data frame.

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
        X, y = validate_data(self, X, y, **_ACCEPTED)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._check_two_classes(y)
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        tree = ClassTree([1, 0], [0])  # class 1 on the left: log-odds of left are those of the second class
        task = NodeTask(tree, X, codes, weight)
        scorer = learner.fit(task, random_state=check_random_state(self.random_state))
        self.C_, self.n_iter_ = float(scorer.C[0]), abs(int(scorer.n_steps[0]))
        self.coef_, self.intercept_ = _parameters(scorer.nodes, X.shape[1])
        return self

    def _learner(self) -> TunedLogisticLearner:
        """The learner of a tree with one node, for which it costs little to be exact."""
        try:
            learner = TunedLogisticLearner.recognise(self)
        except Unsupported as reason:
            raise ValueError(f"{type(self).__name__} cannot be trained, because {reason}.") from None
        assert learner is not None
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
        """Log-odds of the second class, shape (n_rows,)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **_ACCEPTED)
        return np.asarray(X @ self.coef_[0] + self.intercept_[0], dtype=np.float64)

    def predict_proba(self, X: Matrix) -> FloatArray:
        """Probabilities of both classes, shape (n_rows, 2)."""
        log_odds = self.decision_function(X)
        return np.column_stack([expit(-log_odds), expit(log_odds)])

    def predict_log_proba(self, X: Matrix) -> FloatArray:
        """Logarithms of the probabilities, shape (n_rows, 2)."""
        log_odds = self.decision_function(X)
        return np.column_stack([log_expit(-log_odds), log_expit(log_odds)])

    def predict(self, X: Matrix) -> LabelArray:
        """The likelier class of each row."""
        is_second = self.decision_function(X) > 0
        labels: LabelArray = self.classes_[is_second.astype(np.intp)]
        return labels

    def check_loaded(self) -> None:
        """Refuse fitted attributes that do not fit together; see `dichotomies.persistence`."""
        if hasattr(self, "coef_"):
            expect_array(self.coef_, "float", (1, self.n_features_in_), "coef_")
            expect_array(self.intercept_, "float", (1,), "intercept_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


_ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}


def _parameters(scorer: Any, n_features: int) -> tuple[FloatArray, FloatArray]:
    """Weights and intercept of the only node, whichever way they are stored."""
    if hasattr(scorer, "weights"):
        return scorer.weights.astype(np.float64), scorer.intercept.copy()
    weights = np.zeros((1, n_features))
    weights[0, np.flatnonzero(np.diff(scorer.feature_offsets))] = scorer.value
    return weights, scorer.intercept.copy()
