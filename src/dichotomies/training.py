"""Training a tree's nodes, calibrated inside and outside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from dichotomies.calibrators.binary import Segments, cross_fitted_nll, segment_nll
from dichotomies.cross_fitting import CrossFit
from dichotomies.folds import fold_of_rows, hold_out
from dichotomies.inference import log_proba_of
from dichotomies.learners import Effort, NodeTask, Wanted
from dichotomies.scorers import MOST_LOG_ODDS

if TYPE_CHECKING:
    from dichotomies._typing import FloatArray, IntArray, Matrix
    from dichotomies.calibrators.multiclass import MulticlassCalibrator
    from dichotomies.learners import Scorer
    from dichotomies.plan import Plan
    from dichotomies.structures import TreeJudge
    from dichotomies.tree import ClassTree

#: Class log-probabilities kept for fitting an external calibrator; beyond this, a sample of the rows.
_CALIBRATION_BYTES = 2**30
#: Folds in which trees are judged where the user's folds number all rows.
_JUDGING_FOLDS = 3
_ROWS_AT_A_TIME = 4_096


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


def tree_judge(plan: Plan, X: Matrix, codes: IntArray, sample_weight: FloatArray | None) -> TreeJudge:
    """How good a tree is with the planned base learner and internal calibration: its out-of-fold NLL.

    By Proposition 1 the NLL of the tree is the sum of the nodes' NLLs over their own rows, so no class
    probability is needed. Where a fold's model had seen only one side of a node, it counts as knowing
    nothing. Rows that are equal go into the same fold, so that a row twice is a row of weight two.
    """

    @lru_cache(maxsize=1)
    def sample(max_rows: int, seed: int) -> tuple[IntArray, IntArray]:
        return _judging_rows(plan, X, codes, sample_weight, max_rows, np.random.RandomState(seed))

    def judge(tree: ClassTree, *, max_rows: int, seed: int) -> float:
        rows, folds = sample(max_rows, seed)
        task = NodeTask(tree, X, codes, sample_weight).subset(rows)
        fitted = plan.learner.cross_fit(
            task, folds, Wanted.SCORES, random_state=np.random.RandomState(seed), effort=Effort(plan.n_jobs)
        )
        assert fitted.scores is not None
        scores = np.where(np.isnan(fitted.scores), 0.0, fitted.scores)
        if plan.learner.gives_probabilities:
            scores = np.clip(scores, -MOST_LOG_ODDS, MOST_LOG_ODDS)
        pairs = task.own_pairs()
        weight = None if task.sample_weight is None else task.sample_weight[pairs.rows]
        segments = Segments(scores, pairs.is_left, pairs.offsets, weight)
        by_node = (
            segment_nll(scores, segments)
            if plan.internal is None
            else cross_fitted_nll(plan.internal, segments)
        )
        return float(by_node.sum() / (len(rows) if task.sample_weight is None else task.sample_weight.sum()))

    return judge


def _judging_rows(
    plan: Plan, X: Matrix, codes: IntArray, sample_weight: FloatArray | None, max_rows: int, rng: Any
) -> tuple[IntArray, IntArray]:
    """Rows to judge trees on, at most about `max_rows` different ones, and their folds."""
    rows = np.arange(len(codes)) if sample_weight is None else np.flatnonzero(sample_weight > 0)
    content = np.stack([codes, _content(X)], axis=1)[rows]
    _, first, which = np.unique(content, axis=0, return_index=True, return_inverse=True)
    different = codes[rows[first]]
    chosen = np.arange(len(different))
    if len(different) > max_rows:
        chosen = np.flatnonzero(fold_of_rows(different, -(-len(different) // max_rows), rng) == 0)
    n_folds = plan.cv if isinstance(plan.cv, int | np.integer) else _JUDGING_FOLDS
    fold = np.full(len(different), -1, dtype=np.intp)
    fold[chosen] = fold_of_rows(different[chosen], n_folds, rng)
    of_row = fold[which.ravel()]
    return rows[of_row >= 0], of_row[of_row >= 0]


def _content(X: Matrix) -> FloatArray:
    """A number for each row that is the same, to the last bit, for rows that are equal."""
    mixing = np.random.RandomState(0).standard_normal(X.shape[1])
    if not isinstance(X, np.ndarray):
        return np.asarray(X @ mixing)
    chunks = range(0, len(X), _ROWS_AT_A_TIME)
    return np.concatenate([(X[a : a + _ROWS_AT_A_TIME] * mixing).sum(axis=1) for a in chunks])
