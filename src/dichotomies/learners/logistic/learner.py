"""scikit-learn's logistic regression with an L2 penalty, by Newton's method at all nodes together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.linear_model import LogisticRegression

from dichotomies.learners.base import LEARNERS, CrossFitted, Learner, Unsupported, Wanted
from dichotomies.learners.logistic.settings import Settings, check_class_weight
from dichotomies.learners.logistic.training import NodeTraining

if TYPE_CHECKING:
    from dichotomies._common.parallel import Context
    from dichotomies._common.typing import IntArray
    from dichotomies.learners.base import NodeScorer
    from dichotomies.rows import NodeTask


@LEARNERS.register("logistic")
@dataclass(frozen=True)
class LogisticLearner(Learner):
    """Logistic regression with an L2 penalty: the optimum that scikit-learn's solvers approach.

    Small nodes are solved by the Gram matrix of their rows, large ones by truncated Newton steps on
    dense rows, where what a fold leaves of a node starts from the solution for all of it, and on sparse rows
    by dual coordinate ascent, all folds at once.

    Attributes
    ----------
    C : float
        Inverse strength of the penalty.
    settings : Settings
        Everything else.
    """

    C: float
    settings: Settings

    is_quick = True
    trains: ClassVar = {"logistic": LogisticRegression}

    @classmethod
    def recognise(cls, estimator: Any) -> Self:
        """Take over a `LogisticRegression` whose penalty is L2."""
        estimator._validate_params()
        _check_supported(estimator)
        intercept, liblinear = estimator.fit_intercept, estimator.solver == "liblinear"
        return cls(
            float(estimator.C),
            Settings(
                free_intercept=bool(intercept and not liblinear),
                # liblinear appends a feature of this value to every row, penalised like any other.
                intercept_scale=float(estimator.intercept_scaling) if intercept and liblinear else 0.0,
                class_weight=estimator.class_weight,
                tol=estimator.tol,
                max_iter=estimator.max_iter,
            ),
        )

    @property
    def description(self) -> str:
        """One line for users: the name of the learner and its method."""
        return "logistic: Newton's method for all nodes together, to the optimum of LogisticRegression"

    def fit(self, task: NodeTask, context: Context) -> NodeScorer:
        """Train all nodes; nothing is random."""
        return self._training(task, None, 1, context).run().members[0]

    def cross_fit(self, task: NodeTask, wanted: Wanted, context: Context) -> CrossFitted:
        """Train all nodes on all rows and without each fold, every node in one visit."""
        if not wanted & (Wanted.MEMBERS | Wanted.SCORES):
            return CrossFitted(self.fit(task, context), [], None)
        n_kept = 1 + task.rows.n_folds if Wanted.MEMBERS in wanted else int(Wanted.FULL in wanted)
        trained = self._training(task, task.rows.fold, n_kept, context).run()
        return CrossFitted(
            trained.members[0] if Wanted.FULL in wanted else None,
            trained.members[1:],
            trained.results.scores if Wanted.SCORES in wanted else None,
        )

    def _training(
        self, task: NodeTask, folds: IntArray | None, n_kept: int, context: Context
    ) -> NodeTraining:
        C = np.full((task.n_nodes, 1), self.C)
        return NodeTraining(task.prepared(), self.settings, C, folds, n_kept, context)


def _check_supported(estimator: LogisticRegression) -> None:
    """Refuse what has another optimum, or what scikit-learn itself refuses."""
    if estimator.penalty not in ("deprecated", "l2") or estimator.l1_ratio != 0:
        raise Unsupported("its penalty is not L2 alone")
    if not np.isfinite(estimator.C):
        raise Unsupported("it has no penalty, so that separable nodes have no optimum")
    if estimator.warm_start:
        raise Unsupported("warm_start=True asks for solutions that depend on where they started")
    if estimator.dual and estimator.solver != "liblinear":
        raise Unsupported("only solver='liblinear' has dual=True")
    check_class_weight(estimator.class_weight)
