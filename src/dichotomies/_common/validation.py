"""Validation of features, labels and weights beyond scikit-learn's, whichever library they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn import get_config

from dichotomies._common.typing import FloatArray, IntArray, LabelArray

_KINDS = {
    "strings": (str,),
    "bytes": (bytes,),
    "booleans": (bool, np.bool_),
    "numbers": (int, float, np.integer, np.floating),
}

#: Largest magnitude of a feature: squares, and sums of very many of them, must not overflow.
LARGEST = 1e100
#: Weights are counts. A total weight above this is read as this: n + 2 rows can be told from n, and
#: (n + 1) / (n + 2) from 1. Weights that are all below the other bound are scaled up to it.
MOST_ROWS, LEAST_WEIGHT = 1e12, 1e-100
#: Larger weights are all scaled down to it: sums and moments of them would overflow.
MOST_WEIGHT = 1e50


def namespace(array: Any) -> Any | None:
    """Return the namespace of another library's array; None for all that numpy handles."""
    if not get_config()["array_api_dispatch"] or isinstance(array, np.ndarray) or not _is_array(array):
        return None
    from sklearn.utils._array_api import _is_numpy_namespace, get_namespace

    xp, _ = get_namespace(array)
    return None if _is_numpy_namespace(xp) else xp


def _is_array(array: Any) -> bool:
    return hasattr(array, "__array_namespace__") or type(array).__module__.partition(".")[0] == "torch"


def to_host(array: Any) -> Any:
    """Return another library's array as numpy's; anything else as it is."""
    if (xp := namespace(array)) is None:
        return array
    from sklearn.utils._array_api import _convert_to_numpy

    return _convert_to_numpy(array, xp)


def is_dask(value: Any) -> bool:
    """Return True for Dask arrays, data frames and series; Dask itself is not imported for that."""
    return hasattr(value, "__dask_graph__") and hasattr(value, "to_delayed")


def check_indices(X: Any) -> None:
    """Raise if the indices of a sparse matrix point outside of it; compiled code would follow them.

    Anything that is not sparse passes. Matrices in compressed or coordinate format are checked at the speed
    of memory; the other formats of scipy are converted to these by Python code, which checks them.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from dichotomies._common.validation import check_indices
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
    >>> from dichotomies._common.validation import check_magnitude
    >>> check_magnitude(np.array([[1.0, -3e180]]))
    Traceback (most recent call last):
    ...
    ValueError: X has a value of -3e+180; squares of features beyond 1e+100 overflow: scale them.
    """
    values = X.data if bool(issparse(X)) else X
    if values.size == 0 or values.dtype.kind != "f" or float(np.finfo(values.dtype).max) <= LARGEST:
        return
    if is_moderate(values):
        return
    least, most = values.min(), values.max()
    if np.isnan(least):  # missing values, where they are allowed
        least, most = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    extreme = float(most if most > -least else least)
    if np.isinf(extreme):
        raise ValueError("X has an infinite value.")
    if abs(extreme) > LARGEST:
        raise ValueError(
            f"X has a value of {extreme:g}; squares of features beyond {LARGEST:g} overflow: scale them."
        )


def is_moderate(values: Any) -> bool:
    """Test in one pass if no value is missing or infinite and all squares have a finite sum."""
    return bool(values.flags.forc) and float(np.vdot(flat := values.ravel("K"), flat)) < LARGEST**2


def plain_labels(y: Any) -> Any:
    """Return labels that `numpy.unique` can sort; raise where one is missing or of another type.

    Integers and booleans become numpy's: of pandas' nullable ones scikit-learn would make floats, which
    cannot tell 2**53 from 2**53 + 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from dichotomies._common.validation import plain_labels
    >>> plain_labels(pd.Series([2**53, 2**53 + 1], dtype="Int64"))
    array([9007199254740992, 9007199254740993])
    >>> plain_labels(["a", 7, "b"])
    Traceback (most recent call last):
    ...
    ValueError: y has labels of several types (int, str): make them one, as by astype(str).
    """
    if hasattr(getattr(y, "dtype", None), "numpy_dtype"):
        _check_none_missing(np.asarray(y.isna()))
        kind = y.dtype.numpy_dtype
        return y.to_numpy(dtype=kind) if kind.kind in "biu" else y
    labels = np.asarray(y, dtype=object) if isinstance(y, list | tuple) else y
    values = np.asarray(labels)
    if values.dtype.hasobject and values.ndim == 1:
        _check_none_missing(np.array([each is None for each in values], dtype=bool))
        kinds = {_kind(each) for each in values}
        if len(kinds) > 1:
            listed = ", ".join(sorted(kinds))
            raise ValueError(f"y has labels of several types ({listed}): make them one, as by astype(str).")
        if kinds <= {"int", "bool"}:
            return np.array(values.tolist())
    return y


