"""`NumberFeatures`: numbers without gaps and on one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from dichotomies._common.typing import BoolArray, FloatArray
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, expect


@savable(
    "number-features",
    fill=Array("float", "n_columns"),
    scale=Array("float", "n_columns"),
    has_gaps=Array("boolean", "n_columns"),
)
@dataclass(frozen=True)
class NumberFeatures:
    """Columns of numbers, divided by their standard deviations, with gaps filled by medians.

    A column with gaps in the training rows has a second feature, 1 where there is no number. Columns are not
    centred: zeros and signs keep their meaning, and a linear classifier has an intercept.

    Attributes
    ----------
    fill : ndarray of shape (n_columns,)
        Median of each column; 0 if it has no values.
    scale : ndarray of shape (n_columns,)
        Standard deviation of each column without its gaps; 1 if it is constant, and without scaling.
    has_gaps : ndarray of shape (n_columns,)
        True for columns with gaps in the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.tables import NumberFeatures
    >>> features = NumberFeatures.fit(np.array([[1.0, 0.0], [3.0, np.nan], [5.0, 8.0]]), scaled=False)
    >>> features.matrix(np.array([[np.nan, np.nan]]))
    array([[3., 4., 1.]])
    """

    fill: FloatArray
    scale: FloatArray
    has_gaps: BoolArray

    @classmethod
    def fit(cls, X: FloatArray, weight: FloatArray | None = None, *, scaled: bool = True) -> NumberFeatures:
        """Find medians and standard deviations."""
        fill = np.array([_median(column, weight) for column in X.T])
        scale = np.ones(X.shape[1])
        if scaled:
            with np.errstate(invalid="ignore"):  # of columns without values
                scale = StandardScaler(with_mean=False).fit(X, sample_weight=weight).scale_
        return cls(fill, np.where(np.isfinite(scale), scale, 1.0), np.asarray(np.isnan(X).any(axis=0)))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.fill) + int(self.has_gaps.sum())

    def matrix(self, X: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return the features of some rows."""
        n = len(self.fill)
        out = np.empty((len(X), self.n_features)) if out is None else out
        for column in range(n):
            values = X[:, column]
            out[:, column] = np.where(np.isnan(values), self.fill[column], values) / self.scale[column]
        for place, column in enumerate(np.flatnonzero(self.has_gaps).tolist(), n):
            out[:, place] = np.isnan(X[:, column])
        return out

    def check_relations(self, names: dict[str, Any]) -> None:  # noqa: ARG002 - as of all savable objects
        """Raise unless all numbers are finite; see `dichotomies.persistence.checks`."""
        expect(bool(np.isfinite(self.fill).all()), "the values of gaps are finite")
        expect(bool((np.isfinite(self.scale) & (self.scale > 0)).all()), "scales are positive")


def _median(column: FloatArray, weight: FloatArray | None) -> float:
    """Return the median of the numbers there are; 0 if there are none."""
    known = ~np.isnan(column) if weight is None else ~np.isnan(column) & (weight > 0)
    if not known.any():
        return 0.0
    if weight is None:
        return float(np.median(column[known]))
    order = np.argsort(column[known])
    values, below = column[known][order], np.cumsum(weight[known][order])
    middle = (
        np.searchsorted(below, below[-1] / 2, side="left"),
        np.searchsorted(below, below[-1] / 2, "right"),
    )
    return float(values[np.minimum(middle, len(values) - 1)].mean())
