"""Any scikit-learn classifier: one clone per node, trained in parallel."""

from __future__ import annotations

from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit
from sklearn import config_context, get_config
from sklearn.base import clone, is_classifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.ensemble._forest import ForestClassifier
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import Pipeline
from sklearn.tree import BaseDecisionTree, DecisionTreeClassifier
from sklearn.utils.validation import has_fit_parameter

from dichotomies._kernels.log_odds import from_log_probabilities, from_probabilities
from dichotomies._parallel import Progress, even_batches, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dichotomies._typing import FloatArray, IntArray, Matrix
    from dichotomies.learners.base import NodeTask

#: Rows on which a decision function must agree with predict_proba to count as log-odds.
_PROBE_ROWS = 16

#: Log-odds beyond which a probability says nothing about the score it was made of.
_SATURATED = 10.0


@dataclass(frozen=True)
class GenericScorer:
    """The trained clones of a tree, nodes in level order."""

    nodes: list[FittedNode]
    X_is_checked: bool

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node, shape (n_rows, n_nodes)."""
        out = np.empty((X.shape[0], len(self.nodes)))
        with self._quietly():
            for k, node in enumerate(self.nodes):
                node.log_odds(X, out[:, k])
        if np.isnan(out).any():
            k = int(np.flatnonzero(np.isnan(out).any(axis=0))[0])
            raise ValueError(
                f"{type(self.nodes[k].estimator).__name__} answered NaN at node {k} of the tree."
            )
        return out

    def node_log_odds(self, node: int, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at one node."""
        out = np.empty(X.shape[0])
        with self._quietly():
            self.nodes[node].log_odds(X, out)
        return out

    def is_trained(self, node: int) -> bool:
        """Whether a node had rows on both sides to learn from."""
        return self.nodes[node].estimator is not None

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        """Without checking X again at every node, or warning of logarithms of 0."""
        with config_context(assume_finite=self.X_is_checked), np.errstate(divide="ignore"):
            yield


@dataclass(frozen=True)
class FittedNode:
    """A trained clone and how to read log-odds off it.

    Attributes
    ----------
    estimator : fitted classifier or None
        None where the node saw only one of its sides, and always answers `prior`.
    method : str
        The method that answers, see `_probability_method`.
    sign : float
        +1 where the clone's positive class is the left side, -1 where it is the right.
    prior : float
        Smoothed log-odds of the left side among the training rows (Laplace's rule of succession).
    """

    estimator: Any
    method: str
    sign: float
    prior: float

    def log_odds(self, X: Matrix, out: FloatArray) -> None:
        """Write the log-odds of going left for each row."""
        if self.estimator is None:
            out[:] = self.prior
            return
        answer = np.asarray(getattr(self.estimator, self.method)(X), dtype=np.float64)
        if self.method == "decision_function":
            np.multiply(answer.reshape(len(out)), self.sign, out=out)
            return
        if answer.shape != (len(out), 2):
            name = type(self.estimator).__name__
            raise ValueError(f"{name}.{self.method} answered with shape {answer.shape}, not (n_rows, 2).")
        if self.method == "predict_log_proba":
            from_log_probabilities(answer, self.sign, out)
        else:
            from_probabilities(answer, self.sign, out)