def _kind(label: Any) -> str:
    """Type of a label; numpy's integers are integers."""
    return type(label.item() if isinstance(label, np.generic) else label).__name__


def is_text(labels: Any) -> bool:
    """Return True if labels, an array of one type, are strings: numpy's, or objects as pandas has them."""
    if labels.dtype.hasobject:
        return len(labels) > 0 and isinstance(labels[0], str)
    return labels.dtype.kind in "US"


def _check_none_missing(missing: Any) -> None:
    if missing.any():
        raise ValueError(f"y has no label in row {int(missing.argmax())} (counted from 0).")


def _kind_of_label(label: Any) -> str:
    for name, types in _KINDS.items():
        if isinstance(label, types):
            return name
    raise TypeError(
        f"Class labels must be strings, numbers or booleans, got {label!r} of type {type(label).__name__}."
    )


def as_labels(labels: Sequence[Any] | LabelArray) -> LabelArray:
    """Return labels as an array; raise for mixed kinds, which numpy would silently convert."""
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        return labels
    by_kind = {_kind_of_label(label): label for label in labels}
    if len(by_kind) > 1:
        (first, one), (second, other) = list(by_kind.items())[:2]
        raise TypeError(
            f"Class labels must be all of one kind, got {first} such as {one!r} "
            f"and {second} such as {other!r}."
        )
    return np.asarray(labels)


def codes_of(leaves: LabelArray, classes: Sequence[Any] | LabelArray | None) -> tuple[LabelArray, IntArray]:
    """Return the classes in the order of their codes, and the code of each leaf."""
    names = leaves.tolist()
    label, count = Counter(names).most_common(1)[0] if names else (None, 0)
    if count != 1:
        raise ValueError(f"Class {label!r} is at {count} leaves of the tree." if count else "Empty tree.")
    known = np.unique(leaves) if classes is None else np.asarray(classes).copy()
    code = {name: i for i, name in enumerate(known.tolist())}
    if len(code) != len(known):
        twice = Counter(known.tolist()).most_common(1)[0][0]
        raise ValueError(f"Class {twice!r} is given twice.")
    if missing := set(code) - set(names):
        raise ValueError(f"Class {min(missing, key=repr)!r} is missing from the tree.")
    for name in names:
        if name not in code:
            raise ValueError(
                f"The tree has a leaf {name!r}, which is not among the {len(code)} classes. "
                "ClassTree.restrict() leaves out classes that do not occur."
            )
    return known, np.array([code[name] for name in names], dtype=np.intp)


def bounded_counts(weights: FloatArray) -> FloatArray:
    """Scale weights whose sum may exceed `MOST_ROWS`, or which are all tiny."""
    largest, most = float(weights.max(initial=0.0)), MOST_ROWS / max(len(weights), 1)
    if largest > most:
        return weights * (most / largest)
    return weights * (LEAST_WEIGHT / largest) if 0.0 < largest < LEAST_WEIGHT else weights


def row_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> FloatArray:
    """Validate sample weights: one per row, finite, not negative, and not all zero; ones by default."""
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


def like(values: Any, array: Any, xp: Any) -> Any:
    """Return numpy's values as an array on the device of another, real numbers in its precision."""
    from sklearn.utils._array_api import device

    dtype = array.dtype if np.asarray(values).dtype.kind == "f" else None
    return xp.asarray(values, dtype=dtype, device=device(array))


def as_given(values: FloatArray, given: Any) -> FloatArray:
    """Return numpy's values as an array of the library, and on the device, of what was given."""
    if (xp := namespace(given)) is not None:
        values = like(values, given, xp)
    return values


def log_softmax(z: Any, xp: Any) -> Any:
    """Subtract the log-sum-exp of every row."""
    z = z - xp.max(z, axis=1, keepdims=True)
    return z - xp.log(xp.sum(xp.exp(z), axis=1, keepdims=True))
