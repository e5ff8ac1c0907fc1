"""`BinnedRows`: spilled rows of boosted trees, a byte for each value: the number of its bin."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, vstack

from dichotomies._kernels.boosting.encoding import MISSING
from dichotomies.learners import LEARNERS
from dichotomies.learners.boosting.binning import Binning, without_duplicates
from dichotomies.rows.spilled import SpilledRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from dichotomies._common.typing import FloatArray, IntArray, Matrix
    from dichotomies.learners.boosting.learner import BoostingLearner
    from dichotomies.rows import Rows
    from dichotomies.rows.spilled import RowCounts
    from dichotomies.training.plan import Plan

_BINS = "bins.npz"
#: Rows that bins are found on, at most; scikit-learn and LightGBM take as many.
_ROWS_TO_BIN = 200_000


def is_boosting(plan: Plan) -> bool:
    """Return True if nodes are trained on binned features."""
    return isinstance(plan.learner, LEARNERS.get("boosting"))


class RowSample:
    """A random sample of the rows of batches, which pass through.

    Parameters
    ----------
    max_memory : int
        Bytes for the sample; it has at most 200,000 rows.
    """

    def __init__(self, max_memory: int, rng: Any) -> None:
        self._max_memory, self._rng = max_memory, rng
        self._X: Any = None
        self._weight, self._key = np.empty(0), np.empty(0)

    def of(self, batches: Iterable[Rows]) -> Iterator[Rows]:
        """Pass the batches on; of sparse ones, equal entries are added up."""
        for batch in batches:
            whole = batch if isinstance(batch.X, np.ndarray) else canonical(batch)
            self._add(whole)
            yield whole

    def _add(self, rows: Rows) -> None:
        X, own = rows.X, np.ones(len(rows)) if rows.weight is None else rows.weight
        n_bytes = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
        most = max(1_000, min(_ROWS_TO_BIN, int(self._max_memory * len(rows) / max(1, n_bytes))))
        key = np.concatenate([self._key, self._rng.random_sample(len(rows))])
        taken = np.arange(len(key))
        if len(key) > most:
            taken = np.sort(np.argpartition(key, most)[:most])
        n_old = int(np.searchsorted(taken, len(self._key)))
        new = X[taken[n_old:] - len(self._key)]
        self._X = new if self._X is None else _stacked(self._X[taken[:n_old]], new)
        self._weight, self._key = np.concatenate([self._weight, own])[taken], key[taken]

    def binning(self, learner: BoostingLearner, n_jobs: int | None) -> Binning:
        """Bins of the features, by the rows in the sample."""
        weight = None if (self._weight == 1).all() else self._weight
        estimator = learner.estimator
        is_categorical = estimator.is_categorical(self._X.shape[1])
        return Binning.find(self._X, weight, estimator.max_bins, is_categorical, n_jobs)


def canonical(rows: Rows) -> Rows:
    """Sparse rows with at most one entry for each feature."""
    return replace(rows, base=without_duplicates(rows.X), index=None)


def save_binning(binning: Binning, folder: Path) -> None:
    """Write the bins to a folder."""
    np.savez(folder / _BINS, **{each.name: getattr(binning, each.name) for each in fields(binning)})


def saved_binning(folder: Path) -> Binning:
    """Read the bins from a folder."""
    with np.load(folder / _BINS, allow_pickle=False) as stored:
        return Binning(**stored)


@dataclass(frozen=True, eq=False)
class BinnedRows(SpilledRows):
    """Binned rows of a folder.

    Attributes
    ----------
    counts : RowCounts
        Of features with one byte for each value.
    binning : Binning
    learner : BoostingLearner
    values_dtype : dtype
        Of the features before.
    """

    binning: Binning
    learner: BoostingLearner
    values_dtype: Any

    @classmethod
    def of(cls, folder: Path, counts: RowCounts, learner: BoostingLearner) -> BinnedRows:
        """Rows that are to be written, or were, with the bins of the folder."""
        bytewise = replace(counts, dtype=np.dtype(np.uint8))
        return cls(folder, bytewise, saved_binning(folder), learner, counts.dtype)

    def write(self, batches: Iterable[Rows]) -> None:
        """Write the bins of the rows of batches, each to its place."""
        super().write(self._binned(batch) for batch in batches)

    def _binned(self, rows: Rows) -> Rows:
        if not isinstance(rows.X, np.ndarray):
            rows = canonical(rows)
        bins = self.binning.encode(rows.X)
        has_bins = np.diff(self.binning.starts) > 0
        X: Matrix
        if isinstance(rows.X, np.ndarray):
            bins.codes[~has_bins] = MISSING
            X = np.ascontiguousarray(bins.codes.T)
        else:
            bins.codes[0, ~has_bins[bins.columns]] = MISSING
            X = csr_array(bins.as_csr())
        return replace(rows, base=X, index=None, memo={})

    def rows(self, codes: IntArray, places: Sequence[IntArray]) -> Rows:
        """Copy of some rows, each value the lowest of its bin."""
        binned = super().rows(codes, places)
        return replace(binned, base=self._values(binned.X))

    def training_rows(self, codes: IntArray, places: Sequence[IntArray]) -> Rows:
        """Copy of some rows as bins; with their values only where boosting stops early, which needs them."""
        binned = super().rows(codes, places)
        X = binned.X
        bins = self.binning.bins(np.ascontiguousarray(X.T) if isinstance(X, np.ndarray) else X)
        if self.learner.estimator.stops_early:
            binned = replace(binned, base=self._values(binned.X))
        self.learner.preset(binned, self.binning, bins)
        return binned

    def _values(self, X: Matrix) -> Matrix:
        """The lowest value of each bin, which is in the same bin; NaN for missing ones."""
        starts, lowest = self.binning.starts, self.binning.lowest
        if not isinstance(X, np.ndarray):
            bins = np.where(X.data == MISSING, len(lowest), starts[X.indices] + X.data)
            data = np.append(lowest, np.nan)[bins].astype(self.values_dtype)
            return csr_array((data, X.indices, X.indptr), shape=X.shape)
        values: FloatArray = np.empty(X.shape, dtype=self.values_dtype)
        table = np.empty(256)
        for f in range(X.shape[1]):
            table[:] = np.nan
            table[: starts[f + 1] - starts[f]] = lowest[starts[f] : starts[f + 1]]
            values[:, f] = table[X[:, f]]
        return values


def _stacked(one: Matrix, two: Matrix) -> Matrix:
    if isinstance(one, np.ndarray):
        return np.concatenate([one, two])
    return vstack([one, two], format="csr")
