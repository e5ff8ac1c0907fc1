"""Binning of features: one bin per distinct value, or quantile bins if there are too many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_matrix, issparse

from dichotomies._common.parallel import even_batches, run
from dichotomies._kernels.boosting.encoding import MISSING, Codes, encode_rows, encode_values, make_encoder
from dichotomies._kernels.boosting.local_rows import Bins
from dichotomies._kernels.boosting.sparse_rows import SparseBins
from dichotomies._kernels.compile import is_small
from dichotomies.learners.boosting.values import DenseValues, SparseValues, without_duplicates

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
        values = (SparseValues if issparse(X) else DenseValues).of(X, sample_weight)
        ranges: list[tuple[FloatArray, FloatArray]] = [values.default] * n_features

        def find(features: IntArray) -> None:
            for f in features:
                find_ranges = frequent_values if categorical[f] else bin_ranges
                ranges[f] = find_ranges(*values.column(f), max_bins)

        batches = even_batches(np.ones(len(values.filled), dtype=np.intp), n_jobs)
        work = [(values.filled[batch.start : batch.stop],) for batch in batches]
        run(find, work, n_jobs=n_jobs, shared_memory=True)
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

    def encode(self, X: Matrix, rows: IntArray, n_jobs: int | None = None) -> Bins | SparseBins:
        """Encode rows, in this order."""
        if issparse(X):
            return self._encode_sparse(X).take(rows)
        encoder = make_encoder(self.edges, self.offsets, self.is_categorical)
        codes: Codes = np.empty((len(rows), X.shape[1]), dtype=np.uint8)
        small = is_small(len(rows), 1e-7 * codes.size + 5e-5 * X.shape[1])

        def encode(places: range) -> None:
            taken = slice(places.start, places.stop)
            encode_rows.when(small)(X, rows[taken], encoder, codes[taken])

        batches = even_batches(np.ones(len(rows), dtype=np.intp), n_jobs)
        run(encode, [(batch,) for batch in batches], n_jobs=n_jobs, shared_memory=True)
        return Bins(codes, self.lowest, self.highest, self.starts, self.is_categorical)

    def _encode_sparse(self, X: Any) -> SparseBins:
        """Encode the entries of a sparse matrix."""
        by_column = without_duplicates(X).tocsc()
        codes: Codes = np.empty(by_column.nnz, dtype=np.uint8)
        for f in np.flatnonzero(np.diff(by_column.indptr)):
            entries = slice(by_column.indptr[f], by_column.indptr[f + 1])
            edges = self.edges[self.offsets[f] : self.offsets[f + 1]]
            codes[entries] = encode_values(by_column.data[entries], edges, self.is_categorical[f])
        coded = csc_matrix((codes, by_column.indices, by_column.indptr), shape=X.shape).tocsr()
        indptr, columns = coded.indptr.astype(np.intp), coded.indices.astype(np.int32)
        bins = self.lowest, self.highest, self.starts, self.is_categorical
        return SparseBins(indptr, columns, coded.data, self.codes_of_zero(), *bins)

    def codes_of_zero(self) -> Codes:
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
