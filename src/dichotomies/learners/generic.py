"""Any scikit-learn classifier: one clone per node, trained in parallel."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.ensemble._forest import ForestClassifier
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.tree import BaseDecisionTree, DecisionTreeClassifier
from sklearn.utils.validation import has_fit_parameter

from dichotomies._kernels.log_odds import from_log_probabilities, from_probabilities
from dichotomies._parallel import Progress, run

if TYPE_CHECKING:
    from dichotomies._typing import FloatArray, IntArray, Matrix
    from dichotomies.learners.base import NodeTask

#: Batches per worker: enough to even out their sizes and to show progress, few enough to be cheap.
_BATCHES_PER_JOB = 16

#: Rows on which a decision function must agree with predict_proba to count as log-odds.
_PROBE_ROWS = 16


@dataclass(frozen=True)
class GenericScorer:
    """The trained clones of a tree, nodes in level order."""

    nodes: list[FittedNode]

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node, shape (n_rows, n_nodes)."""
        out = np.empty((X.shape[0], len(self.nodes)))
        with np.errstate(divide="ignore"):  # learners that take the logarithm of 0
            for k, node in enumerate(self.nodes):
                node.log_odds(X, out[:, k])
        if np.isnan(out).any():
            k = int(np.flatnonzero(np.isnan(out).any(axis=0))[0])
            raise ValueError(
                f"{type(self.nodes[k].estimator).__name__} answered NaN at node {k} of the tree."
            )
        return out


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
        """Write the log-odds of going left for each row: finite, unless the learner answers NaN."""
        if self.estimator is None:
            out[:] = self.prior
            return
        answer = np.asarray(getattr(self.estimator, self.method)(X), dtype=np.float64)
        if self.method == "decision_function":
            np.multiply(answer, self.sign, out=out)
        elif self.method == "predict_log_proba":
            from_log_probabilities(answer, self.sign, out)
        else:
            from_probabilities(answer, self.sign, out)


class GenericLearner:
    """Trains one clone of a scikit-learn classifier at every node.

    Parameters
    ----------
    estimator : scikit-learn classifier
        It must be able to answer with probabilities.

    Raises
    ------
    TypeError
        If the estimator is not a classifier, or cannot give probabilities.
    """

    def __init__(self, estimator: Any) -> None:
        _check_probabilistic(estimator)
        self.estimator = estimator
        self._template = clone(estimator)  # deepcopy of a fresh clone is a clone, several times faster
        self._open_seeds = _open_seeds(estimator)

    @property
    def description(self) -> str:
        """Which way the nodes are trained, for people."""
        return f"generic: one clone of {type(self.estimator).__name__} per node"

    def fit(
        self, task: NodeTask, *, random_state: Any, n_jobs: int | None = None, verbose: bool = False
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
        """
        self._check_weights(task)
        seeds = random_state.randint(np.iinfo(np.int32).max, size=task.tree.n_nodes)
        progress = Progress(f"training {task.tree.n_nodes} nodes") if verbose else None
        batches = _batches(task.node_size, _BATCHES_PER_JOB * effective_n_jobs(n_jobs))
        work = [(self, task.prepared(), batch, seeds[batch]) for batch in batches]
        results = run(_fit_batch, work, n_jobs=n_jobs, progress=progress)
        return GenericScorer([node for batch in results for node in batch])

    def _check_weights(self, task: NodeTask) -> None:
        if task.sample_weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(
                f"sample_weight was given, but {type(self.estimator).__name__} cannot be fitted with it."
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
        method = _probability_method(estimator, X[:: max(1, len(rows) // _PROBE_ROWS)])
        return FittedNode(estimator, method, 1.0 if left_is_positive else -1.0, prior)


def _fit_batch(learner: GenericLearner, task: NodeTask, nodes: range, seeds: IntArray) -> list[FittedNode]:
    # The root sees every row, and its clone every parameter: what scikit-learn checked there holds below.
    fitted = []
    for node, seed in zip(nodes, seeds, strict=True):
        with config_context(skip_parameter_validation=node > 0, assume_finite=node > 0):
            fitted.append(learner.fit_node(task, node, int(seed)))
    return fitted


def _batches(node_size: IntArray, n_batches: int) -> list[range]:
    """Consecutive nodes, cut so that every batch has about the same number of rows."""
    work = np.cumsum(node_size)
    batch_of_node = (work - node_size) * n_batches // max(1, work[-1])
    edges = [0, *(np.flatnonzero(np.diff(batch_of_node)) + 1).tolist(), len(node_size)]
    return [range(a, b) for a, b in pairwise(edges)]


def _highest_class_is_left(task: NodeTask, node: int) -> bool:
    tree = task.tree
    classes = tree.leaf_order[tree.start[node] : tree.stop[node]]
    return bool(np.argmax(classes) < tree.split[node] - tree.start[node])


def _open_seeds(estimator: Any) -> list[str]:
    """Every ``random_state`` of an estimator and its parts that the user left at None."""
    params = estimator.get_params(deep=True)
    return [name for name in params if name.split("__")[-1] == "random_state" and params[name] is None]


def _check_probabilistic(estimator: Any) -> None:
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"estimator must be an instance, got the class {name}; write {name}().")
    name = type(estimator).__name__
    if not hasattr(estimator, "fit") or not is_classifier(estimator):
        raise TypeError(f"estimator must be a scikit-learn classifier, got {name}, which is not.")
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{name} has no predict_proba, so it cannot say how likely each side of a node is. Choose a "
            f"classifier that can, or make probabilities of its scores: CalibratedClassifierCV({name}())."
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
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        positive = np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, 1]
        if scores.ndim == 1 and np.allclose(expit(scores), positive, rtol=1e-4, atol=1e-6):
            return "decision_function"
    return "predict_log_proba" if hasattr(estimator, "predict_log_proba") else "predict_proba"


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