class GenericLearner:
    """Trains one clone of a scikit-learn classifier at every node.

    Parameters
    ----------
    estimator : scikit-learn classifier
    calibrated : bool
        Whether its answers will be calibrated; if not, it must be able to answer with probabilities.

    Raises
    ------
    TypeError
        If the estimator is not a classifier, or cannot give probabilities.
    """

    def __init__(self, estimator: Any, *, calibrated: bool = False) -> None:
        _check_classifier(estimator)
        if not hasattr(type(estimator), "predict_proba"):
            _check_scores(estimator, calibrated)
        self.calibrated = calibrated
        self.estimator = estimator
        self._template = clone(estimator)  # deepcopy of a fresh clone is a clone, several times faster
        self._open_seeds = _open_seeds(estimator)
        self._takes_X_as_it_is = not any("__" in name for name in estimator.get_params(deep=True))

    @property
    def description(self) -> str:
        """Which way the nodes are trained, for people."""
        return f"generic: one clone of {type(self.estimator).__name__} per node"

    def fit(
        self,
        task: NodeTask,
        *,
        random_state: Any,
        n_jobs: int | None = None,
        verbose: bool = False,
        title: str = "",
    ) -> GenericScorer:
        """Train all nodes.

        Parameters
        ----------
        task : NodeTask
            Tree and rows.
        random_state : RandomState
            Seeds the clones whose own ``random_state`` is None, each by its node, so that the result
            does not depend on who trains which node.
        n_jobs, verbose
            As in scikit-learn.
        title : str
            Put before the progress report.
        """
        self._check_weights(task)
        seeds = random_state.randint(np.iinfo(np.int32).max, size=task.tree.n_nodes)
        progress = Progress(f"{title}training {task.tree.n_nodes} nodes") if verbose else None
        batches = even_batches(task.node_size, n_jobs)
        work = [(self, task.prepared(), batch, seeds[batch]) for batch in batches]
        results = run(_fit_batch, work, n_jobs=n_jobs, progress=progress)
        return GenericScorer([node for batch in results for node in batch], self._takes_X_as_it_is)

    def _check_weights(self, task: NodeTask) -> None:
        if task.sample_weight is not None and not _takes_weight(self.estimator):
            raise TypeError(
                f"sample_weight was given, but {type(self.estimator).__name__} cannot be fitted with it; "
                "a pipeline can when scikit-learn's metadata routing is enabled and its step requests it."
            )

    def fit_node(self, task: NodeTask, node: int, seed: int) -> FittedNode:
        """Train the clone of one node."""
        rows, is_left = task.rows(node)
        weight = None
        if task.sample_weight is not None:
            weighted = task.sample_weight[rows] > 0
            rows, is_left = rows[weighted], is_left[weighted]
            weight = task.sample_weight[rows]
        in_left = float(is_left.sum() if weight is None else weight[is_left].sum())
        in_right = float((~is_left).sum() if weight is None else weight[~is_left].sum())
        prior = float(np.log((in_left + 1) / (in_right + 1)))
        if is_left.all() or not is_left.any():
            return FittedNode(None, "prior", 1.0, prior)
        # The side of the highest class is positive, as scikit-learn would code two classes: with only
        # two, the nested dichotomy is the base learner, bit for bit.
        left_is_positive = _highest_class_is_left(task, node)
        X, target = task.take(rows), (is_left == left_is_positive).astype(np.intp)
        estimator = deepcopy(self._template)
        if self._open_seeds:
            estimator.set_params(**dict.fromkeys(self._open_seeds, seed))
        estimator.fit(X, target, **({} if weight is None else {"sample_weight": weight}))
        if not hasattr(estimator, "predict_proba"):
            _check_scores(estimator, self.calibrated)
        sign = (1.0 if left_is_positive else -1.0) * _orientation(estimator)
        return FittedNode(estimator, _probability_method(estimator, X), sign, prior)


def _fit_batch(learner: GenericLearner, task: NodeTask, nodes: range, seeds: IntArray) -> list[FittedNode]:
    fitted = []
    with config_context(assume_finite=learner._takes_X_as_it_is):  # X was checked once
        for node, seed in zip(nodes, seeds, strict=True):
            try:
                fitted.append(learner.fit_node(task, node, int(seed)))
            except Exception as error:
                error.add_note(f"This was at node {node} of the tree, which has {task.node_size[node]} rows.")
                raise
    return fitted


def _highest_class_is_left(task: NodeTask, node: int) -> bool:
    tree = task.tree
    classes = tree.leaf_order[tree.start[node] : tree.stop[node]]
    return bool(np.argmax(classes) < tree.split[node] - tree.start[node])


def _takes_weight(estimator: Any) -> bool:
    if has_fit_parameter(estimator, "sample_weight") or get_config()["enable_metadata_routing"]:
        return True
    passes_on = any(p.kind is p.VAR_KEYWORD for p in signature(estimator.fit).parameters.values())
    return passes_on and not isinstance(estimator, Pipeline)


