"""Naive Bayes: all nodes are trained from class statistics, which are computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB

from dichotomies._common.parallel import Context
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies._kernels.compile import is_small
from dichotomies.learners.base import LEARNERS, SCORER, CrossFitted, Learner, NodeScorer, Wanted
from dichotomies.learners.naive_bayes.class_statistics import ClassStatistics
from dichotomies.learners.naive_bayes.dense import DenseCounts
from dichotomies.learners.naive_bayes.gaussian import GaussianMoments, GaussianRule
from dichotomies.learners.naive_bayes.groups import Groups
from dichotomies.learners.naive_bayes.smoothing import Smoothing
from dichotomies.learners.naive_bayes.sparse import SparseCounts
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Part
from dichotomies.rows import NodeTask
from dichotomies.rows.folds import Folds

#: Numbers up to which sparse rows, and the weights of their features, are written out in small problems.
_WRITTEN_OUT = 2**22


class Statistics(Protocol):
    """Statistics of each class in each fold."""

    #: See `ClassStatistics.kind`.
    kind: ClassVar[str]

    def tables(self) -> list[Any]:
        """See `ClassStatistics.tables`; groups are in the order of the tree's leaves."""

    @property
    def groups(self) -> Groups:
        """The classes, in the order of a tree's leaves."""

    def of_task(self, task: NodeTask) -> Statistics:
        """Reorder the statistics to the leaves of another tree."""

    def weights(self, fold: int | None, context: Context) -> NodeScorer:
        """Train the nodes on all rows, or on all but those of a fold."""

    def out_of_fold(
        self, task: NodeTask, X: Matrix, context: Context, *, with_full: bool
    ) -> tuple[FloatArray, NodeScorer | None]:
        """Out-of-fold scores of `task.own_pairs()`.

        If `with_full`, also the nodes trained on all rows, from the same sums.
        """


