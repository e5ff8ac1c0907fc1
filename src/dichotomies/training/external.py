"""External calibration: calibrators of class probabilities, fitted on rows that the nodes have not seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from dichotomies._common.chunks import rows_within
from dichotomies.inference.pooling import POOLINGS
from dichotomies.rows.folds import fold_of_rows
from dichotomies.rows.sampling import stratified
from dichotomies.training.memory import most_calibration_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import FloatArray, IntArray, Matrix
    from dichotomies.calibrators.multiclass import MulticlassCalibrator
    from dichotomies.inference.fitted import FittedForest
    from dichotomies.rows import Rows
    from dichotomies.training.plan import Plan
    from dichotomies.tree.forest import Forest

#: Class log-probabilities kept for fitting external calibrators; beyond this, a sample of the rows.
_CALIBRATION_BYTES = 2**30
#: Folds of the rows that calibrators are fitted on, where one is fitted behind another.
CALIBRATION_FOLDS = 3


class Unseen(NamedTuple):
    """Row numbers, a model without external calibration that was not trained on them, and what it reads."""

    rows: IntArray
    model: FittedForest
    features: Matrix


def calibration_sample(plan: Plan, forest: Forest, rows: Rows, among: IntArray, rng: Any) -> IntArray:
    """All of the row numbers in `among`, or a stratified sample whose class probabilities fit into memory."""
    n_kept = 1 if plan.member_calibration is None else len(forest.trees)
    most = rows_within(_CALIBRATION_BYTES, forest.n_classes * n_kept, itemsize=4)
    return stratified(rows.codes, among, min(most, most_calibration_rows(plan, forest, rows)), rng)


def out_of_fold_log_proba(plan: Plan, unseen: Sequence[Unseen]) -> FloatArray:
    """Class log-probabilities in single precision, part after part, (n_rows, n_classes)."""
    parts = [each.model.predict_log_proba(each.features, plan.n_jobs, np.float32) for each in unseen]
    return np.concatenate(parts)


def fit_external(plan: Plan, fitted: FittedForest, rows: Rows, unseen: Sequence[Unseen]) -> FittedForest:
    """Add calibrators of the trees, of the pool, or both, to a model without them."""
    if not plan.calibrates_outside:
        return fitted
    sample = rows.take(np.concatenate([each.rows for each in unseen]))
    if plan.member_calibration is None:
        assert plan.external_calibration is not None
        log_proba = out_of_fold_log_proba(plan, unseen)
        return replace(fitted, external=fit_calibrator(plan.external_calibration, sample, log_proba))
    by_tree = np.concatenate(
        [each.model.log_proba_by_tree(each.features, plan.n_jobs) for each in unseen], axis=1
    )
    members = [fit_calibrator(plan.member_calibration, sample, log_proba) for log_proba in by_tree]
    fitted = replace(fitted, members=members)
    if plan.external_calibration is None or len(sample) == 0:
        return fitted
    pooled = pooled_out_of_fold(plan.member_calibration, plan.pooling, sample, by_tree)
    return replace(fitted, external=fit_calibrator(plan.external_calibration, sample, pooled))


def pooled_out_of_fold(
    calibrator: MulticlassCalibrator, pooling: str, sample: Rows, by_tree: FloatArray
) -> FloatArray:
    """Pool of the trees' probabilities, calibrated without the row's fold, (n_rows, n_classes).

    The calibrator of the pool is fitted behind those of the trees, which look better than they are on the
    rows that they were fitted on.
    """
    fold = fold_of_rows(sample.codes, CALIBRATION_FOLDS, np.random.RandomState(0))
    pooled = np.empty((len(sample), by_tree.shape[-1]))
    for f in range(int(fold.max()) + 1):
        inside, outside = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        answer = np.empty((len(inside), pooled.shape[1]))
        pool = POOLINGS[pooling](answer)
        for log_proba in by_tree:
            member = fit_calibrator(calibrator, sample.take(outside), log_proba[outside])
            mine = log_proba[inside].astype(np.float64)
            pool.add(mine if member is None else member.predict_log_proba(mine))
        pool.finish()
        pooled[inside] = answer
    return pooled


def fit_calibrator(
    calibrator: MulticlassCalibrator, rows: Rows, log_proba: FloatArray
) -> MulticlassCalibrator | None:
    """Fit a clone of the calibrator; None where no row has any weight."""
    if not len(rows) or (rows.weight is not None and not rows.weight.any()):
        return None
    fitted: MulticlassCalibrator = clone(calibrator)
    return fitted.fit(log_proba, rows.codes, sample_weight=rows.weight)
