"""Out-of-fold NLL of trees and learners, as it will be after calibration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.base import clone

from dichotomies._common.parallel import Context
from dichotomies._common.typing import FloatArray
from dichotomies.calibrators.binary import cross_fitted_nll, segment_nll
from dichotomies.calibrators.binary.auto import Auto
from dichotomies.calibrators.binary.platt import PlattScaling
from dichotomies.calibrators.multiclass import MulticlassCalibrator
from dichotomies.calibrators.multiclass.vector import VectorScaling
from dichotomies.inference.fitted import FittedForest
from dichotomies.learners import Wanted
from dichotomies.rows import NodeTask, Rows
from dichotomies.rows.folds import sample_in_folds
from dichotomies.training.cross_fitting import CrossFit
from dichotomies.training.plan import Plan
from dichotomies.tree import ClassTree
from dichotomies.tree.forest import Forest, node_keys

#: Folds where `cv` is not a number: the user's folds number all rows, not a sample of them.
JUDGING_FOLDS = 3


def calibrated_nll(
    plan: Plan, task: NodeTask, external: MulticlassCalibrator, seed: int = 0, context: Context | None = None
) -> float:
    """Mean out-of-fold NLL of the classes, with stand-ins for the calibration that is planned."""
    plan = replace(plan, average_folds=False)  # the final model scores what is new to it
    wanted = Wanted.SCORES | Wanted.FULL
    crossed = CrossFit.fit(plan, task, wanted, _seeded(context, plan, seed))
    planned = plan.internal_calibration
    ways = [None, PlattScaling()] if isinstance(planned, Auto) else [planned]
    each_way = [crossed.planned(replace(plan, internal_calibration=each)) for each in ways]
    return min(_nll(each, external) for each in each_way)


def _seeded(context: Context | None, plan: Plan, seed: int) -> Context:
    """The context of the call, so that rows are sent once, with random numbers that start anew."""
    given = context or Context()
    return replace(given, rng=np.random.RandomState(seed), n_jobs=plan.n_jobs, verbose=False)


def _nll(crossed: CrossFit, external: MulticlassCalibrator) -> float:
    """Mean out-of-fold NLL."""
    plan, rows, forest = crossed.plan, crossed.task.rows, Forest.of([crossed.task.tree])
    model = FittedForest(forest, crossed.unseen_scorer())
    log_proba = model.predict_log_proba(np.arange(len(rows)), plan.n_jobs)
    if plan.external_calibration is not None:
        fitted = clone(external).fit(log_proba, rows.codes, sample_weight=rows.weight)
        log_proba = fitted.predict_log_proba(log_proba)
    return float(-np.average(log_proba[np.arange(len(rows)), rows.codes], weights=rows.weight))


def node_nll(crossed: CrossFit) -> FloatArray:
    """Sum of the out-of-fold NLLs of each node's own rows, with internal calibration if one is named.

    A missing score counts as log-odds of 0. The NLL of a node with rows on one side only is 0.
    """
    scores = np.nan_to_num(crossed.out_of_fold.scores, nan=0.0, posinf=np.inf, neginf=-np.inf)
    segments = replace(crossed.out_of_fold, scores=scores)
    calibrator = crossed.plan.internal_calibration
    if calibrator is None or isinstance(calibrator, Auto):
        nll = segment_nll(scores, segments)
    else:
        nll = cross_fitted_nll(calibrator, segments)
    n_left = segments.count(segments.targets)
    return np.where((n_left > 0) & (n_left < np.diff(segments.offsets)), nll, 0.0)


def only_present(rows: Rows) -> Rows:
    """The rows, with only the classes that they have; at least two."""
    present = np.union1d(np.unique(rows.codes), rows.class_order[:2])
    return replace(rows, codes=np.searchsorted(present, rows.codes), classes=rows.classes[present], memo={})


@dataclass(eq=False)
class LearnerJudge:
    """Out-of-fold NLL of trees with the planned learner and internal calibration.

    By Proposition 1 the NLL of a tree is the sum of the NLLs of its nodes over their own rows, so no class
    probability is computed; and a node's NLL depends only on the classes on its two sides, so it is stored:
    of a tree that differs little from those judged before, only the new nodes are trained. Judging trees of
    different depths `calibrated` takes class probabilities, because errors accumulate with depth.
    """

    plan: Plan
    rows: Rows
    context: Context | None = None
    _sampled_by: tuple[int, int, bool] | None = field(default=None, init=False)
    _node_nll: dict[tuple[int, int], float] = field(default_factory=dict, init=False)

    @property
    def is_quick(self) -> bool:
        """See `Learner.is_quick`."""
        return self.plan.learner.is_quick

    def __call__(
        self,
        tree: ClassTree,
        *,
        max_rows: int,
        seed: int,
        whole_classes: bool = False,
        calibrated: bool = False,
    ) -> float:
        """Mean out-of-fold NLL of the tree on at most about `max_rows` rows, see `TreeJudge`."""
        if self._sampled_by != (max_rows, seed, whole_classes):
            self._draw_sample(max_rows, seed, whole_classes)
        if calibrated:
            rows = only_present(self._sample)
            restricted = tree.restrict(set(rows.classes.tolist())).over(rows.classes)
            return calibrated_nll(self.plan, NodeTask(rows, restricted), VectorScaling(), seed, self.context)
        keys = node_keys(tree).sides
        if not self.plan.learner.nodes_are_independent:
            self._node_nll.clear()
        new = np.array([k for k, key in enumerate(keys) if key not in self._node_nll], dtype=np.intp)
        if len(new):
            task = NodeTask(self._sample, tree, None if len(new) == tree.n_nodes else new)
            context = _seeded(self.context, self.plan, seed)
            nll = node_nll(CrossFit.fit(self.plan, task, Wanted.SCORES, context))
            self._node_nll |= zip([keys[k] for k in new], nll.tolist(), strict=True)
        return sum(self._node_nll[key] for key in keys) / float(self._sample.class_weight.sum())

    def _draw_sample(self, max_rows: int, seed: int, whole_classes: bool) -> None:
        """Choose the rows to judge on, and forget the NLLs on others."""
        self._sampled_by = max_rows, seed, whole_classes
        self._node_nll.clear()
        n_folds = self.plan.cv if isinstance(self.plan.cv, int) else JUDGING_FOLDS
        rng = np.random.RandomState(seed)
        self._sample = sample_in_folds(self.rows, max_rows, n_folds, rng, whole_classes=whole_classes)
