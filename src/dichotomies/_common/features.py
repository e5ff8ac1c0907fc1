"""Validation of features beyond scikit-learn's: indices of sparse matrices, and magnitudes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

#: Largest magnitude of a feature: squares, and sums of very many of them, must not overflow.
LARGEST = 1e100


def check_indices(X: Any) -> None:
    """Raise if the indices of a sparse matrix point outside of it; compiled code would follow them.

    Anything that is not sparse passes. Matrices in compressed or coordinate format are checked at the speed
    of memory; the other formats of scipy are converted to these by Python code, which checks them.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from dichotomies._common.features import check_indices
    >>> X = csr_array([[0.0, 1.0]])
    >>> X.indices[0] = 7
    >>> check_indices(X)
    Traceback (most recent call last):
    ...
    ValueError: X is a sparse matrix with an index of 7 in an axis of length 2.
    """
    if not bool(issparse(X)):  # so that the type of X stays open
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
                f"X is a sparse matrix whose indptr does not fit: it must have {major + 1} numbers, from 0 "
                f"to at most {n_stored}, the number of stored entries."
            )
        if (offsets[1:] < offsets[:-1]).any():
            raise ValueError("X is a sparse matrix whose indptr decreases.")
        _check_range(X.indices[: offsets[-1]], minor)


def _check_range(index: Any, length: int) -> None:
    if len(index) and not (index.min() >= 0 and index.max() < length):
        wrong = index[np.argmax((index < 0) | (index >= length))]
        raise ValueError(f"X is a sparse matrix with an index of {wrong} in an axis of length {length}.")


def check_magnitude(X: Any) -> None:
    """Raise if a feature is beyond `LARGEST`: its square, or a sum of such squares, would be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies._common.features import check_magnitude
    >>> check_magnitude(np.array([[1.0, -3e180]]))
    Traceback (most recent call last):
    ...
    ValueError: X has a value of -3e+180; squares of features beyond 1e+100 overflow: scale them.
    """
    values = X.data if bool(issparse(X)) else X
    if values.size == 0 or values.dtype.kind != "f":
        return
    least, most = values.min(), values.max()
    if np.isnan(least):  # missing values, where they are allowed
        least, most = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    extreme = float(most if most > -least else least)  # the limit is beyond single precision
    if abs(extreme) > LARGEST:
        raise ValueError(
            f"X has a value of {extreme:g}; squares of features beyond {LARGEST:g} overflow: scale them."
        )
