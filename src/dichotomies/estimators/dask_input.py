"""Dask arrays and data frames: fitted as a whole, predicted block by block."""

from __future__ import annotations

from copy import copy
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import uuid4

import numpy as np

from dichotomies._common.shipping import optional
from dichotomies._common.validation import is_dask

if TYPE_CHECKING:
    from collections.abc import Callable

Method = TypeVar("Method", bound="Callable[..., Any]")


def computed(*values: Any) -> tuple[Any, ...]:
    """Return Dask collections as the arrays or data frames that they stand for, other values as they are."""
    return tuple(optional("dask").compute(*values)) if any(map(is_dask, values)) else values


def by_block(method: Method) -> Method:
    """Let a method that predicts rows take Dask collections, for which it returns a lazy Dask array.

    The array has a block for each block of rows, which is predicted where it lies once it is computed, so
    that probabilities of all rows are held nowhere. The model is sent once per worker.
    """

    @wraps(method)
    def answer(self: Any, X: Any) -> Any:
        return _blocks(self, method.__name__, X) if is_dask(X) else method(self, X)

    return cast("Method", answer)


def _blocks(estimator: Any, method: str, X: Any) -> Any:
    da, delayed = optional("dask.array"), optional("dask").delayed
    estimator = copy(estimator).set_params(n_jobs=None)  # Dask has a thread for each block already
    model = delayed(estimator, name=f"{type(estimator).__name__}-{uuid4().hex}", traverse=False)
    of_all_classes = () if method == "predict" else (len(estimator.classes_),)
    dtype = estimator.classes_.dtype if method == "predict" else np.dtype(np.float64)
    if hasattr(X, "rechunk"):  # an array, whose blocks must hold whole rows
        X = X.rechunk({1: -1})
        parts, lengths = X.to_delayed().ravel(), X.chunks[0]
    else:
        parts = X.to_delayed()
        lengths = [np.nan] * len(parts)
    predict = delayed(_predict, pure=False)
    answers = [
        da.from_delayed(predict(model, method, part), (length, *of_all_classes), dtype)
        for part, length in zip(parts, lengths, strict=True)
    ]
    return da.concatenate(answers)


def _predict(model: Any, method: str, rows: Any) -> Any:
    if rows.shape[0]:
        return getattr(model, method)(rows)
    shape = (0,) if method == "predict" else (0, len(model.classes_))
    return np.empty(shape, model.classes_.dtype if method == "predict" else np.float64)
