"""Validation of sparse matrices, whose indices neither scipy nor scikit-learn checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse


def check_indices(X: Any) -> None:
    """Raise if the indices of a sparse matrix point outside of it; compiled code would follow them.

    Anything that is not sparse passes. Matrices in compressed or coordinate format are checked at the speed
    of memory; the other formats of scipy are converted to these by Python code, which checks them.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from dichotomies._common.sparse import check_indices
    >>> X = csr_array([[0.0, 1.0]])
    >>> X.indices[0] = 7
    >>> check_indices(X)
    Traceback (most recent call last):
    ...
    ValueError: X is a sparse matrix with an index of 7 in an axis of length 2.
    """
    if not issparse(X):
        return
    if X.format == "coo":
        for length, index in zip(X.shape, X.coords, strict=True):
            _check_range(index, length)
    elif X.format in ("csr", "csc", "bsr"):
        major, minor = X.shape[::-1] if X.format == "csc" else X.shape
        if X.format == "bsr":
            major, minor = major // X.blocksize[0], minor // X.blocksize[1]
        offsets, n_stored = X.indptr, min(len(X.indices), len(X.data))
        if len(offsets) != major + 1 or offsets[0] != 0 or offsets[-1] > n_stored:
            raise ValueError(
                f"X is a sparse matrix whose indptr does not fit: for {major} rows (or columns) with {n_stored} "
                f"stored entries it must have {major + 1} numbers, from 0 to at most {n_stored}."
            )
        if (offsets[1:] < offsets[:-1]).any():
            raise ValueError("X is a sparse matrix whose indptr decreases.")
        _check_range(X.indices[: offsets[-1]], minor)


def _check_range(index: Any, length: int) -> None:
    if len(index) and not (0 <= index.min() and index.max() < length):
        wrong = index[np.argmax((index < 0) | (index >= length))]
        raise ValueError(f"X is a sparse matrix with an index of {wrong} in an axis of length {length}.")
