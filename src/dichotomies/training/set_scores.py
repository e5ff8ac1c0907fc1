"""Scores for prediction sets from rows that calibration has set aside: its folds, or the rows held out."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dichotomies._common.chunks import chunk_rows, row_slices
from dichotomies._common.typing import FloatArray, IntArray
from dichotomies.inference.conformal import ConformalRows
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.sets import evaluated
from dichotomies.rows import Rows
from dichotomies.rows.folds import CALIBRATION_FOLDS, calibration_fold, fold_of_rows
from dichotomies.training.external import (
    Unseen,
    fit_calibrator,
)
from dichotomies.training.plan import Plan


def conformal_scores(plan: Plan, fitted: FittedForest, rows: Rows, unseen: Unseen) -> ConformalRows | None:
    """Evaluate all rows by models that have not seen them; None if there is no row."""
    sample = rows.take(unseen.rows)
    if not len(sample):
        return None
    if sample.fold is None:
        fold = fold_of_rows(sample.codes, CALIBRATION_FOLDS, np.random.RandomState(0))
    else:
        fold = calibration_fold(sample.fold)
    log_proba = _calibrated(fitted, sample, fold, unseen.log_proba(plan.n_jobs))
    groups = plan.prediction_sets if plan.prediction_sets > 1 else None
    parts = [
        evaluated(fitted.tree, log_proba[part].astype(np.float64), sample.codes[part], groups)
        for part in row_slices(len(sample), chunk_rows(fitted.n_classes))
    ]
    return ConformalRows.joined(parts)


def _calibrated(fitted: FittedForest, sample: Rows, fold: IntArray, log_proba: FloatArray) -> FloatArray:
    """Log-probabilities by external calibrators that were fitted without the fold of the row."""
    if fitted.external is None:
        return log_proba
    out = log_proba.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for f in range(int(fold.max()) + 1):
            inside, outside = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
            other = fit_calibrator(fitted.external, sample.take(outside), log_proba[outside])
            if other is not None:
                out[inside] = other.predict_log_proba(log_proba[inside].astype(np.float64))
    return out
