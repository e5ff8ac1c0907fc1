"""External calibration on rows that are not in memory: their class probabilities are in a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import diags_array

from dichotomies.calibrators.multiclass.bias_temperature import BiasTemperatureScaling
from dichotomies.calibrators.multiclass.temperature import TemperatureScaling
from dichotomies.calibrators.multiclass.vector import VectorScaling
from dichotomies.inference.fitted import FittedForest
from dichotomies.rows import Rows
from dichotomies.structures.class_points import CLASS_TOTALS, WITHIN_COVARIANCE
from dichotomies.training.external import Calibration, fit_calibrator, settled
from dichotomies.training.plan import Plan

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.rows.spilled import RowCounts


def with_totals(rows: Rows, counts: RowCounts) -> Rows:
    """A sample of rows whose classes have the mean features of all rows, which were counted."""
    if not np.isfinite(counts.totals.sum()):
        return rows
    every = counts.size if counts.weight is None else counts.weight
    share = np.divide(rows.class_weight, every, out=np.zeros(len(every)), where=every > 0)
    totals = diags_array(share, format="csr") @ counts.totals
    known: dict[Any, Any] = {} if counts.scatter is None else {WITHIN_COVARIANCE: _within(counts, every)}
    if counts.is_sparse:
        rows.memo.update(known | {CLASS_TOTALS: totals})
        return rows
    own = rows.class_indicator() @ rows.X
    weighs = rows.class_weight[:, None]
    apart = np.divide(totals - own, weighs, out=np.zeros(own.shape), where=weighs > 0)
    return replace(rows, base=rows.X + apart.astype(rows.X.dtype)[rows.codes], index=None, memo=known)


def _within(counts: RowCounts, every: IntArray | FloatArray) -> FloatArray:
    """Covariance of the features within classes; `every` is the weight of each class."""
    assert counts.scatter is not None
    totals = counts.totals.toarray() if counts.is_sparse else counts.totals
    mean = np.divide(totals, every[:, None], out=np.zeros(totals.shape), where=every[:, None] > 0)
    apart = mean - counts.mean
    within: FloatArray = (counts.scatter - (apart.T * every) @ apart) / max(
        counts.total_weight, np.finfo(float).tiny
    )
    return within


#: Size of the file at most, as much as calibration in memory holds; memory per row for labels and weights.
_FILE_BYTES, _ROW_BYTES = 2**30, 128
#: Bytes of memory per class of a row whose probabilities are copied.
_CLASS_BYTES = 32


def most_rows(plan: Plan, max_memory: int, n_classes: int) -> int:
    """Number of rows to calibrate on, in a file if the calibrator makes no copies of their probabilities."""
    kind = plan.external_calibration
    reads_in_place = isinstance(kind, (VectorScaling, TemperatureScaling, BiasTemperatureScaling))
    if reads_in_place and getattr(kind, "on", "log_proba") == "log_proba":
        return max(1_000, min(_FILE_BYTES // (4 * n_classes), max_memory // _ROW_BYTES))
    return max(1_000, max_memory // (_CLASS_BYTES * n_classes))


def fit_filed(
    plan: Plan, model: FittedForest, calibration: Calibration, parts: Iterable[Rows], folder: Path
) -> tuple[FittedForest, Calibration]:
    """Fit the external calibrator of a model to rows that it was not trained on, which come in parts."""
    path, codes, weights = folder / "log_proba.bin", [np.empty(0, np.intp)], [np.empty(0)]
    with path.open("wb") as file:
        for part in parts:
            file.write(model.predict_log_proba(part.X, plan.n_jobs, np.float32).tobytes())
            codes.append(part.codes)
            weights.append(np.ones(len(part)) if part.weight is None else part.weight)
    assert plan.external_calibration is not None
    rows = Rows(None, np.concatenate(codes), model.tree.classes, np.concatenate(weights))
    calibrator = None
    if len(rows):
        log_proba: Any = np.memmap(path, np.float32, "r", shape=(len(rows), model.n_classes))
        calibrator = fit_calibrator(plan.external_calibration, rows, log_proba)
    path.unlink()
    return settled(plan, replace(model, external=calibrator), calibration, len(rows))
