"""Validation of labels beyond scikit-learn's: nullable types, and labels of several types."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain_labels(y: Any) -> Any:
    """Return labels that `numpy.unique` can sort; raise where one is missing or of another type.

    Integers and booleans become numpy's: of pandas' nullable ones scikit-learn would make floats, which
    cannot tell 2**53 from 2**53 + 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from dichotomies._common.labels import plain_labels
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


def _check_none_missing(missing: Any) -> None:
    if missing.any():
        raise ValueError(f"y has no label in row {int(missing.argmax())} (counted from 0).")
