"""Training a tree's nodes, calibrated inside and outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from dichotomies.cross_fitting import CrossFit
from dichotomies.folds import fold_of_rows, hold_out
from dichotomies.inference import log_proba_of
from dichotomies.learners import Wanted

if TYPE_CHECKING:
    from dichotomies._typing import FloatArray, IntArray
    from dichotomies.calibrators.multiclass import MulticlassCalibrator
    from dichotomies.learners import NodeTask, Scorer
    from dichotomies.plan import Plan

#: Class log-probabilities kept for fitting an external calibrator; beyond this, a sample of the rows.
_CALIBRATION_BYTES = 2**30


@dataclass(frozen=True)
class Trained:
    """Nodes that answer with (calibrated) log-odds, and the calibrator of the whole tree's output."""

    scorer: Scorer
    external: MulticlassCalibrator | None


def train(plan: Plan, task: NodeTask, rng: Any) -> Trained:
    """Train the nodes of a tree and calibrate them as planned."""
    if plan.external is None:
        return Trained(_fit_inside(plan, task, None, rng), None)
    if plan.calibration_size == "cross-fit":
        crossed = CrossFit.fit(plan, task, rng, wanted=Wanted.MEMBERS)
        rows = _sample(task, np.arange(len(task.codes)), rng)
        external = _fit_outside(plan.external, task, rows, crossed.log_proba(rows))
        return Trained(crossed.final_scorer(), external)
    held = hold_out(task.codes, plan.calibration_size, rng)
    scorer = _fit_inside(plan, task, np.flatnonzero(~held), rng)
    rows = _sample(task, np.flatnonzero(held), rng)
    log_proba = log_proba_of(task.tree, scorer, task.take(rows), n_jobs=plan.n_jobs, dtype=np.float32)
    return Trained(scorer, _fit_outside(plan.external, task, rows, log_proba))


def _fit_inside(plan: Plan, task: NodeTask, rows: IntArray | None, rng: Any) -> Scorer:
    """Train and calibrate the nodes on some of the rows, or all."""
    folds = None
    if plan.internal is not None and not isinstance(plan.cv, int):  # the user's folds number all rows
        folds = fold_of_rows(task.codes, plan.cv, rng)
    if rows is not None:
        task, folds = task.subset(rows), None if folds is None else folds[rows]
    if plan.internal is None:
        return plan.learner.fit(task, random_state=rng, effort=plan.effort)
    return CrossFit.fit(plan, task, rng, folds).final_scorer()


def _fit_outside(
    calibrator: MulticlassCalibrator, task: NodeTask, rows: IntArray, log_proba: FloatArray
) -> MulticlassCalibrator | None:
    """Fit on these rows; where none has any weight, nothing can be learnt."""
    weight = None if task.sample_weight is None else task.sample_weight[rows]
    if not len(rows) or (weight is not None and not weight.any()):
        return None
    fitted: MulticlassCalibrator = clone(calibrator)
    return fitted.fit(log_proba, task.codes[rows], sample_weight=weight)


def _sample(task: NodeTask, rows: IntArray, rng: Any) -> IntArray:
    """All of the rows, or as many as may be kept with a probability for every class, stratified."""
    limit = max(1, _CALIBRATION_BYTES // (4 * task.tree.n_classes))
    if len(rows) <= limit:
        return rows
    chosen: IntArray = rows[fold_of_rows(task.codes[rows], -(-len(rows) // limit), rng) == 0]
    return chosen
