"""Validation of labels, probabilities and weights."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray, LabelArray
from dichotomies._common.validation import namespace, to_host

_SHOWN = 5


def checked_matrix(y_proba: npt.ArrayLike, *, is_log: bool = False) -> FloatArray:
    """Return probabilities as a matrix (n_rows, n_classes); 1-D scores become two columns."""
    if namespace(y_proba) is not None and np.ndim(y_proba) == 2:  # read where it is, block by block
        on_device: FloatArray = y_proba  # type: ignore[assignment]
        return on_device
    proba: Any = np.asarray(to_host(y_proba))
    if proba.dtype.kind not in "fiub":
        raise ValueError(f"y_proba must hold numbers, got an array of dtype {proba.dtype}.")
    if proba.ndim == 1 and not is_log:
        score = checked_scores(proba)
        return np.column_stack([1 - score, score])
    if proba.ndim != 2:
        accepted = "(n_rows, n_classes)" if is_log else "(n_rows, n_classes) or (n_rows,)"
        raise ValueError(f"y_proba must have shape {accepted}, got {proba.shape}.")
    matrix: FloatArray = proba
    return matrix


def checked_scores(scores: npt.ArrayLike) -> FloatArray:
    """Return probabilities of one event as a 1-D array; raise unless all are between 0 and 1."""
    array = np.asarray(to_host(scores), dtype=np.float64)
    wrong = np.flatnonzero(~((array >= 0) & (array <= 1)))
    if len(wrong):
        raise ValueError(f"Probabilities must lie between 0 and 1; row {wrong[0]} has {array[wrong[0]]}.")
    return array


def check_proba(smallest: FloatArray, total: FloatArray, dtype: Any, first_row: int) -> None:
    """Raise if a row has a negative or missing probability or does not sum to 1."""
    tolerance = np.sqrt(np.finfo(dtype).eps) if np.dtype(dtype).kind == "f" else 0.0
    wrong = np.flatnonzero(~((smallest >= 0) & (np.abs(total - 1) <= tolerance)))
    if len(wrong):
        i = wrong[0]
        what = f"sums to {total[i]:.6g}" if smallest[i] >= 0 else f"has a probability of {smallest[i]:.6g}"
        what = "has a missing value (NaN)" if np.isnan(total[i]) else what
        raise ValueError(
            f"Every row of y_proba must be probabilities that sum to 1, but row {first_row + i} {what}."
        )


def column_labels(y_true: npt.ArrayLike, y_proba: npt.ArrayLike, labels: npt.ArrayLike | None) -> LabelArray:
    """Return the labels of the columns of `y_proba`, or of the two classes for one score per row."""
    is_score = np.ndim(y_proba) == 1
    n_columns = 2 if is_score else np.shape(y_proba)[1]
    columns = _default_labels(y_true, is_score) if labels is None else _labels_array(labels, "labels")
    if len(columns) != n_columns:
        hint = "pass labels= where not every class occurs in y_true." if labels is None else ""
        raise ValueError(
            f"y_proba must have one column for each of the {len(columns)} classes, got {n_columns} "
            f"columns; {hint}".rstrip("; ")
        )
    return columns


def class_codes(y_true: npt.ArrayLike, columns: npt.ArrayLike) -> IntArray:
    """Return the column of each row's true class; raise if a label has no column."""
    present, codes = np.unique(_labels_array(y_true, "y_true"), return_inverse=True)
    names = np.asarray(columns).tolist()
    column = {label: i for i, label in enumerate(names)}
    if len(column) < len(names):
        raise ValueError("labels must be different from one another: each names one column of y_proba.")
    found = np.array([column.get(label, -1) for label in present.tolist()], dtype=np.intp)
    if (found < 0).any():
        unknown = present[found < 0].tolist()
        named = ", ".join(repr(label) for label in unknown[:_SHOWN])
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        raise ValueError(
            f"There are true labels that are not among the {len(names)} classes with a probability: "
            f"{named}{more}. Leave out their rows, or count them as mistakes by hand."
        )
    result: IntArray = found[codes]
    return result


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise unless the value of a parameter is one of the `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def check_k(k: int) -> None:
    """Raise unless `k` is at least 1."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}.")


def checked_top_k(top_k: Sequence[int]) -> tuple[int, ...]:
    """Return `top_k` as a tuple; raise unless it holds integers from 1."""
    given = np.asarray(top_k)
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iu" or (given < 1).any():
        raise ValueError(f"top_k must be a sequence of numbers from 1 on, such as (1, 5), got {top_k!r}.")
    return tuple(given.tolist())


def check_same_length(y_true: Any, y_proba: Any) -> None:
    """Raise if labels and probabilities differ in their number of rows."""
    n_labels, n_rows = len(y_true), y_proba.shape[0]
    if n_labels != n_rows:
        raise ValueError(f"y_true has {n_labels} rows and y_proba {n_rows}; they must be the same.")


def _labels_array(values: npt.ArrayLike, name: str) -> LabelArray:
    array = np.asarray(to_host(values))
    if array.ndim != 1:
        raise ValueError(f"{name} must have one label per row, shape (n_rows,), got shape {array.shape}.")
    missing = _missing(array)
    if len(missing):
        i = missing[0]
        raise ValueError(f"{name} must not have missing labels; that of row {i} is {array[i]}.")
    return array


def _missing(labels: LabelArray) -> IntArray:
    if labels.dtype.kind == "f":
        return np.flatnonzero(np.isnan(labels))
    if labels.dtype.kind != "O":
        return np.empty(0, dtype=np.intp)
    gaps = [label is None or (isinstance(label, float) and np.isnan(label)) for label in labels.tolist()]
    return np.flatnonzero(gaps)


def _default_labels(y_true: npt.ArrayLike, is_score: bool) -> LabelArray:
    y = _labels_array(y_true, "y_true")
    if is_score and y.dtype.kind in "biuf" and np.isin(y, (0, 1)).all():
        return np.array([0, 1]).astype(y.dtype)
    return np.unique(y)
