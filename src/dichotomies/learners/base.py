"""`Learner`: the interface of ways to train the nodes of a tree, and the choice of one for an estimator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from inspect import signature
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from dichotomies._common.parallel import Context, even_batches, run
from dichotomies._common.registry import Registry
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies.persistence import CATALOGUE, Parameters, savable
from dichotomies.persistence.checks import Part, Such
from dichotomies.rows import NodeTask
from dichotomies.rows.folds import Folds

#: Estimators that would convert X to single precision themselves, again at every node; by name, because
#: importing them takes a tenth of a second.
_SINGLE_PRECISION = {"sklearn.tree._classes.BaseDecisionTree", "sklearn.ensemble._forest.ForestClassifier"}


class Scorer(Protocol):
    """Log-odds at the nodes of a tree."""

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row of `X` at each node, shape (n_rows, n_nodes), a fresh array."""

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``, shape (n_pairs,)."""


class NodeScorer(Scorer, Protocol):
    """Trained nodes of a tree.

    Attributes
    ----------
    is_trained : ndarray of bool of shape (n_nodes,)
        True where a node had rows on both sides; otherwise its score is a constant, the smoothed log-odds of
        its sides (Laplace's rule of succession).
    """

    @property
    def is_trained(self) -> BoolArray: ...  # noqa: D102


#: Declaration of a scorer that is part of another object; see `dichotomies.persistence.checks`.
SCORER = Part(Such(lambda it: hasattr(it, "log_odds"), "scores rows"), "n_nodes", "n_features")


class Wanted(Flag):
    """Parts of cross-fitting that the caller needs."""

    FULL = auto()  #: one model, trained on all rows
    MEMBERS = auto()  #: one model per fold, trained on all other rows
    SCORES = auto()  #: the out-of-fold score of every row at each of its own nodes


@dataclass(frozen=True)
class CrossFitted:
    """Models and scores of training on folds, as far as they were wanted.

    Attributes
    ----------
    full : NodeScorer or None
        Trained on all rows.
    members : sequence of NodeScorer
        ``members[f]`` was trained without the rows of fold ``f``.
    scores : (n_pairs,) or None
        Log-odds of going left for every pair of ``task.own_pairs()``, by the member that was trained without
        the row; NaN where that member had rows on one side of the node only.
    """

    full: NodeScorer | None
    members: Sequence[NodeScorer]
    scores: FloatArray | None


class Unsupported(Exception):  # noqa: N818 - a result rather than an error
    """Reason why a learner cannot train an estimator's nodes, in words that follow "because"."""


class Learner(ABC):
    """Method of training all nodes of a tree.

    Every subclass gives the results of `GenericLearner`, one clone per node, only faster.
    """

    #: Classes of estimators that the learner trains, by their names on the command line. Those of
    #: scikit-learn are saved by their parameters; classes derived from them are left to the clones.
    trains: ClassVar[Mapping[str, type]] = {}

    #: True if it is taken only where it is named.
    only_by_name = False

    #: True if scores are log-odds; False if they are of any scale.
    gives_probabilities = True

    #: True if it gives what one clone per node gives, to which rows of other nodes mean nothing.
    equals_clones = True

    #: True if a node's model does not depend on the rest of the tree.
    nodes_are_independent = True

    #: True if rows may be weighted.
    takes_weight = True

    #: True if training takes microseconds per row and node, so that comparing several trees is cheap.
    is_quick = False

    #: Folds of cross-fitting where the user names no number.
    folds = Folds(3, of_many=2)

    def __init_subclass__(cls) -> None:
        for kind in cls.__dict__.get("trains", {}).values():  # those inherited are declared already
            if kind.__module__.startswith("sklearn."):
                savable(f"sklearn/{kind.__name__}", Parameters())(kind)

    @classmethod
    @abstractmethod
    def recognise(cls, estimator: Any) -> Self:
        """Return a learner that trains nodes as `estimator` would, which is of a class in `trains`.

        Raises
        ------
        Unsupported
            If the estimator has parameters that this learner cannot honour.
        """

    @property
    @abstractmethod
    def description(self) -> str:
        """One line for users: the name of the learner and its method."""

    @abstractmethod
    def fit(self, task: NodeTask, context: Context) -> NodeScorer:
        """Train all nodes of the `task` on all rows, with the workers and random numbers of `context`."""

    def cross_fit(self, task: NodeTask, wanted: Wanted, context: Context) -> CrossFitted:
        """Train all nodes without each fold of the `task`, and on all rows, as far as `wanted`.

        The `context` is that of `fit`.
        """
        fold, n_folds = task.rows.fold, task.rows.n_folds
        assert fold is not None
        members = [
            self.fit(
                task.take(np.flatnonzero(fold != f)),
                context.titled(f"fold {f + 1} of {n_folds}: ", f, n_folds + 1),
            )
            for f in range(n_folds)
        ]
        scores = out_of_fold_scores(task, members, context.n_jobs) if Wanted.SCORES in wanted else None
        full = self.fit(task, context.titled("", n_folds, n_folds + 1)) if Wanted.FULL in wanted else None
        return CrossFitted(full, members if Wanted.MEMBERS in wanted else [], scores)

    def passes(self, *, is_sparse: bool) -> NodePasses | None:  # noqa: ARG002 - as few learners need it
        """Return the way to train nodes with more rows, maybe `is_sparse`, than fit into memory, if any."""
        return None


def out_of_fold_scores(
    task: NodeTask, members: Sequence[NodeScorer], n_jobs: int | None = None
) -> FloatArray:
    """Compute `CrossFitted.scores` from the members."""
    assert task.rows.fold is not None
    pairs = task.own_pairs()
    fold, nodes = task.rows.fold[pairs.rows], np.repeat(np.arange(task.n_nodes), task.node_size)
    scores = np.full(len(nodes), np.nan)

    def score(batch: range) -> None:
        inside = slice(pairs.offsets[batch.start], pairs.offsets[batch.stop])
        for f, member in enumerate(members):
            mine = inside.start + np.flatnonzero((fold[inside] == f) & member.is_trained[nodes[inside]])
            if len(mine):
                scores[mine] = member.pair_log_odds(task.rows.X, pairs.rows[mine], nodes[mine])

    batches = [(batch,) for batch in even_batches(task.node_size, n_jobs)]
    run(score, batches, n_jobs=n_jobs, shared_memory=True)
    return scores


# ---------------------------------------------------------------------- what only some learners can do


@runtime_checkable
class KeepsStatistics(Protocol):
    """A learner whose nodes follow from statistics of the classes, which can be added."""

    def class_statistics(self, task: NodeTask, context: Context) -> Any:
        """Statistics of each class in each fold of the rows of a `task`; `context` as of `fit`."""

    def preset(self, task: NodeTask, known: Any) -> None:
        """Train all nodes of the `task` from the statistics `known`, which may be those of more rows."""


@runtime_checkable
class TakesFrames(Protocol):
    """A learner whose classifiers may get rows as data frames."""

    def in_frame(self, columns: Any) -> Learner:
        """Return the learner for rows with these `columns` of a data frame."""


class Block(NamedTuple):
    """Rows that are on the same side of every node.

    Attributes
    ----------
    X : (n, n_features)
    weight : (n,)
    nodes : (m,)
        The nodes with these rows, as indices into the list of them.
    is_left : (m,)
    """

    X: FloatArray
    weight: FloatArray
    nodes: IntArray
    is_left: BoolArray


class NodePasses(Protocol):
    """Trains nodes that have more rows than fit into memory, by passes over blocks of rows."""

    def begun(self, task: NodeTask, n_rows: int) -> Any:
        """Return the one node of a `task`, which has a sample of the node's `n_rows`."""

    def finished(
        self,
        nodes: Sequence[Any],
        scorers: Sequence[Any],
        blocks: Callable[[Sequence[int]], Iterable[Block]],
    ) -> list[Any]:
        """Train nodes on all rows, and return their scorers in place of those of the samples.

        `blocks` starts a pass over the rows of some nodes, which are given by their places in `nodes`.
        """


def statistics_of(learner: Learner) -> KeepsStatistics:
    """Return a learner that keeps statistics; raise if it is not one."""
    if not isinstance(learner, KeepsStatistics):
        raise TypeError(f"Statistics can be added for naive Bayes only, not for {learner.description}.")
    return learner


LEARNERS: Registry[Learner] = Registry("learner", "dichotomies.learners")
CATALOGUE.search(LEARNERS)  # importing learners registers their savable scorers


def choose(estimator: Any, name: str = "auto", *, calibrated: bool = False) -> Learner:
    """Choose the learner for an estimator.

    Parameters
    ----------
    estimator : scikit-learn classifier
    name : str
        "auto" takes the learner that trains estimators of this class, or else one clone per node, with the
        reason in its description. Any other name requires that learner, and raises if it cannot train it.
    calibrated : bool
        True if scores will be calibrated; otherwise the estimator must have `predict_proba`.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from dichotomies.learners import choose
    >>> choose(SVC(), calibrated=True).description
    'clones: one SVC per node, because there is no fast path for SVC'
    """
    if name == "clones":
        return LEARNERS.create("clones", estimator=estimator, calibrated=calibrated)
    try:
        return _fast(estimator, name)
    except Unsupported as unsupported:
        reason = str(unsupported)
    if name != "auto":
        raise ValueError(f"learner={name!r} cannot train {type(estimator).__name__}, because {reason}.")
    return LEARNERS.create("clones", estimator=estimator, calibrated=calibrated, reason=reason)


def _fast(estimator: Any, name: str) -> Learner:
    kind, trained = type(estimator), []
    for learner in LEARNERS.each() if name == "auto" else [LEARNERS.get(name)]:
        if kind in learner.trains.values() and not (name == "auto" and learner.only_by_name):
            chosen: Learner = learner.recognise(estimator)
            return chosen
        trained += [each.__name__ for each in learner.trains.values()]
    if name == "auto":
        raise Unsupported(f"there is no fast path for {kind.__name__}")
    raise Unsupported(f"it trains only {', '.join(trained)}; learner='auto' finds one that does")


def takes_weight(estimator: Any) -> bool:
    """Return True if `estimator` can be fitted with weights; with metadata routing, `fit` finds out."""
    if has_fit_parameter(estimator, "sample_weight") or get_config()["enable_metadata_routing"]:
        return True
    passes_on = any(p.kind is p.VAR_KEYWORD for p in signature(estimator.fit).parameters.values())
    return passes_on and not isinstance(estimator, Pipeline)


def input_dtypes(estimator: Any) -> list[type]:
    """Return the types of X that `estimator` computes with; X of any other is converted to the first."""
    bases = {f"{base.__module__}.{base.__name__}" for base in type(estimator).__mro__}
    return [np.float32] if bases & _SINGLE_PRECISION else [np.float64, np.float32]
