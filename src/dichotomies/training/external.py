"""External calibration: calibrators of class probabilities, fitted on rows that the nodes have not seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from dichotomies._common.chunks import rows_within
from dichotomies.inference.pooling import POOLINGS
from dichotomies.rows.folds import fold_of_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.calibrators.multiclass import MulticlassCalibrator
    from dichotomies.inference.fitted import FittedForest
    from dichotomies.rows import Rows
    from dichotomies.training.plan import Plan
    from dichotomies.tree.forest import Forest

#: Class log-probabilities kept for fitting external calibrators; beyond this, a sample of the rows.
_CALIBRATION_BYTES = 2**30
#: Folds of the rows that calibrators are fitted on, where one is fitted behind another.
_CALIBRATION_FOLDS = 3


class Unseen(NamedTuple):
    """Row numbers, and a model without external calibration that was not trained on these rows."""

    rows: IntArray
    model: FittedForest


def calibration_sample(plan: Plan, forest: Forest, rows: Rows, among: IntArray, rng: Any) -> IntArray:
    """All of the row numbers in `among`, or a stratified sample whose class probabilities fit into memory."""
    n_kept = 1 if plan.member_calibration is None else len(forest.trees)
    limit = rows_within(_CALIBRATION_BYTES, forest.n_classes * n_kept, itemsize=4)
    if len(among) <= limit:
        return among
    chosen: IntArray = among[fold_of_rows(rows.codes[among], -(-len(among) // limit), rng) == 0]
    return chosen


def fit_external(plan: Plan, fitted: FittedForest, rows: Rows, unseen: Sequence[Unseen]) -> FittedForest:
    """Add calibrators of the trees, of the pool, or both, to a model without them."""
    sample = rows.take(np.concatenate([each.rows for each in unseen]))
    if plan.member_calibration is None:
        assert plan.external_calibration is not None
        log_proba = np.concatenate(
            [model.predict_log_proba(rows.features_of(few), plan.n_jobs, np.float32) for few, model in unseen]
        )
        return replace(fitted, external=_fit(plan.external_calibration, sample, log_proba))
    by_tree = np.concatenate(
        [model.log_proba_by_tree(rows.features_of(few), plan.n_jobs) for few, model in unseen], axis=1
    )
    members = [_fit(plan.member_calibration, sample, log_proba) for log_proba in by_tree]
    fitted = replace(fitted, members=members)
    if plan.external_calibration is None or len(sample) == 0:
        return fitted
    pooled = _pooled_out_of_fold(plan.member_calibration, plan.pooling, sample, by_tree)
    return replace(fitted, external=_fit(plan.external_calibration, sample, pooled))


def _pooled_out_of_fold(
    calibrator: MulticlassCalibrator, pooling: str, sample: Rows, by_tree: FloatArray
) -> FloatArray:
    """Pool of the trees' probabilities, calibrated without the row's fold, (n_rows, n_classes).

    The calibrator of the pool is fitted behind those of the trees, which look better than they are on the
    rows that they were fitted on.
    """
    fold = fold_of_rows(sample.codes, _CALIBRATION_FOLDS, np.random.RandomState(0))
    pooled = np.empty((len(sample), by_tree.shape[-1]))
    for f in range(int(fold.max()) + 1):
        inside, outside = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        answer = np.empty((len(inside), pooled.shape[1]))
        pool = POOLINGS[pooling](answer)
        for log_proba in by_tree:
            member = _fit(calibrator, sample.take(outside), log_proba[outside])
            mine = log_proba[inside].astype(np.float64)
            pool.add(mine if member is None else member.predict_log_proba(mine))
        pool.finish()
        pooled[inside] = answer
    return pooled


def _fit(calibrator: MulticlassCalibrator, rows: Rows, log_proba: FloatArray) -> MulticlassCalibrator | None:
    """Fit a clone of the calibrator; None where no row has any weight."""
    if not len(rows) or (rows.weight is not None and not rows.weight.any()):
        return None
    fitted: MulticlassCalibrator = clone(calibrator)
    return fitted.fit(log_proba, rows.codes, sample_weight=rows.weight)
