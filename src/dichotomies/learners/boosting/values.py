"""The distinct values of features and their weights, in dense and in sparse rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray


class DenseValues(NamedTuple):
    """Rows of positive weight, and their weights relative to the largest."""

    X: FloatArray
    weight: FloatArray | None

    @classmethod
    def of(cls, X: FloatArray, weight: FloatArray | None) -> Self:
        """Leave out rows of weight 0."""
        if weight is None:
            return cls(X, None)
        counted = np.flatnonzero(weight > 0)
        return cls(X if len(counted) == len(X) else X[counted], _relative(weight[counted]))

    @property
    def filled(self) -> IntArray:
        """Features to look into."""
        return np.arange(self.X.shape[1])

    @property
    def default(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest values in the bins of all others."""
        return np.empty(0), np.empty(0)

    def column(self, f: int) -> tuple[FloatArray, FloatArray]:
        """Distinct values of a feature that are not missing, ascending, and the weight of each."""
        return _distinct(self.X[:, f], self.weight)


class SparseValues(NamedTuple):
    """The same of a sparse matrix, by column."""

    X: Any
    weight: FloatArray | None
    total: float

    @classmethod
    def of(cls, X: Any, weight: FloatArray | None) -> Self:
        """Leave out rows of weight 0."""
        X = without_duplicates(X)
        if weight is None:
            return cls(X.tocsc(), None, X.shape[0])
        counted = np.flatnonzero(weight > 0)
        relative = _relative(weight[counted])
        return cls(X[counted].tocsc(), relative, float(relative.sum()))

    @property
    def filled(self) -> IntArray:
        """Features to look into: those with entries."""
        return np.flatnonzero(np.diff(self.X.indptr))

    @property
    def default(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest values in the bins of all others."""
        return np.zeros(1), np.zeros(1)

    def column(self, f: int) -> tuple[FloatArray, FloatArray]:
        """Distinct values of a feature that are not missing, ascending, and the weight of each."""
        entries = slice(self.X.indptr[f], self.X.indptr[f + 1])
        values, rows = self.X.data[entries], self.X.indices[entries]
        weight = None if self.weight is None else self.weight[rows]
        filled = len(rows) if weight is None else float(weight.sum())
        distinct, counts = _distinct(values, weight)
        if len(rows) < self.X.shape[0]:
            at = int(np.searchsorted(distinct, 0.0))
            if at < len(distinct) and distinct[at] == 0.0:
                counts[at] += self.total - filled
            else:
                distinct, counts = np.insert(distinct, at, 0.0), np.insert(counts, at, self.total - filled)
        return distinct, counts


def _relative(weight: FloatArray) -> FloatArray:
    return weight / weight.max(initial=0.0) if len(weight) else weight


def _distinct(values: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Distinct values that are not missing, ascending, and the weight of each."""
    known = ~np.isnan(values)
    if not known.all():
        values, weight = values[known], None if weight is None else weight[known]
    distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    if weight is not None:
        counts = np.bincount(inverse, weights=weight, minlength=len(distinct))
    return distinct.astype(np.float64, copy=False), counts.astype(np.float64, copy=False)


def without_duplicates(X: Any) -> Any:
    """A CSR matrix with at most one entry per row and column, in ascending order."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
