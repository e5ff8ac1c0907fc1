"""Exact mean features of classes for trees that are grown on a sample of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import diags_array

from dichotomies.structures.class_points import CLASS_TOTALS

if TYPE_CHECKING:
    from dichotomies.rows import Rows
    from dichotomies.rows.row_counts import RowCounts


def with_totals(rows: Rows, counts: RowCounts) -> Rows:
    """A sample of rows whose classes have the mean features of all rows, which were counted."""
    if np.isfinite(counts.totals.sum()):
        every = counts.size if counts.weight is None else counts.weight
        share = np.divide(rows.class_weight, every, out=np.zeros(len(every)), where=every > 0)
        rows.memo[CLASS_TOTALS] = diags_array(share, format="csr") @ counts.totals
    return rows
