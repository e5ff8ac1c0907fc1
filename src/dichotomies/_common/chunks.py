"""Chunks of rows: their size in rows for a memory limit, and predictions chunk by chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dichotomies._common.typing import Matrix


def rows_within(
    n_bytes: int, width: int, *, itemsize: int = 8, multiple_of: int = 1, at_most: int | None = None
) -> int:
    """Number of rows of `width` numbers that fit into `n_bytes`, and at least `multiple_of`.

    Examples
    --------
    >>> from dichotomies._common.chunks import rows_within
    >>> rows_within(2**20, 1000), rows_within(2**20, 1000, multiple_of=64), rows_within(2**20, 10**9)
    (131, 128, 1)
    """
    rows = max(multiple_of, n_bytes // (itemsize * max(1, width)) // multiple_of * multiple_of)
    return rows if at_most is None else min(rows, at_most)


def row_slices(n_rows: int, step: int) -> Iterator[slice]:
    """Slices of `step` consecutive rows; the last may have fewer."""
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def predictions(predict: Callable[[Any], Any], X: Matrix, step: int) -> Iterator[tuple[slice, Any]]:
    """Slices of rows and their predictions, `step` rows at a time.

    Parameters
    ----------
    predict : callable
        A method of a fitted classifier, such as ``predict_log_proba``.
    X : array, sparse matrix, data frame or list of rows
    """
    X = X.tocsr() if hasattr(X, "tocsr") else X
    for rows in row_slices(_num_samples(X), step):
        with np.errstate(divide="ignore"):  # the logarithm of a probability of 0
            predicted = predict(_safe_indexing(X, rows))
        yield rows, predicted
