"""Dask arrays and data frames: fitted as a whole, predicted block by block."""

from __future__ import annotations

from copy import copy
from typing import Any
from uuid import uuid4

import numpy as np

from dichotomies._common.cluster import optional


def blocks(estimator: Any, method: str, X: Any) -> Any:
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