def _orientation(estimator: Any) -> int:
    """+1 where the second class of a fitted classifier is target 1, -1 where it lists 1 before 0."""
    classes = np.asarray(getattr(estimator, "classes_", [0, 1])).tolist()
    if classes not in ([0, 1], [1, 0]):
        name = type(estimator).__name__
        raise ValueError(f"{name} was fitted on the classes 0 and 1, but its classes_ are {classes}.")
    return 1 if classes == [0, 1] else -1


def _open_seeds(estimator: Any) -> list[str]:
    """Every ``random_state`` of an estimator and its parts that the user left at None."""
    params = estimator.get_params(deep=True)
    return [name for name in params if name.split("__")[-1] == "random_state" and params[name] is None]


def _check_classifier(estimator: Any) -> None:
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"estimator must be an instance, got the class {name}; write {name}().")
    if not hasattr(estimator, "fit") or not is_classifier(estimator):
        name = type(estimator).__name__
        raise TypeError(f"estimator must be a scikit-learn classifier, got {name}, which is not.")


def _check_scores(estimator: Any, calibrated: bool) -> None:
    """Without probabilities, scores will do if they are calibrated."""
    name = type(estimator).__name__
    if not hasattr(estimator, "decision_function"):
        raise TypeError(f"{name} has neither predict_proba nor decision_function to calibrate.")
    if not calibrated:
        raise TypeError(
            f"{name} has no predict_proba, so it cannot say how likely each side of a node is. Choose a "
            "classifier that can, or make probabilities of its scores: internal_calibration='platt'."
        )


def input_dtypes(estimator: Any) -> list[type]:
    """Types of X a learner computes with; anything else is converted, once, to the first of them."""
    return [np.float32] if isinstance(estimator, _SINGLE_PRECISION) else [np.float64, np.float32]


#: Learners that would convert X to single precision themselves, again at every node.
_SINGLE_PRECISION = (BaseDecisionTree, ForestClassifier)


def _probability_method(estimator: Any, X: Matrix) -> str:
    """Which method of a fitted classifier gives its log-odds best.

    A decision function is taken only where it *is* the log-odds of predict_proba. That is known of
    some learners and tried on a few rows of every other, so that it holds for pipelines and for
    learners we never heard of. Next best are log-probabilities, which need not have been rounded to 0
    or 1 first.
    """
    if type(estimator) in _KNOWN_METHODS:
        return _KNOWN_METHODS[type(estimator)]
    if not hasattr(estimator, "predict_proba"):
        return "decision_function"  # scores, to be calibrated
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if scores.ndim == 1 and _is_log_odds(estimator, X, scores):
            return "decision_function"
    return "predict_log_proba" if hasattr(estimator, "predict_log_proba") else "predict_proba"


def _is_log_odds(estimator: Any, X: Matrix, scores: FloatArray) -> bool:
    """Try it on the rows nearest to the boundary; far from it, any probability rounds to 0 or 1."""
    near = np.argsort(np.abs(scores))[:_PROBE_ROWS]
    positive = np.asarray(estimator.predict_proba(X[near]), dtype=np.float64)[:, 1]
    telling = np.abs(scores[near]) < _SATURATED
    return bool(telling.any()) and np.allclose(expit(scores[near]), positive, rtol=1e-4, atol=1e-6)


#: Learners that need not be tried. Naive Bayes computes log-probabilities and exponentiates them;
#: trees compute probabilities and take their logarithm, which we can do as well.
_KNOWN_METHODS = {
    LogisticRegression: "decision_function",
    LogisticRegressionCV: "decision_function",
    BernoulliNB: "predict_log_proba",
    ComplementNB: "predict_log_proba",
    GaussianNB: "predict_log_proba",
    MultinomialNB: "predict_log_proba",
    DecisionTreeClassifier: "predict_proba",
    ExtraTreesClassifier: "predict_proba",
    RandomForestClassifier: "predict_proba",
}
