"""Samples of rows, divided into folds, that a tree is judged on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._common.chunks import row_slices
from dichotomies.rows.folds import fold_of_rows

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies.rows.rows import Rows

_ROWS_AT_A_TIME = 4_096


def stratified(codes: IntArray, among: IntArray, most: int, rng: Any) -> IntArray:
    """All of the row numbers in `among`, or a sample of at most so many, stratified by class."""
    if len(among) <= most:
        return among
    chosen: IntArray = among[fold_of_rows(codes[among], -(-len(among) // most), rng) == 0]
    return chosen


def sample_in_folds(rows: Rows, max_rows: int, n_folds: int, rng: Any, *, whole_classes: bool) -> Rows:
    """Draw at most about `max_rows` different rows and divide them into folds.

    Equal rows go into the same fold, so that a row twice is a row of weight two. Rows without weight are
    left out.

    Parameters
    ----------
    whole_classes : bool
        Draw all rows of some classes, instead of some rows of every class.
    """
    codes = np.argsort(rows.class_order)[rows.codes]  # so that the names of the classes have no part in it
    weighted = np.arange(len(rows)) if rows.weight is None else np.flatnonzero(rows.weight > 0)
    content = np.stack([codes, _content(rows.X)], axis=1)[weighted]
    _, first, which = np.unique(content, axis=0, return_index=True, return_inverse=True)
    different = codes[weighted[first]]
    chosen = _chosen(different, max_rows, rng, whole_classes=whole_classes)
    fold = np.full(len(different), -1, dtype=np.intp)
    fold[chosen] = fold_of_rows(different[chosen], n_folds, rng)
    of_row = fold[which.ravel()]
    return replace(rows.take(weighted[of_row >= 0]), fold=of_row[of_row >= 0])


def _chosen(codes: IntArray, max_rows: int, rng: Any, *, whole_classes: bool) -> IntArray:
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    if whole_classes:
        return np.flatnonzero(_some_classes(codes, max_rows, rng)[codes])
    return np.flatnonzero(fold_of_rows(codes, -(-len(codes) // max_rows), rng) == 0)


def _some_classes(codes: IntArray, max_rows: int, rng: Any) -> BoolArray:
    """Draw classes, at least two, that have at most so many rows between them."""
    counts = np.bincount(codes)
    order = rng.permutation(len(counts))
    is_chosen = np.zeros(len(counts), dtype=bool)
    is_chosen[order] = np.cumsum(counts[order]) <= max_rows
    is_chosen[order[:2]] = True
    return is_chosen


def _content(X: Matrix) -> FloatArray:
    """One number per row, the same to the last bit for equal rows."""
    mixing = np.random.RandomState(0).standard_normal(X.shape[1])
    if not isinstance(X, np.ndarray):
        return np.asarray(X @ mixing)
    return np.concatenate([(X[rows] * mixing).sum(axis=1) for rows in row_slices(len(X), _ROWS_AT_A_TIME)])
