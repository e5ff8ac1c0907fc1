"""Rows that calibrators are fitted to: class log-probabilities as calibrators read them, and log-odds.

Entries below -100, minus infinity included, are read as -100. No finite sample supports a lower probability,
and a scale fitted to log-probabilities such as the -1e9 of naive Bayes would erase the differences that
matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._common.chunks import row_slices, rows_within

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray

    RealArray = npt.NDArray[Any]

#: Lower bound on log-probabilities; lower entries are read as this.
LOWEST = -100.0

#: Maximum number of entries (rows times classes) that are evaluated in double precision.
DOUBLE_UP_TO = 2**15

_BLOCK_BYTES = 256 * 2**10
_NO_FLOOR = -1e30


def row_blocks(n_rows: int, n_classes: int, n_bytes: int = _BLOCK_BYTES) -> Iterator[slice]:
    """Slices of rows whose doubles take so much memory: by default, what fits into a core's cache."""
    return row_slices(n_rows, rows_within(n_bytes, n_classes))


def normalise(z: FloatArray) -> FloatArray:
    """Subtract the log-sum-exp of every row, in place."""
    z -= z.max(axis=1, keepdims=True)
    z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
    return z


def shift_and_floor(raw: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each row's log normaliser, and the lower bound of its entries after normalisation.

    Raises
    ------
    ValueError
        If an entry is NaN or plus infinity, or a row has no finite entry; the message names the row.
    """
    top = raw.max(axis=1)  # NaN if the row contains one
    if not np.isfinite(top).all():
        row = int(np.argmin(np.isfinite(top)))
        what = {True: "NaN", False: "no finite entry" if top[row] < 0 else "infinity"}[
            bool(np.isnan(top[row]))
        ]
        raise ValueError(
            f"log_proba must hold natural logarithms of probabilities, but row {row} of a block has {what}."
        )
    shift = top + np.log(np.exp(raw - top[:, None]).sum(axis=1))
    return shift, np.full(len(raw), LOWEST)


def normalised(raw: RealArray) -> FloatArray:
    """Return a normalised, finite copy in double precision."""
    x = np.array(raw, dtype=np.float64, order="C")
    shift, floor = shift_and_floor(x)
    x -= shift[:, None]
    return np.maximum(x, floor[:, None], out=x)


def log_odds(x: FloatArray) -> FloatArray:
    """Turn log-probabilities into log-odds ``log p - log(1 - p)``, in place.

    For p near 1, 1 - p is the sum over the other classes, to avoid cancellation.
    """
    rows = np.arange(len(x))
    best = x.argmax(axis=1)
    top = x[rows, best]
    x[rows, best] = -np.inf
    second = x.max(axis=1)
    rest = second + np.log(np.exp(x - second[:, None]).sum(axis=1))
    x -= np.log1p(-np.exp(np.minimum(x, -np.log(2))))
    x[rows, best] = top - rest
    return x


@dataclass(frozen=True)
class CalibrationRows:
    """Rows that a calibrator is fitted to, with the log-probabilities stored as given.

    They are read as ``max(raw - shift, floor)``, by `block` in double precision and by the kernels in single
    precision.
    """

    raw: RealArray
    codes: IntArray
    weight: FloatArray
    shift: FloatArray
    floor: FloatArray

    @classmethod
    def read(cls, raw: RealArray, codes: IntArray, weight: FloatArray) -> CalibrationRows:
        """Validate every row and compute its normalising constant."""
        shift, floor = np.empty(len(raw)), np.empty(len(raw))
        for rows in row_blocks(*raw.shape):
            shift[rows], floor[rows] = shift_and_floor(raw[rows].astype(np.float64))
        return cls(raw, codes, weight, shift, floor)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of classes."""
        n_rows, n_classes = self.raw.shape
        return n_rows, n_classes

    def block(self, rows: slice) -> FloatArray:
        """Return the normalised, finite log-probabilities of some rows, as a new array."""
        x: FloatArray = self.raw[rows] - self.shift[rows, None]
        return np.maximum(x, self.floor[rows, None], out=x)

    def dense(self) -> FloatArray:
        """Return the normalised, finite log-probabilities of all rows."""
        return self.block(slice(None))

    @cached_property
    def _as_log_odds(self) -> CalibrationRows:
        x = np.empty(self.raw.shape, np.float32 if self.raw.size > DOUBLE_UP_TO else np.float64)
        for rows in row_blocks(*self.shape):
            x[rows] = log_odds(self.block(rows))
        nothing = np.zeros(len(x))
        return CalibrationRows(x, self.codes, self.weight, nothing, nothing + _NO_FLOOR)

    def as_log_odds(self) -> CalibrationRows:
        """Return the rows with log-odds in place of log-probabilities: a copy, kept."""
        return self._as_log_odds

    def take(self, chosen: BoolArray) -> CalibrationRows:
        """Return the rows where `chosen` is True."""
        codes, weight = self.codes[chosen], self.weight[chosen]
        return CalibrationRows(self.raw[chosen], codes, weight, self.shift[chosen], self.floor[chosen])

    @cached_property
    def class_weight(self) -> FloatArray:
        """Total weight of the rows of each class."""
        return np.bincount(self.codes, self.weight, self.raw.shape[1]).astype(np.float64)

    @cached_property
    def own_sums(self) -> FloatArray:
        """Weighted sum, for each class, of its own column over its own rows."""
        return np.bincount(self.codes, self.weight * self.own, self.raw.shape[1]).astype(np.float64)

    @cached_property
    def own(self) -> FloatArray:
        """Entry of each row in the column of its true class."""
        own = self.raw[np.arange(len(self.raw)), self.codes] - self.shift
        return np.maximum(own, self.floor)

    @cached_property
    def own_blocks(self) -> FloatArray:
        """Weighted sums, for each class, of x^2, x and 1 over its own rows, x the entry in its column."""
        squares = np.bincount(self.codes, self.weight * self.own**2, self.raw.shape[1])
        return np.array([squares, self.own_sums, self.class_weight])

    def is_separated(self) -> bool:
        """Return True if every row's true class is the most probable one."""
        for few in row_blocks(*self.shape):
            counts = self.weight[few] > 0
            if (self.block(few).max(axis=1) > self.own[few])[counts].any():
                return False
        return True

    @property
    def total_weight(self) -> float:
        """Sum of all weights; the number of rows if unweighted."""
        return float(self.weight.sum())
