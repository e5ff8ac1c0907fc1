"""Deterministic, stratified folds for model selection, with equal rows in the same fold."""

from __future__ import annotations

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies.calibrators.multiclass._calibration_rows import CalibrationRows


def balanced_folds(rows: CalibrationRows, n_folds: int) -> IntArray:
    """Return the fold of each row: rows are assigned class by class, in a pseudo-random order.

    The order is a hash of the row's entries. Equal rows are therefore in the same fold, so a duplicate
    cannot leak into its own training set; doubling a weight is equivalent to duplicating the row, and the
    order of the columns does not matter. Rows of weight zero are put into fold 0.
    """
    counted = rows.weight > 0
    n_classes = rows.shape[1]
    raw_sum = rows.raw.sum(axis=1, dtype=np.float64, where=np.isfinite(rows.raw))
    digits = ((rows.own * 7919.0 + (raw_sum - n_classes * rows.shift) * 104.729) % 1.0).round(6)
    class_size, class_fit = rows.class_weight[rows.codes], rows.own_sums[rows.codes]
    keys = np.column_stack([class_size.round(6), class_fit.round(6), rows.codes, digits])
    fold = np.zeros(len(keys), dtype=np.intp)
    _, position = np.unique(keys[counted], axis=0, return_inverse=True)
    fold[counted] = position.reshape(-1) % n_folds
    return fold
