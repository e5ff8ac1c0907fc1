"""Any scikit-learn classifier: one clone per node, trained in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone, is_classifier

from dichotomies._common.parallel import Context, even_batches
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies._kernels.elementary import from_log_probabilities, from_probabilities
from dichotomies.learners.base import LEARNERS, CrossFitted, Learner, Wanted, takes_weight
from dichotomies.learners.frames import FrameColumns, InFrame
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Each, Part, expect
from dichotomies.rows import NodeTask

#: Number of rows on which a decision function must agree with predict_proba to be taken as log-odds.
_PROBE_ROWS = 16

#: Methods of classifiers that log-odds are computed from.
_METHODS = ("decision_function", "predict_log_proba", "predict_proba")

#: Log-odds beyond which probabilities are saturated and do not determine the score.
_SATURATED = 10.0


@savable("fitted-node", method=str, sign=float, prior=float)
@dataclass(frozen=True)
class FittedNode:
    """A trained clone and the method that gives its log-odds.

    Attributes
    ----------
    estimator : fitted classifier or None
        None if the node had training rows on one side only; its log-odds are then `prior`.
    method : str
        The method that gives log-odds, see `_probability_method`.
    sign : float
        +1 where the clone's positive class is the left side, -1 where it is the right.
    prior : float
        Smoothed log-odds of the left side among the training rows (Laplace's rule of succession).
    """

    estimator: Any
    method: str
    sign: float
    prior: float

    @classmethod
    def constant(cls, prior: float) -> FittedNode:
        """Create a node that had training rows on one side only."""
        return cls(None, "prior", 1.0, prior)

    @classmethod
    def read(cls, estimator: Any, X: Matrix, left_is_positive: bool, prior: float) -> FittedNode:
        """Determine method and sign of a classifier that was fitted on `X`."""
        sign = (1.0 if left_is_positive else -1.0) * _orientation(estimator)
        return cls(estimator, _probability_method(estimator, X), sign, prior)

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

    def check_relations(self, names: dict[str, Any]) -> None:  # noqa: ARG002 - called by `check`
        """Raise unless `method` is one that gives log-odds; see `dichotomies.persistence.checks`."""
        if self.estimator is None:
            expect(self.method == "prior", "a node without an estimator gives its prior")
        else:
            answers = self.method in _METHODS and callable(getattr(self.estimator, self.method, None))
            expect(answers, f"the log-odds of a node come from one of {_METHODS}")


def _orientation(estimator: Any) -> int:
    """Return +1 if the classes of a fitted classifier are [0, 1], -1 if they are [1, 0]."""
    classes = np.asarray(getattr(estimator, "classes_", [0, 1])).tolist()
    if classes not in ([0, 1], [1, 0]):
        name = type(estimator).__name__
        raise ValueError(f"{name} was fitted on the classes 0 and 1, but its classes_ are {classes}.")
    return 1 if classes == [0, 1] else -1


def _probability_method(estimator: Any, X: Matrix) -> str:
    """Choose the method of a fitted classifier that gives its log-odds most accurately.

    A decision function is taken only if it *is* the log-odds of predict_proba. That is known of some
    estimators and tested on a few rows for all others, including pipelines and third-party estimators.
    Second choice are log-probabilities, which may not have been rounded to 0 or 1.
    """
    kind = type(estimator)
    if kind.__module__.startswith("sklearn.") and kind.__name__ in _KNOWN_METHODS:
        return _KNOWN_METHODS[kind.__name__]
    if not hasattr(estimator, "predict_proba"):
        return "decision_function"  # scores, to be calibrated
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if scores.ndim == 1 and _is_log_odds(estimator, X, scores):
            return "decision_function"
    return "predict_log_proba" if hasattr(estimator, "predict_log_proba") else "predict_proba"


def _is_log_odds(estimator: Any, X: Matrix, scores: FloatArray) -> bool:
    """Test it on the rows nearest to the boundary; far from it, any probability rounds to 0 or 1."""
    near = np.argsort(np.abs(scores))[:_PROBE_ROWS]
    positive = np.asarray(estimator.predict_proba(X[near]), dtype=np.float64)[:, 1]
    unsaturated = np.abs(scores[near]) < _SATURATED
    unlikelier = np.where(scores[near] > 0, 1.0 - positive, positive)  # more digits than near 1
    expected = expit(-np.abs(scores[near]))
    return bool(unsaturated.any()) and np.allclose(expected, unlikelier, rtol=1e-4, atol=1e-6)


#: Methods of scikit-learn's estimators that need not be tested. Naive Bayes computes log-probabilities and
#: exponentiates them; trees compute probabilities and take their logarithm, which `log_odds` does as well.
_KNOWN_METHODS = {
    "LogisticRegression": "decision_function",
    "LogisticRegressionCV": "decision_function",
    "BernoulliNB": "predict_log_proba",
    "ComplementNB": "predict_log_proba",
    "GaussianNB": "predict_log_proba",
    "MultinomialNB": "predict_log_proba",
    "DecisionTreeClassifier": "predict_proba",
    "ExtraTreesClassifier": "predict_proba",
    "RandomForestClassifier": "predict_proba",
}


#: Stands for no fold left out.
_NONE = -1

#: Seconds to train a clone, and per row and feature of its node, to see if a cluster pays.
_SECONDS, _SECONDS_PER_NUMBER = 2e-3, 1e-7


@savable("clones", nodes=Each(Part(FittedNode), "n_nodes"), X_is_checked=bool)
@dataclass(frozen=True)
class GenericScorer:
    """The trained clones of a tree.

    Attributes
    ----------
    nodes : list of FittedNode
        The clones with their readings as log-odds, in level order.
    X_is_checked : bool
        The rows have been validated already, so that clones need not.
    """

    nodes: list[FittedNode]
    X_is_checked: bool

    @classmethod
    def gathered(cls, parts: Sequence[GenericScorer], nodes: IntArray) -> GenericScorer:
        """Take `nodes` of several `parts`, which are numbered one after the other."""
        every = [node for part in parts for node in part.nodes]
        return cls([every[k] for k in nodes], all(part.X_is_checked for part in parts))

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row of `X` at each node, shape (n_rows, n_nodes)."""
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

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        out = np.empty(len(rows))
        order = np.argsort(nodes, kind="stable")
        visited, begins = np.unique(nodes[order], return_index=True)
        with self._quietly():
            for node, mine in zip(visited, np.split(order, begins[1:]), strict=True):
                answer = np.empty(len(mine))
                self.nodes[node].log_odds(X[rows[mine]], answer)
                out[mine] = answer
        return out

    @cached_property
    def is_trained(self) -> BoolArray:
        """True where a node had training rows on both sides."""
        return np.array([node.estimator is not None for node in self.nodes])

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        """Suppress repeated checks of X at every node, and warnings of logarithms of 0."""
        with config_context(assume_finite=self.X_is_checked), np.errstate(divide="ignore"):
            yield


@LEARNERS.register("clones")
class GenericLearner(Learner):
    """One clone of the estimator per node: works for every scikit-learn classifier.

    Parameters
    ----------
    estimator : scikit-learn classifier
    calibrated : bool
        True if scores will be calibrated; otherwise the estimator must have `predict_proba`.
    reason : str
        The reason why no faster learner was chosen, for the description.

    Raises
    ------
    TypeError
        If the estimator is not a classifier, or cannot give probabilities.
    """

    def __init__(self, estimator: Any, *, calibrated: bool = False, reason: str = "") -> None:
        _check_classifier(estimator)
        if not hasattr(type(estimator), "predict_proba"):
            _check_scores(estimator, calibrated)
        self.calibrated = calibrated
        self.reason = reason
        self.estimator = estimator
        self._template = clone(estimator)  # deepcopy of a fresh clone is a clone, several times faster
        self._open_seeds = _open_seeds(estimator)
        self._passes_X_unchanged = not any("__" in name for name in estimator.get_params(deep=True))

    @classmethod
    def recognise(cls, estimator: Any) -> Self:
        """Recognise any estimator."""
        return cls(estimator)

    @property
    def gives_probabilities(self) -> bool:  # type: ignore[override]
        """True if the scores of the clones are log-odds; False if they are of any scale."""
        return hasattr(type(self.estimator), "predict_proba")

    @property
    def takes_weight(self) -> bool:  # type: ignore[override]
        """True if the clones can be fitted with sample weights."""
        return takes_weight(self.estimator)

    @property
    def description(self) -> str:
        """One line for users: the name of the learner and its method."""
        because = f", because {self.reason}" if self.reason else ""
        shown = getattr(self.estimator, "shown", self.estimator)  # a wrapper shows what it wraps
        return f"clones: one {type(shown).__name__} per node{because}"

    def fit(self, task: NodeTask, context: Context) -> GenericScorer:
        """Train all nodes.

        Clones whose own ``random_state`` is None are seeded node by node, so that the result does not depend
        on which worker trains which node.
        """
        [full], _ = self._train(task, [_NONE], context, keeps=True)
        return full

    def in_frame(self, columns: FrameColumns) -> GenericLearner:
        """Return the learner for rows with these `columns` of a data frame."""
        framed = InFrame(self.estimator, columns)
        return GenericLearner(framed, calibrated=self.calibrated, reason=self.reason)

    def cross_fit(self, task: NodeTask, wanted: Wanted, context: Context) -> CrossFitted:
        """Train all nodes without each fold, and on all rows; rows are scored where a node is trained."""
        left_out = [*range(task.rows.n_folds), *([_NONE] if Wanted.FULL in wanted else [])]
        trained, scores = self._train(task, left_out, context, keeps=Wanted.MEMBERS in wanted)
        return CrossFitted(
            trained.pop() if Wanted.FULL in wanted else None,
            trained if Wanted.MEMBERS in wanted else [],
            scores if Wanted.SCORES in wanted else None,
        )

    def _train(
        self, task: NodeTask, left_out: list[int], context: Context, *, keeps: bool
    ) -> tuple[list[GenericScorer], FloatArray]:
        """Train one model for each fold left out, and score the nodes' own rows of that fold."""
        self._check_weights(task)
        most, batches = np.iinfo(np.int32).max, even_batches(task.node_size, context.n_jobs)
        seeds = {f: context.rng.randint(most, size=task.n_nodes) for f in left_out}
        work = [(batch, f, seeds[f][batch], keeps or f == _NONE) for f in left_out for batch in batches]
        size = task.node_size
        seconds = [
            (_SECONDS + _SECONDS_PER_NUMBER * task.rows.n_features * size[each[0]]).sum() for each in work
        ]
        models = "" if len(left_out) == 1 else f" of {len(left_out)} models"
        done = context.map(
            _fit_batch, _CloneTask(self, task.prepared()), work, seconds,
            work=f"training {task.n_nodes} nodes{models}", threads=False,
        )  # fmt: skip
        nodes: dict[int, list[FittedNode]] = {f: [] for f in left_out}
        pairs, fold = task.own_pairs(), task.rows.fold
        scores = np.full(len(pairs.rows), np.nan)
        for (batch, f, *_), (fitted, of_fold) in zip(work, done, strict=True):
            nodes[f] += fitted
            if fold is not None and f != _NONE:
                inside = slice(pairs.offsets[batch.start], pairs.offsets[batch.stop])
                scores[inside][fold[pairs.rows[inside]] == f] = of_fold
        return [GenericScorer(nodes[f], self._passes_X_unchanged) for f in left_out], scores

    def _check_weights(self, task: NodeTask) -> None:
        if task.rows.weight is not None and not self.takes_weight:
            raise TypeError(
                f"sample_weight was given, but {type(self.estimator).__name__} cannot be fitted with it; "
                "a pipeline can when scikit-learn's metadata routing is enabled and its step requests it."
            )

    def fit_node(self, task: NodeTask, node: int, seed: int) -> FittedNode:
        """Train the clone of one `node` of the `task`, with `seed` for each ``random_state`` that is None."""
        rows, is_left = task.rows_of(node)
        weight = None
        if task.rows.weight is not None:
            weighted = task.rows.weight[rows] > 0
            rows, is_left = rows[weighted], is_left[weighted]
            weight = task.rows.weight[rows]
        in_left = float(is_left.sum() if weight is None else weight[is_left].sum())
        in_right = float((~is_left).sum() if weight is None else weight[~is_left].sum())
        prior = float(np.log((in_left + 1) / (in_right + 1)))
        if is_left.all() or not is_left.any():
            return FittedNode.constant(prior)
        left_is_positive = bool(task.left_is_positive[node])
        X, target = task.rows.features_of(rows), (is_left == left_is_positive).astype(np.intp)
        estimator = deepcopy(self._template)
        if self._open_seeds:
            estimator.set_params(**dict.fromkeys(self._open_seeds, seed))
        estimator.fit(X, target, **({} if weight is None else {"sample_weight": weight}))
        if not hasattr(estimator, "predict_proba"):
            _check_scores(estimator, self.calibrated)
        return FittedNode.read(estimator, X, left_is_positive, prior)


@dataclass(frozen=True, eq=False)
class _CloneTask:
    """Clones to train, and the rows of their nodes, with or without those of a fold."""

    learner: GenericLearner
    whole: NodeTask
    views: dict[int, NodeTask] = field(default_factory=dict)

    def without(self, fold: int) -> NodeTask:
        """The rows outside a fold."""
        if fold == _NONE:
            return self.whole
        if fold not in self.views:
            self.views[fold] = self.whole.take(np.flatnonzero(self.whole.rows.fold != fold))
        return self.views[fold]

    def held_out(self, node: int, fold: int) -> IntArray:
        """Rows of a node in a fold, in the order of `own_pairs`."""
        task = self.whole
        assert task.rows.fold is not None
        rows = task.row_order[task.leaf_offset[task.start[node]] : task.leaf_offset[task.stop[node]]]
        mine: IntArray = rows[task.rows.fold[rows] == fold]
        return mine


def _fit_batch(
    shared: _CloneTask, nodes: range, fold: int, seeds: IntArray, keeps: bool
) -> tuple[list[FittedNode], FloatArray]:
    """Train some nodes without the rows of a fold, which are then scored; NaN where a node is constant."""
    learner, task, fitted, scores = shared.learner, shared.without(fold), [], [np.empty(0)]
    with config_context(assume_finite=learner._passes_X_unchanged):  # X was checked once
        for node, seed in zip(nodes, seeds, strict=True):
            try:
                fitted.append(learner.fit_node(task, node, int(seed)))
            except Exception as error:
                error.add_note(f"This was at node {node} of the tree, which has {task.node_size[node]} rows.")
                raise
            if fold != _NONE:
                scores.append(_scored(fitted[-1], shared, node, fold))
    return fitted if keeps else [], np.concatenate(scores)


def _scored(fitted: FittedNode, shared: _CloneTask, node: int, fold: int) -> FloatArray:
    rows = shared.held_out(node, fold)
    scores = np.full(len(rows), np.nan)
    if fitted.estimator is not None and len(rows):
        with np.errstate(divide="ignore"):
            fitted.log_odds(shared.whole.rows.features_of(rows), scores)
    return scores


def _open_seeds(estimator: Any) -> list[str]:
    """Names of all nested ``random_state`` parameters that are None."""
    params = estimator.get_params(deep=True)
    return [name for name in params if name.split("__")[-1] == "random_state" and params[name] is None]


def _check_classifier(estimator: Any) -> None:
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"estimator must be an instance, got the class {name}; write {name}().")
    if isinstance(estimator, str):
        named = {name: kind for learner in LEARNERS.each() for name, kind in learner.trains.items()}
        hint = f": write {named[estimator].__name__}()" if estimator in named else ""
        raise TypeError(f"estimator must be a scikit-learn classifier, got the name {estimator!r}{hint}.")
    if not hasattr(estimator, "fit") or not is_classifier(estimator):
        name = type(estimator).__name__
        raise TypeError(f"estimator must be a scikit-learn classifier, got {name}, which is not.")


def _check_scores(estimator: Any, calibrated: bool) -> None:
    """Raise unless a classifier without predict_proba has scores that will be calibrated."""
    name = type(estimator).__name__
    if not hasattr(estimator, "decision_function"):
        raise TypeError(f"{name} has neither predict_proba nor decision_function to calibrate.")
    if not calibrated:
        raise TypeError(
            f"{name} has no predict_proba, so it cannot say how likely each side of a node is. Choose a "
            "classifier that can, or make probabilities of its scores: internal_calibration='platt'."
        )
