"""Binning of features: one bin per distinct value, or quantile bins if there are too many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dichotomies._common.parallel import even_batches, run
from dichotomies._kernels.boosting.encoding import MISSING, Codes, encode_rows, make_encoder
from dichotomies._kernels.boosting.local_rows import Bins
from dichotomies._kernels.compile import is_small

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Binning:
    """The bins of all features.

    Attributes
    ----------
    lowest, highest : (n_features, 255)
        The lowest and highest value in each bin, NaN beyond the last; equal for categories.
    n_bins : (n_features,)
    is_categorical : (n_features,)
    edges : (n_edges,)
        Of numbers, the middle between neighbouring bins; of categories, their values.
    offsets : (n_features + 1,)
        Start of each feature's edges, and the end.
    """

    lowest: FloatArray
    highest: FloatArray
    n_bins: IntArray
    is_categorical: BoolArray
    edges: FloatArray
    offsets: IntArray

    @classmethod
    def find(
        cls,
        X: FloatArray,
        sample_weight: FloatArray | None,
        max_bins: int,
        is_categorical: BoolArray | None = None,
        n_jobs: int | None = None,
    ) -> Binning:
        """Find the bins of all features.

        Parameters
        ----------
        X : (n_rows, n_features)
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
        lowest, highest = np.full((2, n_features, MISSING), np.nan)
        n_bins = np.empty(n_features, dtype=np.intp)
        counted = slice(None) if sample_weight is None else np.flatnonzero(sample_weight > 0)
        weight = None if sample_weight is None else sample_weight[counted]

        def find(features: range) -> None:
            for f in features:
                ranges = frequent_values if categorical[f] else bin_ranges
                low, high = ranges(X[counted, f], weight, max_bins)
                n_bins[f] = len(low)
                lowest[f, : len(low)], highest[f, : len(high)] = low, high

        batches = even_batches(np.ones(n_features, dtype=np.intp), n_jobs)
        run(find, [(batch,) for batch in batches], n_jobs=n_jobs, shared_memory=True)
        below, above = highest[:, :-1], lowest[:, 1:]
        middle = below / 2 + above / 2
        edges = np.where(categorical[:, np.newaxis], highest, np.nan)
        numeric = np.where(middle < above, middle, below)[~categorical]
        numeric[np.isnan(above[~categorical])] = np.nan
        edges[~categorical, :-1] = numeric
        is_edge = ~np.isnan(edges)
        offsets = np.concatenate([[0], np.cumsum(is_edge.sum(axis=1))])
        return cls(lowest, highest, n_bins, categorical, edges[is_edge], offsets)

    def encode(self, X: FloatArray, rows: IntArray, n_jobs: int | None = None) -> Bins:
        """Encode rows, in this order."""
        encoder = make_encoder(self.edges, self.offsets, self.is_categorical)
        codes: Codes = np.empty((len(rows), X.shape[1]), dtype=np.uint8)

        small = is_small(len(rows), 1e-7 * codes.size + 5e-5 * X.shape[1])

        def encode(places: range) -> None:
            taken = slice(places.start, places.stop)
            encode_rows.when(small)(X, rows[taken], encoder, codes[taken])

        batches = even_batches(np.ones(len(rows), dtype=np.intp), n_jobs)
        run(encode, [(batch,) for batch in batches], n_jobs=n_jobs, shared_memory=True)
        return Bins(codes, self.lowest, self.highest, self.is_categorical)


def bin_ranges(values: FloatArray, weight: FloatArray | None, max_bins: int) -> tuple[FloatArray, FloatArray]:
    """Find the lowest and highest value in each bin of a feature, ascending.

    Up to `max_bins` distinct values have a bin each. Otherwise bins are quantiles: bin b ends at the first
    value up to which there is at least a fraction ``(b + 1) / max_bins`` of the weight. Duplicating a row is
    the same as doubling its weight. Missing values have no bin here.
    """
    distinct, counts = _weights_of_values(values, weight)
    if len(distinct) <= max_bins:
        return distinct, distinct
    share = np.cumsum(counts)
    wanted = share[-1] * (np.arange(1, max_bins) / max_bins)
    ends = np.unique(np.append(np.searchsorted(share, wanted), len(distinct) - 1))
    return distinct[np.concatenate([[0], ends[:-1] + 1])], distinct[ends]


def frequent_values(
    values: FloatArray, weight: FloatArray | None, max_bins: int
) -> tuple[FloatArray, FloatArray]:
    """Find the categories that have a bin: all of them, or the `max_bins` of most weight, ascending."""
    distinct, counts = _weights_of_values(values, weight)
    kept = np.sort(distinct[np.argsort(-counts, kind="stable")[:max_bins]])
    return kept, kept


def _weights_of_values(values: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Distinct values that are not missing, ascending, and the weight of each, relative to the largest."""
    known = ~np.isnan(values)
    if not known.all():
        values, weight = values[known], None if weight is None else weight[known]
    distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    if weight is not None and len(weight):
        counts = np.bincount(inverse, weights=weight / weight.max())
    return distinct.astype(np.float64, copy=False), counts.astype(np.float64, copy=False)
