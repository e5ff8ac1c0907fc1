"""Exact mean features of classes for trees that are grown on a sample of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, diags_array

from dichotomies.structures.class_points import CLASS_TOTALS

if TYPE_CHECKING:
    from dichotomies.rows import Rows
    from dichotomies.rows.row_counts import RowCounts


def with_totals(rows: Rows, counts: RowCounts) -> Rows:
    """A sample of rows, changed so that its classes have the mean features of all rows, which were counted.

    Dense rows are moved, so that the scatter within classes stays that of the sample; of sparse rows the sums
    are given.
    """
    if not np.isfinite(counts.totals.sum()):
        return rows
    every = counts.size if counts.weight is None else counts.weight
    share = np.divide(rows.class_weight, every, out=np.zeros(len(every)), where=every > 0)
    totals = diags_array(share, format="csr") @ counts.totals
    if counts.is_sparse:
        rows.memo[CLASS_TOTALS] = totals
        return rows
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    shape = rows.n_classes, len(rows)
    own = csr_array((weight, (rows.codes, np.arange(len(rows)))), shape) @ rows.X
    weighs = rows.class_weight[:, None]
    apart = np.divide(totals - own, weighs, out=np.zeros(own.shape), where=weighs > 0)
    return replace(rows, base=rows.X + apart.astype(rows.X.dtype)[rows.codes], index=None, memo={})
