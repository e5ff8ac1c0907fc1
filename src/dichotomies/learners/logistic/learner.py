"""scikit-learn's logistic regression with an L2 penalty, by Newton's method at all nodes together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.linear_model import LogisticRegression

from dichotomies._common.parallel import Context
from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.newton.node import Objective
from dichotomies.learners.base import (
    LEARNERS,
    CrossFitted,
    Learner,
    NodePasses,
    NodeScorer,
    Unsupported,
    Wanted,
)
from dichotomies.learners.logistic.training import NodeTraining
from dichotomies.rows import NodeTask
from dichotomies.rows.folds import Folds

#: Derivatives of single-precision data are not known better than this, relative to the mean loss.
_SINGLE_PRECISION_TOL = 1e-6


@dataclass(frozen=True)
class Settings:
    """Parameters of scikit-learn's `LogisticRegression`, apart from C.

    Attributes
    ----------
    free_intercept : bool
        Fit an intercept without penalty.
    intercept_scale : float
        The constant feature of an intercept with penalty, as liblinear has it; 0 without one.
    class_weight : None, "balanced" or dict
        Weights of the sides: 1 is the one with the highest class code.
    tol : float
        Largest derivative of the mean loss.
    max_iter : int
        Newton steps.
    """

    free_intercept: bool
    intercept_scale: float
    class_weight: Any
    tol: float
    max_iter: int

    def objective(self, left_is_high: BoolArray, C: FloatArray, dtype: Any) -> Objective:
        """The objective of nodes, each for every C of its row of `C` (n_nodes, n_grid).

        Parameters
        ----------
        left_is_high : (n_nodes,)
            True where the left side has the highest class code.
        """
        left_factor, right_factor = np.ones(len(C)), np.ones(len(C))
        if isinstance(self.class_weight, dict):
            low, high = (float(self.class_weight.get(side, 1.0)) for side in (0, 1))
            left_factor = np.where(left_is_high, high, low)
            right_factor = np.where(left_is_high, low, high)
        return Objective(
            C=np.ascontiguousarray(C, dtype=np.float64),
            left_factor=left_factor,
            right_factor=right_factor,
            balanced=isinstance(self.class_weight, str),
            free_intercept=self.free_intercept,
            intercept_scale=self.intercept_scale,
            tol=max(self.tol, _SINGLE_PRECISION_TOL) if dtype == np.float32 else float(self.tol),
            max_iter=int(self.max_iter),
        )


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
    folds = Folds(5, of_many=3)
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

    def passes(self, *, is_sparse: bool) -> NodePasses | None:
        """Return the way to train nodes with more rows than fit into memory; none if `is_sparse`."""
        from dichotomies.learners.logistic.passes import LogisticPasses

        return LogisticPasses(self) if type(self) is LogisticLearner and not is_sparse else None

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


def check_class_weight(class_weight: Any) -> None:
    """Refuse what scikit-learn would refuse, or what leaves a side without rows."""
    if not isinstance(class_weight, dict):
        return
    if set(class_weight) - {0, 1}:
        raise Unsupported("class_weight has labels other than 0 and 1, which are the sides of a node")
    if not all(np.isfinite(weight) and weight > 0 for weight in class_weight.values()):
        raise Unsupported("class_weight has a weight that is not positive")
