"""Validation of sample weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray


#: Weights are counts. A total weight above this is read as this: n + 2 rows can be told from n, and
#: (n + 1) / (n + 2) from 1. Weights that are all below the other bound are scaled up to it.
MOST_ROWS, LEAST_WEIGHT = 1e12, 1e-100
#: Larger weights are all scaled down to it: sums and moments of them would overflow.
MOST_WEIGHT = 1e50


def bounded_counts(weights: FloatArray) -> FloatArray:
    """Scale weights whose sum may exceed `MOST_ROWS`, or which are all tiny; return usual ones as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies._common.weights import bounded_counts
    >>> bounded_counts(np.array([1e300, 5e299]))
    array([5.0e+11, 2.5e+11])
    """
    largest, most = float(weights.max(initial=0.0)), MOST_ROWS / max(len(weights), 1)
    if largest > most:
        return weights * (most / largest)
    return weights * (LEAST_WEIGHT / largest) if 0.0 < largest < LEAST_WEIGHT else weights


def row_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> FloatArray:
    """Validate sample weights: one per row, finite, not negative, and not all zero; ones by default.

    Examples
    --------
    >>> from dichotomies._common.weights import row_weights
    >>> row_weights(None, 2), row_weights([1, 3], 2)
    (array([1., 1.]), array([1., 3.]))
    """
    if n_rows == 0:
        raise ValueError("There are no rows.")
    given = np.asarray(1.0 if sample_weight is None else sample_weight, dtype=np.float64)
    weight = np.full(n_rows, given) if given.ndim == 0 else np.ascontiguousarray(given)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one value for each of the {n_rows} rows, got shape {weight.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        first = f"sample_weight[{wrong[0]}] is {weight[wrong[0]]:g}"
        raise ValueError(f"sample_weight must be finite and not negative, but {first}.")
    if not weight.any():
        raise ValueError("sample_weight must not be zero for all rows.")
    largest = float(weight.max())
    return weight * (MOST_WEIGHT / largest) if largest > MOST_WEIGHT else weight
