"""Dask arrays and data frames: fitted as a whole, predicted block by block."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any, TypeVar, cast
from uuid import uuid4

import numpy as np

from dichotomies._common.cluster import optional
from dichotomies._common.validation import is_dask

Method = TypeVar("Method", bound=Callable[..., Any])


def computed(*values: Any) -> tuple[Any, ...]:
    """Return Dask collections as the arrays or data frames that they stand for, other values as they are."""
    if not any(map(is_dask, values)):
        return values
    return tuple(optional("dask").compute(*values))


def by_block(method: Method) -> Method:
    """Let a method that predicts rows take Dask collections, for which it returns a lazy Dask array."""

    @wraps(method)
    def answer(self: Any, X: Any) -> Any:
        if not is_dask(X):
            return method(self, X)
        return _blocks(self, method.__name__, X)

    return cast("Method", answer)


def _blocks(estimator: Any, method: str, X: Any) -> Any:
    """Predict a Dask collection lazily, as a Dask array with a block for each block of rows.

    A block is predicted where it lies once it is computed, so that probabilities of all rows are held
    nowhere. The model is sent once per worker.
    """
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