@LEARNERS.register("naive-bayes")
class NaiveBayesLearner(Learner):
    """GaussianNB, MultinomialNB, ComplementNB and BernoulliNB, from statistics of the classes.

    The statistics of a node are those of its classes combined, and those of a fold's complement are those
    of all other folds combined: one pass over the rows serves all nodes and folds.

    Parameters
    ----------
    estimator : GaussianNB, MultinomialNB, ComplementNB or BernoulliNB
        The parameters of every node.
    """

    is_quick = True
    folds = Folds(10, of_many=10)  # one pass over the rows serves all of them
    trains: ClassVar = {
        "gaussian-nb": GaussianNB,
        "multinomial-nb": MultinomialNB,
        "complement-nb": ComplementNB,
        "bernoulli-nb": BernoulliNB,
    }

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self._rule = (
            GaussianRule.of(estimator) if isinstance(estimator, GaussianNB) else Smoothing.of(estimator)
        )

    @classmethod
    def recognise(cls, estimator: Any) -> Self:
        """Recognise scikit-learn's own classes, not classes derived from them."""
        estimator._validate_params()
        return cls(estimator)

    @property
    def description(self) -> str:
        """One line for users: the name of the learner and its method."""
        return f"naive-bayes: every {type(self.estimator).__name__} from the statistics of its classes"

    def fit(self, task: NodeTask, context: Context) -> NodeScorer:
        """Train all nodes; nothing is random."""
        statistics = self._statistics(task, self._input(task), None, context)
        return self._scorer(statistics, None, context)

    def cross_fit(self, task: NodeTask, wanted: Wanted, context: Context) -> CrossFitted:
        """Train all nodes without each fold, and on all rows, as far as wanted."""
        X = self._input(task)
        statistics = self._statistics(task, X, task.rows.fold, context)
        n_folds = task.rows.n_folds
        members = [
            self._scorer(statistics, f, context.titled(f"fold {f + 1} of {n_folds}: ", f, n_folds))
            for f in range(n_folds if Wanted.MEMBERS in wanted else 0)
        ]
        with_full = Wanted.FULL in wanted
        if Wanted.SCORES not in wanted:
            return CrossFitted(self._scorer(statistics, None, context) if with_full else None, members, None)
        scores, full = statistics.out_of_fold(task, X, context, with_full=with_full)
        return CrossFitted(None if full is None else self._with_binarisation(full), members, scores)

    def _input(self, task: NodeTask) -> Matrix:
        return task.rows.remember(("naive Bayes features", self), lambda: self._checked_input(task))

    def _checked_input(self, task: NodeTask) -> Matrix:
        """Check the features, binarise them if the rule does, and write sparse ones out in small problems."""
        X = task.rows.X
        if isinstance(self._rule, GaussianRule):
            return X
        self._rule.check(X, type(self.estimator).__name__)
        X = self._rule.binarised(X)
        size = (X.shape[0] + task.n_nodes) * X.shape[1]
        is_sparse = not isinstance(X, np.ndarray)
        return X.toarray() if is_sparse and size <= _WRITTEN_OUT and is_small(X.shape[0], 2e-8 * size) else X

    def _statistics(self, task: NodeTask, X: Matrix, folds: IntArray | None, context: Context) -> Statistics:
        def take() -> Statistics:
            groups, rows = Groups.of(task, folds)
            if isinstance(self._rule, GaussianRule):
                return GaussianMoments.of(self._rule, groups, rows, X, context)
            kind = DenseCounts if isinstance(X, np.ndarray) else SparseCounts
            return kind.of(self._rule, groups, rows, X, context)

        known: Statistics = task.rows.remember(self._key(folds), take)
        return known if known.groups.task is task else known.of_task(task)

    def _key(self, folds: IntArray | None) -> tuple[Any, ...]:
        return "class statistics", self, None if folds is None else folds.tobytes()

    def class_statistics(self, task: NodeTask, context: Context) -> ClassStatistics:
        """Statistics of each class in each fold of the rows of a `task`; `context` as of `fit`."""
        statistics = self._statistics(task, self._input(task), task.rows.fold, context)
        groups, tree = statistics.groups, task.tree
        n_features = task.rows.n_features
        given = groups.n_folds, n_features, groups.size, groups.weight, statistics.tables()
        return ClassStatistics(statistics.kind, *given).taken(tree.leaf_position)

    def preset(self, task: NodeTask, known: ClassStatistics) -> None:
        """Train all nodes of the `task` from the statistics `known`, which may be those of more rows.

        The rows themselves are then used for nothing but out-of-fold scores.
        """
        X, known = self._input(task), known.taken(task.tree.leaf_order)
        groups = Groups(task, known.n_folds, known.size, known.weight)
        statistics: Statistics
        if isinstance(self._rule, GaussianRule):
            statistics = GaussianMoments.restored(self._rule, groups, known, X)
        else:
            kind = DenseCounts if isinstance(X, np.ndarray) else SparseCounts
            statistics = kind.restored(self._rule, groups, known)
        task.rows.memo[self._key(task.rows.fold)] = statistics

    def _scorer(self, statistics: Statistics, fold: int | None, context: Context) -> NodeScorer:
        return self._with_binarisation(statistics.weights(fold, context))

    def _with_binarisation(self, scorer: NodeScorer) -> NodeScorer:
        """Put binarisation in front of a scorer if the rule has a threshold."""
        if isinstance(self._rule, GaussianRule) or self._rule.threshold is None:
            return scorer
        return Binarised(self._rule, scorer)


@savable("binarised", rule=Part(Smoothing), scorer=SCORER)
@dataclass(frozen=True)
class Binarised:
    """A scorer whose input is binarised first."""

    rule: Smoothing
    scorer: NodeScorer

    @classmethod
    def gathered(cls, parts: Sequence[Binarised], nodes: IntArray) -> Binarised:
        """Take nodes of several parts, which are numbered one after the other."""
        kind: Any = type(parts[0].scorer)
        return cls(parts[0].rule, kind.gathered([part.scorer for part in parts], nodes))

    @property
    def is_trained(self) -> BoolArray:
        """True where a node had training rows on both sides."""
        return self.scorer.is_trained

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        return self.scorer.log_odds(self.rule.binarised(X, np.float64))

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        distinct, place = np.unique(rows, return_inverse=True)
        return self.scorer.pair_log_odds(self.rule.binarised(X[distinct], np.float64), place, nodes)
