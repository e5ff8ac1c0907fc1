"""Exact means and covariance of classes for trees that are grown on a sample of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import diags_array

from dichotomies.structures.class_points import CLASS_TOTALS, WITHIN_COVARIANCE

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.rows import Rows
    from dichotomies.rows.row_counts import RowCounts


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
