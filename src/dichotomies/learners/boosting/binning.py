"""Binning of features: one bin per distinct value, or quantile bins if there are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies._common.parallel import even_batches, run
from dichotomies._kernels.boosting.ensembles import Bins
from dichotomies._kernels.boosting.histograms import encode_rows

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray


def bin_rows(
    X: FloatArray,
    rows: IntArray,
    sample_weight: FloatArray | None,
    max_bins: int,
    n_jobs: int | None = None,
) -> Bins:
    """Bin all features.

    Parameters
    ----------
    X : (n_rows, n_features)
    rows : (n_rows,)
        All row numbers, in the order of the binned rows.
    sample_weight : (n_rows,), optional
        Rows of weight 0 do not affect the bins.
    max_bins : int
        Maximum number of bins of a feature, at most 255.
    n_jobs : int, optional
        Number of threads.
    """
    n_features = X.shape[1]
    lowest, highest = np.empty((2, n_features, max_bins))
    n_bins = np.empty(n_features, dtype=np.intp)
    counted = slice(None) if sample_weight is None else np.flatnonzero(sample_weight > 0)
    weight = None if sample_weight is None else sample_weight[counted]

    def find(features: range) -> None:
        for f in features:
            low, high = bin_ranges(X[counted, f], weight, max_bins)
            n_bins[f] = len(low)
            lowest[f, : len(low)], highest[f, : len(high)] = low, high

    codes = np.empty((len(rows), n_features), dtype=np.uint8)

    def encode(places: range) -> None:
        taken = slice(places.start, places.stop)
        encode_rows(X, rows[taken], highest, n_bins, codes[taken])

    for work, n_pieces in ((find, n_features), (encode, len(rows))):
        batches = even_batches(np.ones(n_pieces, dtype=np.intp), n_jobs)
        run(work, [(batch,) for batch in batches], n_jobs=n_jobs, shared_memory=True)
    return Bins(codes, lowest, highest)


def bin_ranges(values: FloatArray, weight: FloatArray | None, max_bins: int) -> tuple[FloatArray, FloatArray]:
    """Find the lowest and highest value in each bin of a feature, ascending.

    Up to `max_bins` distinct values have a bin each. Otherwise bins are quantiles: bin b ends at the first
    value up to which there is at least a fraction ``(b + 1) / max_bins`` of the weight. Duplicating a row is
    the same as doubling its weight.
    """
    if weight is None:
        distinct, counts = np.unique(values, return_counts=True)
    else:
        distinct, inverse = np.unique(values, return_inverse=True)
        counts = np.bincount(inverse, weights=weight)
    distinct = distinct.astype(np.float64, copy=False)
    if len(distinct) <= max_bins:
        return distinct, distinct
    share = np.cumsum(counts)
    wanted = share[-1] * np.arange(1, max_bins) / max_bins
    ends = np.unique(np.append(np.searchsorted(share, wanted), len(distinct) - 1))
    return distinct[np.concatenate([[0], ends[:-1] + 1])], distinct[ends]
