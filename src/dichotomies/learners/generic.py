"""Any scikit-learn classifier: one clone per node, trained in parallel."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from dichotomies._parallel import Progress, run

if TYPE_CHECKING:
    from dichotomies._typing import FloatArray, IntArray, Matrix
    from dichotomies.learners.base import NodeTask

#: A learner that answers exactly 0 or 1 is taken to mean one double-precision step away from it.
_CERTAIN = float(-np.log(np.finfo(np.float64).epsneg))

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
        with np.errstate(divide="ignore"):
            for k, node in enumerate(self.nodes):
                out[:, k] = node.log_odds(X)
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
        The method that answers, see `_log_odds_of`.
    sign : float
        +1 where the clone's positive class is the left side, -1 where it is the right.
    prior : float
        Smoothed log-odds of the left side among the training rows (Laplace's rule of succession).
    """

    estimator: Any
    method: str
    sign: float
    prior: float

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row, always finite unless the learner answers NaN."""
        if self.estimator is None:
            return np.full(X.shape[0], self.prior)
        return self.sign * _log_odds_of(self.estimator, self.method, X)


class GenericLearner:
    """Trains one clone of a scikit-learn classifier at every node.

    Parameters
    ----------
    estimator : scikit-learn classifier
        It must be able to answer with probabilities.
    fit_with_weight : bool
        Whether the rows' weights are passed to the clones.

    Raises
    ------
    TypeError
        If the estimator is not a classifier, or cannot give probabilities.
    """

    def __init__(self, estimator: Any, *, fit_with_weight: bool = True) -> None:
        _check_probabilistic(estimator)
        self.estimator = estimator
        self.fit_with_weight = fit_with_weight

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
        work = [(self, task, batch, seeds[batch]) for batch in batches]
        results = run(_fit_batch, work, n_jobs=n_jobs, progress=progress)
        return GenericScorer([node for batch in results for node in batch])

    def _check_weights(self, task: NodeTask) -> None:
        if task.sample_weight is None or not self.fit_with_weight:
            return
        if not has_fit_parameter(self.estimator, "sample_weight"):
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
        total_left = np.sum(is_left if weight is None else weight[is_left])
        total_right = np.sum(~is_left if weight is None else weight[~is_left])
        prior = float(np.log((total_left + 1) / (total_right + 1)))
        if is_left.all() or not is_left.any():
            return FittedNode(None, "prior", 1.0, prior)
        # The side of the highest class is positive, as scikit-learn would code two classes: with only
        # two, the nested dichotomy is the base learner, bit for bit.
        left_is_positive = _highest_class_is_left(task, node)
        X, target = task.X[rows], (is_left == left_is_positive).astype(np.intp)
        estimator = _seeded_clone(self.estimator, seed)
        estimator.fit(
            X, target, **({} if weight is None or not self.fit_with_weight else {"sample_weight": weight})
        )
        method = _probability_method(estimator, X[:: max(1, len(rows) // _PROBE_ROWS)])
        return FittedNode(estimator, method, 1.0 if left_is_positive else -1.0, prior)


def _fit_batch(learner: GenericLearner, task: NodeTask, nodes: range, seeds: IntArray) -> list[FittedNode]:
    return [learner.fit_node(task, node, int(seed)) for node, seed in zip(nodes, seeds, strict=True)]


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


def _seeded_clone(estimator: Any, seed: int) -> Any:
    """Clone, with every ``random_state`` that the user left at None seeded."""
    copy = clone(estimator)
    params = copy.get_params(deep=True)
    open_seeds = [name for name in params if name.split("__")[-1] == "random_state" and params[name] is None]
    return copy.set_params(**dict.fromkeys(open_seeds, seed))


def _check_probabilistic(estimator: Any) -> None:
    name = type(estimator).__name__
    if not hasattr(estimator, "fit") or not is_classifier(estimator):
        raise TypeError(f"estimator must be a scikit-learn classifier, got {name}, which is not.")
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{name} has no predict_proba, so it cannot say how likely each side of a node is. Choose a "
            f"classifier that can, or make probabilities of its scores: CalibratedClassifierCV({name}())."
        )


def _probability_method(estimator: Any, X: Matrix) -> str:
    """Which method of a fitted classifier gives its log-odds most precisely.

    A decision function is taken only where it *is* the log-odds of predict_proba, which is tried on a
    few rows rather than looked up by the learner's name. Next best are log-probabilities: naive Bayes
    computes them without rounding to 0 or 1 first.
    """
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        positive = np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, 1]
        if scores.ndim == 1 and np.allclose(expit(scores), positive, rtol=1e-4, atol=1e-6):
            return "decision_function"
    return "predict_log_proba" if hasattr(estimator, "predict_log_proba") else "predict_proba"


def _log_odds_of(estimator: Any, method: str, X: Matrix) -> FloatArray:
    """Log-odds of the positive class, infinite ones replaced by `_CERTAIN`."""
    answer = np.asarray(getattr(estimator, method)(X), dtype=np.float64)
    if method == "predict_proba":
        answer = np.log(answer)
    log_odds: FloatArray = answer if method == "decision_function" else answer[:, 1] - answer[:, 0]
    log_odds[np.isposinf(log_odds)] = _CERTAIN
    log_odds[np.isneginf(log_odds)] = -_CERTAIN
    return log_odds
