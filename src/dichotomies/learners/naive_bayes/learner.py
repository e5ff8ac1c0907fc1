"""Naive Bayes: all nodes are trained from class statistics, which are computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB

from dichotomies._common.parallel import Context
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies.learners.base import LEARNERS, SCORER, CrossFitted, Learner, NodeScorer, Wanted
from dichotomies.learners.naive_bayes.class_statistics import ClassStatistics
from dichotomies.learners.naive_bayes.counts import DenseTrainer, SparseTrainer
from dichotomies.learners.naive_bayes.gaussian import GaussianRule, GaussianTrainer
from dichotomies.learners.naive_bayes.smoothing import NodeTrainer, Smoothing
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Part
from dichotomies.rows import NodeTask
from dichotomies.rows.folds import Folds

#: Numbers up to which sparse rows, and the weights of their features, are written out in small problems.
_WRITTEN_OUT = 2**22


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
        return self._with_binarisation(self._trainer(task, context).weights(None, context))

    def cross_fit(self, task: NodeTask, wanted: Wanted, context: Context) -> CrossFitted:
        """Train all nodes without each fold, and on all rows, as far as wanted."""
        trainer, n_folds = self._trainer(task, context), task.rows.n_folds
        members = []
        for f in range(n_folds if Wanted.MEMBERS in wanted else 0):
            titled = context.titled(f"fold {f + 1} of {n_folds}: ", f, n_folds)
            members.append(self._with_binarisation(trainer.weights(f, titled)))
        full, scores = None, None
        if Wanted.SCORES in wanted:
            scores, full = trainer.out_of_fold(self._input(task), context, with_full=Wanted.FULL in wanted)
        elif Wanted.FULL in wanted:
            full = trainer.weights(None, context)
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
        is_small = (X.shape[0] + task.n_nodes) * X.shape[1] <= _WRITTEN_OUT
        return X.toarray() if is_small and not isinstance(X, np.ndarray) else X

    def _trainer(self, task: NodeTask, context: Context) -> NodeTrainer:
        X, known = self._input(task), self.class_statistics(task, context)
        if isinstance(self._rule, GaussianRule):
            return GaussianTrainer.of(task, known, self._rule, X)
        kind = DenseTrainer if isinstance(X, np.ndarray) else SparseTrainer
        return kind(task, known, self._rule)

    def _key(self, task: NodeTask) -> tuple[Any, ...]:
        return "class statistics", self, None if task.rows.fold is None else task.rows.fold.tobytes()

    def class_statistics(self, task: NodeTask, context: Context) -> ClassStatistics:
        """Statistics of each class in each fold of the rows of a `task`; `context` as of `fit`."""
        X, moments = self._input(task), isinstance(self._rule, GaussianRule)
        known: ClassStatistics = task.rows.remember(
            self._key(task), lambda: ClassStatistics.of(task.rows, X, context.n_jobs, moments=moments)
        )
        return known

    def preset(self, task: NodeTask, known: ClassStatistics) -> None:
        """Train all nodes of the `task` from the statistics `known`, which may be those of more rows.

        The rows themselves are then used for nothing but out-of-fold scores.
        """
        task.rows.memo[self._key(task)] = known

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
