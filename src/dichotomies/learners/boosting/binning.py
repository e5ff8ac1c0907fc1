"""Binning of features: one bin per distinct value, or quantile bins if there are too many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_matrix, issparse

from dichotomies._common.parallel import even_batches, run
from dichotomies._kernels.boosting.encoding import MISSING, Codes, encode, make_encoder
from dichotomies._kernels.boosting.node_rows import Bins

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix


@dataclass(frozen=True)
class Binning:
    """The bins of all features.

    Attributes
    ----------
    lowest, highest : (n_bins,)
        The lowest and highest value in each bin; equal for categories.
    starts : (n_features + 1,)
        Start of each feature's bins, and the end.
    is_categorical : (n_features,)
    edges : (n_edges,)
        Of numbers, the middle between neighbouring bins; of categories, their values.
    offsets : (n_features + 1,)
        Start of each feature's edges, and the end.
    """

    lowest: FloatArray
    highest: FloatArray
    starts: IntArray
    is_categorical: BoolArray
    edges: FloatArray
    offsets: IntArray

    @classmethod
    def find(
        cls,
        X: Matrix,
        sample_weight: FloatArray | None,
        max_bins: int,
        is_categorical: BoolArray | None = None,
        n_jobs: int | None = None,
    ) -> Binning:
        """Find the bins of all features.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            NaN stands for a missing value.
        sample_weight : (n_rows,), optional
            Rows of weight 0 do not affect the bins.
        max_bins : int
            Maximum number of bins of a feature without that of missing values, at most 255.
        is_categorical : (n_features,), optional
        n_jobs : int, optional
            Number of threads.
        """
        n_features = X.shape[1]
        categorical = np.zeros(n_features, dtype=np.bool_) if is_categorical is None else is_categorical
        if sample_weight is not None:
            X, sample_weight = _counted(X, sample_weight)
        is_sparse = issparse(X)
        columns: Any = without_duplicates(X).tocsc() if is_sparse else X
        filled = np.flatnonzero(np.diff(columns.indptr)) if is_sparse else np.arange(n_features)
        zeros = np.zeros(1 if is_sparse else 0)
        ranges: list[tuple[FloatArray, FloatArray]] = [(zeros, zeros)] * n_features

        def find(features: IntArray) -> None:
            for f in features:
                find_ranges = frequent_values if categorical[f] else bin_ranges
                values = _values_of_entries if is_sparse else _values
                ranges[f] = find_ranges(*values(columns, f, sample_weight), max_bins)

        batches = even_batches(np.ones(len(filled), dtype=np.intp), n_jobs)
        run(
            find,
            [(filled[batch.start : batch.stop],) for batch in batches],
            n_jobs=n_jobs,
            shared_memory=True,
        )
        n_bins = np.array([len(low) for low, _ in ranges], dtype=np.intp)
        starts = np.concatenate([[0], np.cumsum(n_bins)])
        lowest, highest = (np.concatenate([np.empty(0), *each]) for each in zip(*ranges, strict=True))
        above, of_category = np.append(lowest[1:], 0.0), np.repeat(categorical, n_bins)
        middle = highest / 2 + above / 2
        edges = np.where(of_category, highest, np.where(middle < above, middle, highest))
        is_edge = of_category.copy()
        is_edge |= np.arange(1, len(lowest) + 1) < np.repeat(starts[1:], n_bins)
        offsets = np.concatenate([[0], np.cumsum(is_edge)])[starts]
        return cls(lowest, highest, starts, categorical, edges[is_edge], offsets)

    def encode(self, X: Matrix, n_jobs: int | None = None) -> Bins:
        """Encode rows."""
        if issparse(X):
            return self._encode_sparse(X)
        encoder = make_encoder(self.edges, self.offsets, self.is_categorical)
        codes: Codes = np.empty(X.shape[::-1], dtype=np.uint8)
        rows, features = np.arange(len(X)), np.arange(X.shape[1])

        def encode_some(places: range) -> None:
            taken = rows[places.start : places.stop]
            encode(X, taken, features, encoder, np.uint8(MISSING), places.start, codes)

        batches = even_batches(np.ones(len(rows), dtype=np.intp), n_jobs)
        run(encode_some, [(batch,) for batch in batches], n_jobs=n_jobs, shared_memory=True)
        return self.bins(codes)

    def _encode_sparse(self, X: Any) -> Bins:
        """Encode the entries of a sparse matrix."""
        by_column = without_duplicates(X).tocsc()
        codes: Codes = np.empty(by_column.nnz, dtype=np.uint8)
        for f in np.flatnonzero(np.diff(by_column.indptr)):
            entries = slice(by_column.indptr[f], by_column.indptr[f + 1])
            edges = self.edges[self.offsets[f] : self.offsets[f + 1]]
            codes[entries] = codes_of_values(by_column.data[entries], edges, self.is_categorical[f])
        return self.bins(csc_matrix((codes, by_column.indices, by_column.indptr), shape=X.shape).tocsr())

    def bins(self, codes: Any) -> Bins:
        """Codes of shape (n_features, n_rows), or a CSR matrix of codes of shape (n_rows, n_features)."""
        none = np.empty(0, dtype=np.intp)
        dense = codes, none, none.astype(np.int32), none.astype(np.uint8)
        shared = self.lowest, self.highest, self.starts, self.is_categorical
        if isinstance(codes, np.ndarray):
            return Bins(*dense, *shared)
        indptr, columns = codes.indptr.astype(np.intp), codes.indices.astype(np.int32)
        return Bins(codes.data[None], indptr, columns, self._codes_of_zero(), *shared)

    def _codes_of_zero(self) -> Codes:
        """Bin of 0 of each feature."""
        feature = np.repeat(np.arange(len(self.is_categorical)), np.diff(self.offsets))
        below = np.bincount(feature[self.edges < 0], minlength=len(self.is_categorical))
        is_edge = np.bincount(feature[self.edges == 0], minlength=len(self.is_categorical)) > 0
        codes: Codes = np.where(self.is_categorical & ~is_edge, MISSING, below).astype(np.uint8)
        return codes


def bin_ranges(distinct: FloatArray, counts: FloatArray, max_bins: int) -> tuple[FloatArray, FloatArray]:
    """Find the lowest and highest value in each bin of a feature, ascending.

    Up to `max_bins` distinct values have a bin each. Otherwise bins are quantiles: bin b ends at the first
    value up to which there is at least a fraction ``(b + 1) / max_bins`` of the weight. Duplicating a row is
    the same as doubling its weight. Missing values have no bin here.
    """
    if len(distinct) <= max_bins:
        return distinct, distinct
    share = np.cumsum(counts)
    wanted = share[-1] * (np.arange(1, max_bins) / max_bins)
    ends = np.unique(np.append(np.searchsorted(share, wanted), len(distinct) - 1))
    return distinct[np.concatenate([[0], ends[:-1] + 1])], distinct[ends]


def frequent_values(distinct: FloatArray, counts: FloatArray, max_bins: int) -> tuple[FloatArray, FloatArray]:
    """Find the categories that have a bin: all of them, or the `max_bins` of most weight, ascending."""
    kept = np.sort(distinct[np.argsort(-counts, kind="stable")[:max_bins]])
    return kept, kept


def codes_of_values(x: FloatArray, edges: FloatArray, is_categorical: bool) -> IntArray:
    """Codes of values of one feature: the number of edges below each, or the number of its category."""
    x = x.astype(np.float64, copy=False)
    code, is_missing = np.searchsorted(edges, x), np.isnan(x)
    if is_categorical:
        is_missing |= np.append(edges, np.nan)[code] != x
    return np.where(is_missing, MISSING, code)


def without_duplicates(X: Any) -> Any:
    """A CSR matrix with at most one entry per row and column, in ascending order."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _counted(X: Any, weight: FloatArray) -> tuple[Any, FloatArray]:
    """Rows of positive weight, and their weights relative to the largest."""
    counted = np.flatnonzero(weight > 0)
    weight = weight[counted]
    return X if len(counted) == X.shape[0] else X[counted], weight / weight.max(initial=0.0)


def _values_of_entries(X: Any, f: int, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Distinct values of a column of a CSC matrix, zeros included, and the weight of each."""
    entries = slice(X.indptr[f], X.indptr[f + 1])
    rows = X.indices[entries]
    values, own = X.data[entries], np.ones(len(rows)) if weight is None else weight[rows]
    if len(rows) < X.shape[0]:
        total = X.shape[0] if weight is None else weight.sum()
        values, own = np.append(values, 0.0), np.append(own, total - own.sum())
    return _distinct(values, own)


def _values(X: FloatArray, f: int, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Distinct values of a feature that are not missing, ascending, and the weight of each."""
    return _distinct(X[:, f], weight)


def _distinct(values: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    known = ~np.isnan(values)
    if not known.all():
        values, weight = values[known], None if weight is None else weight[known]
    distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    if weight is not None:
        counts = np.bincount(inverse, weights=weight, minlength=len(distinct))
    return distinct.astype(np.float64, copy=False), counts.astype(np.float64, copy=False)
