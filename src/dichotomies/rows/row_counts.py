"""`RowCounts`: the classes of rows that come in batches, their sizes, and the sums of their features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies.rows.rows import Rows

#: Number of features beyond which their scatter is not summed; trees then need only the means of the classes.
_MANY_FEATURES = 512


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Result of the first pass: classes, their rows, and the sums of their features.

    Attributes
    ----------
    classes : (n_classes,)
        Labels, sorted.
    size, n_values : (n_classes,)
        Number of rows and, if they are sparse, of values stored.
    weight : (n_classes,) or None
        Total weight; None without weights.
    totals : (n_classes, n_features), dense or CSR
        Weighted sum of the features.
    scatter : (n_features, n_features) or None
        Weighted scatter of all rows about their mean; None of more than 512 features.
    dtype : dtype
        Of the features.
    """

    classes: LabelArray
    size: IntArray
    n_values: IntArray
    weight: FloatArray | None
    totals: Any
    scatter: FloatArray | None
    dtype: np.dtype[Any]

    def check_classes(self) -> None:
        """Raise if there are fewer than two classes."""
        if len(self.classes) < 2:
            only = self.classes.tolist()[0]
            raise ValueError(f"A classifier needs at least two classes, but y has only one class: {only!r}.")

    @property
    def is_sparse(self) -> bool:
        """True if rows are CSR."""
        return not isinstance(self.totals, np.ndarray)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.totals.shape[1])

    @property
    def row_bytes(self) -> float:
        """Mean size of a row in memory."""
        if not self.is_sparse:
            return float(self.n_features * self.dtype.itemsize)
        return float(8 + self.n_values.sum() / max(1, self.size.sum()) * (4 + self.dtype.itemsize))

    @classmethod
    def of(cls, batches: Iterable[Rows]) -> RowCounts:
        """Count batches of rows, each with the classes that it has."""
        counts: RowCounts | None = None
        for batch in batches:
            own = cls._of_batch(batch)
            counts = own if counts is None else counts.plus(own)
        if counts is None:
            raise ValueError("There is no batch of rows.")
        return counts

    @classmethod
    def _of_batch(cls, rows: Rows) -> RowCounts:
        is_sparse = not isinstance(rows.X, np.ndarray)
        n_values = np.diff(rows.X.indptr) if is_sparse else np.zeros(len(rows), dtype=np.intp)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        return cls(
            rows.classes,
            rows.class_size,
            np.bincount(rows.codes, n_values, rows.n_classes).astype(np.intp),
            None if rows.weight is None else rows.class_weight,
            rows.class_indicator() @ rows.X,
            _scatter(rows.X, weight),
            rows.X.dtype,
        )

    @property
    def total_weight(self) -> float:
        """Total weight of all rows."""
        return float((self.size if self.weight is None else self.weight).sum())

    @property
    def mean(self) -> FloatArray:
        """Mean of each feature over all rows."""
        total = np.asarray(self.totals.sum(axis=0), dtype=np.float64)
        return total / max(self.total_weight, np.finfo(float).tiny)

    def plus(self, other: RowCounts) -> RowCounts:
        """Counts of both sets of rows."""
        if (self.weight is None) != (other.weight is None):
            raise ValueError("Either all batches have weights, or none has.")
        if (self.classes.dtype.kind in "US") != (other.classes.dtype.kind in "US"):
            one, two = self.classes.tolist()[0], other.classes.tolist()[0]
            raise TypeError(f"Labels of one batch are like {one!r}, those of another like {two!r}.")
        classes = np.union1d(self.classes, other.classes)
        one, two = (_indicator(each.classes, classes) for each in (self, other))
        weight = None
        if self.weight is not None and other.weight is not None:
            weight = one @ self.weight + two @ other.weight
        return RowCounts(
            classes,
            one @ self.size + two @ other.size,
            one @ self.n_values + two @ other.n_values,
            weight,
            one @ self.totals + two @ other.totals,
            self._scatter_with(other),
            np.result_type(self.dtype, other.dtype),
        )

    def _scatter_with(self, other: RowCounts) -> FloatArray | None:
        """Scatter of both sets of rows about their common mean."""
        if self.scatter is None or other.scatter is None:
            return None
        apart, (one, two) = self.mean - other.mean, (self.total_weight, other.total_weight)
        share = one * two / max(one + two, np.finfo(float).tiny)
        return self.scatter + other.scatter + share * np.outer(apart, apart)


def _scatter(X: Matrix, weight: FloatArray) -> FloatArray | None:
    """Weighted scatter of rows about their mean."""
    if X.shape[1] > _MANY_FEATURES:
        return None
    dense = np.array(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)
    dense -= weight @ dense / max(float(weight.sum()), np.finfo(float).tiny)
    dense *= np.sqrt(weight)[:, None]
    scatter: FloatArray = dense.T @ dense
    return scatter


def _indicator(some: LabelArray, every: LabelArray) -> Any:
    """Matrix that moves values of some classes to their places among all classes."""
    place = np.searchsorted(every, some)
    return csr_array(
        (np.ones(len(some), dtype=np.intp), (place, np.arange(len(some)))), (len(every), len(some))
    )
