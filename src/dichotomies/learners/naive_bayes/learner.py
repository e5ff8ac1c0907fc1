"""Naive Bayes: all nodes from the statistics of the classes, which are taken once."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB

from dichotomies.learners.base import LEARNERS, CrossFitted, Effort, Learner, Wanted, expect_fits
from dichotomies.learners.naive_bayes.dense import DenseCounts
from dichotomies.learners.naive_bayes.gaussian import GaussianMoments, GaussianRule
from dichotomies.learners.naive_bayes.groups import Groups
from dichotomies.learners.naive_bayes.smoothing import Smoothing
from dichotomies.learners.naive_bayes.sparse import SparseCounts
from dichotomies.persistence import savable
from dichotomies.persistence.checks import expect_type

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies.learners.base import NodeScorer, NodeTask


class Statistics(Protocol):
    """What is known of each class in each fold."""

    @property
    def groups(self) -> Groups:
        """The classes, in the order of a tree's leaves."""

    def of_task(self, task: NodeTask) -> Statistics:
        """The same, for the nodes of another tree."""

    def weights(self, fold: int | None = None, effort: Effort | None = None, title: str = "") -> NodeScorer:
        """The nodes, learned from all rows or from all but those of a fold."""

    def out_of_fold(
        self, task: NodeTask, X: Matrix, folds: IntArray, effort: Effort, *, with_full: bool
    ) -> tuple[FloatArray, NodeScorer | None]:
        """Scores of `task.own_pairs()` by models that have not seen the row's fold.

        Where `with_full`, also what `weights()` gives: both follow from the same sums.
        """


@LEARNERS.register("naive-bayes")
class NaiveBayesLearner(Learner):
    """GaussianNB, MultinomialNB, ComplementNB and BernoulliNB, from statistics of the classes.

    The statistics of a node are those of its classes combined, and those of a fold's complement are those
    of all other folds combined: the rows are read once, however many nodes and folds there are.
    """

    is_quick = True

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self._rule = (
            GaussianRule.of(estimator) if isinstance(estimator, GaussianNB) else Smoothing.of(estimator)
        )

    @classmethod
    def recognise(cls, estimator: Any) -> Self | None:
        """One of scikit-learn's own, no class derived from them."""
        if type(estimator) not in (GaussianNB, MultinomialNB, ComplementNB, BernoulliNB):
            return None
        estimator._validate_params()
        return cls(estimator)

    @property
    def description(self) -> str:
        """Which way the nodes are trained, for people."""
        return f"naive-bayes: every {type(self.estimator).__name__} from the statistics of its classes"

    def fit(
        self,
        task: NodeTask,
        *,
        random_state: Any,  # noqa: ARG002 - nothing is random
        effort: Effort | None = None,
        title: str = "",
    ) -> NodeScorer:
        """Train all nodes."""
        effort = effort or Effort()
        X = task.memo.get("readable", lambda: self._readable(task.X))
        statistics = self._statistics(task, X, None, effort)
        return self._scorer(statistics, None, effort, title)

    def cross_fit(
        self,
        task: NodeTask,
        folds: IntArray,
        wanted: Wanted,
        *,
        random_state: Any,  # noqa: ARG002 - nothing is random
        effort: Effort | None = None,
    ) -> CrossFitted:
        """Train on folds, of which only the statistics are told apart."""
        effort = effort or Effort()
        X = task.memo.get("readable", lambda: self._readable(task.X))
        statistics = self._statistics(task, X, folds, effort)
        n_folds = int(folds.max()) + 1
        members = [
            self._scorer(statistics, f, effort, f"fold {f + 1} of {n_folds}: ")
            for f in range(n_folds if Wanted.MEMBERS in wanted else 0)
        ]
        with_full = Wanted.FULL in wanted
        if Wanted.SCORES not in wanted:
            return CrossFitted(
                self._scorer(statistics, None, effort, "") if with_full else None, members, None
            )
        scores, full = statistics.out_of_fold(task, X, folds, effort, with_full=with_full)
        return CrossFitted(None if full is None else self._reading(full), members, scores)

    def _readable(self, X: Matrix) -> Matrix:
        """The rows as the rule reads them."""
        if isinstance(self._rule, GaussianRule):
            return X
        self._rule.check(X, type(self.estimator).__name__)
        return self._rule.binarised(X)

    def _statistics(self, task: NodeTask, X: Matrix, folds: IntArray | None, effort: Effort) -> Statistics:
        def take() -> Statistics:
            groups, rows = Groups.of(task, folds)
            if isinstance(self._rule, GaussianRule):
                return GaussianMoments.of(self._rule, groups, rows, X, effort)
            kind = DenseCounts if isinstance(X, np.ndarray) else SparseCounts
            return kind.of(self._rule, groups, rows, X, effort)

        known: Statistics = task.memo.get(("statistics", None if folds is None else folds.tobytes()), take)
        return known if known.groups.task is task else known.of_task(task)

    def _scorer(self, statistics: Statistics, fold: int | None, effort: Effort, title: str) -> NodeScorer:
        return self._reading(statistics.weights(fold, effort, title))

    def _reading(self, scorer: NodeScorer) -> NodeScorer:
        """Nodes that read rows as the rule does."""
        if isinstance(self._rule, GaussianRule) or self._rule.threshold is None:
            return scorer
        return Binarised(self._rule, scorer)


@savable("binarised")
@dataclass(frozen=True)
class Binarised:
    """Nodes whose features are whether values exceed a threshold."""

    rule: Smoothing
    scorer: NodeScorer

    @property
    def is_trained(self) -> BoolArray:
        """Whether a node had rows on both sides to learn from."""
        return self.scorer.is_trained

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        return self.scorer.log_odds(self.rule.binarised(X, np.float64))

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        asked, place = np.unique(rows, return_inverse=True)
        return self.scorer.pair_log_odds(self.rule.binarised(X[asked], np.float64), place, nodes)

    def check_fits(self, n_nodes: int, n_features: int) -> None:
        """Refuse to be for another tree or other rows; see `NodeScorer`."""
        expect_fits(self.scorer, n_nodes, n_features)
        expect_type(self.rule, Smoothing, "rule")
        expect_type(self.rule.threshold, Real, "threshold")
