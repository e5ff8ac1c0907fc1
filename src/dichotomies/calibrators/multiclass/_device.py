"""Log-probabilities on a GPU: fitting and applying scales and biases where the arrays are.

Only sums by class, and the entries of the true classes, come to the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dichotomies._common.array_api import like, log_softmax, own_entries
from dichotomies._common.chunks import row_slices, rows_within
from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._common.validation import to_host
from dichotomies.calibrators.multiclass._calibration_rows import LOWEST, CalibrationRows

#: Bytes of log-probabilities that are evaluated at a time.
_BLOCK_BYTES = 2**29


def normalised(raw: Any, xp: Any) -> Any:
    """Return normalised, finite log-probabilities; raise if a row has none."""
    if not bool(xp.all(xp.isfinite(xp.max(raw, axis=1)))):
        raise ValueError("log_proba must hold natural logarithms of probabilities; a row has none, or NaN.")
    return xp.clip(log_softmax(raw, xp), LOWEST, None)


def log_odds(x: Any, xp: Any) -> Any:
    """Return log-odds of normalised log-probabilities; see `_likelihood.log_odds`."""
    best = xp.max(x, axis=1, keepdims=True)
    is_best = like(np.arange(x.shape[1]), x, xp)[None, :] == xp.argmax(x, axis=1, keepdims=True)
    others = xp.where(is_best, xp.full_like(x, -np.inf), x)
    second = xp.max(others, axis=1, keepdims=True)
    rest = second + xp.log(xp.sum(xp.exp(others - second), axis=1, keepdims=True))
    odds = x - xp.log1p(-xp.exp(xp.clip(x, None, -float(np.log(2)))))
    return xp.where(is_best, best - rest, odds)


@dataclass(frozen=True)
class DeviceRows(CalibrationRows):
    """Rows whose log-probabilities, normalised and finite, stay on their device; codes are on the host."""

    xp: Any = None
    is_on_device: ClassVar[bool] = True

    @property
    def is_single(self) -> bool:
        """True if the log-probabilities are in single precision."""
        return bool(self.raw.dtype == self.xp.float32)

    @classmethod
    def on_device(cls, raw: Any, codes: IntArray, weight: FloatArray, xp: Any) -> DeviceRows:
        """Validate and normalise the rows."""
        nothing = np.zeros(len(codes))
        return cls(normalised(raw, xp), codes, weight, nothing, nothing + LOWEST, xp=xp)

    @cached_property
    def own(self) -> FloatArray:
        """Entry of each row in the column of its true class."""
        codes = like(self.codes, self.raw, self.xp)
        own: FloatArray = to_host(own_entries(self.raw, codes, self.xp)).astype(np.float64)
        return np.maximum(own, self.floor)

    def dense(self) -> FloatArray:
        """Return the log-probabilities, on the host."""
        rows: FloatArray = to_host(self.raw).astype(np.float64)
        return np.maximum(rows, self.floor[:, None])

    def block(self, rows: slice) -> Any:
        """Return the log-probabilities of some rows, on the host."""
        part: FloatArray = to_host(self.raw[rows, :]).astype(np.float64)
        return np.maximum(part, self.floor[rows, None])

    def as_log_odds(self) -> DeviceRows:
        """Return the rows with log-odds in place of log-probabilities."""
        odds = log_odds(self.raw, self.xp)
        nothing = np.zeros(len(self.codes))
        return DeviceRows(odds, self.codes, self.weight, nothing, nothing - 1e30, xp=self.xp)

    def take(self, chosen: BoolArray) -> DeviceRows:
        """Return the rows where `chosen` is True."""
        some = np.flatnonzero(chosen)
        raw = self.xp.take(self.raw, like(some, self.raw, self.xp), axis=0)
        codes, weight = self.codes[chosen], self.weight[chosen]
        return DeviceRows(raw, codes, weight, self.shift[chosen], self.floor[chosen], xp=self.xp)

    def is_separated(self) -> bool:
        """Return True if every row's true class is the most probable one."""
        top = to_host(self.xp.max(self.raw, axis=1)).astype(np.float64)
        return not bool((top > self.own)[self.weight > 0].any())

    # ------------------------------------------------------------------ sums of the likelihood

    def class_sums(self, scale: FloatArray, bias: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and sums by class; see `Likelihood.class_sums`."""
        value, sums = 0.0, np.zeros((5, len(scale)))
        xp = self.xp
        for x, codes, weight in self._blocks():
            log_p = log_softmax(x * like(scale, x, xp) + like(bias, x, xp), xp)
            value -= float(self._sum(weight * own_entries(log_p, codes, xp)))
            p = xp.exp(log_p)
            q = weight[:, None] * p * (1.0 - p)
            p = weight[:, None] * p
            parts = [self._sum(each) for each in (p, p * x, q, q * x, q * x * x)]
            sums += to_host(xp.stack(parts))
        return value, sums

    def scale_sums(self, scale: float) -> tuple[float, float, float]:
        """Return the value and its derivatives in one scale; see `Likelihood.scale_sums`."""
        sums, xp = np.zeros(3), self.xp
        for x, codes, weight in self._blocks():
            log_p = log_softmax(x * scale, xp)
            p = xp.exp(log_p) * x
            mean = xp.sum(p, axis=1)
            parts = (
                -own_entries(log_p, codes, xp),
                mean - own_entries(x, codes, xp),
                xp.sum(p * x, axis=1) - mean * mean,
            )
            sums += to_host(xp.stack([self._sum(weight * each) for each in parts]))
        value, slope, curvature = sums.tolist()
        return value, slope, curvature

    def _sum(self, values: Any) -> Any:
        """Sum over rows in double precision: the noise of single precision would hide the optimum."""
        return self.xp.sum(values, axis=0, dtype=self.xp.float64)

    @cached_property
    def _columns(self) -> tuple[Any, Any]:
        """Codes and weights on the device."""
        return like(self.codes, self.raw, self.xp), like(self.weight, self.raw, self.xp)

    def _blocks(self) -> Any:
        codes, weight = self._columns
        n_rows, n_classes = self.shape
        for rows in row_slices(n_rows, rows_within(_BLOCK_BYTES, n_classes)):
            yield self.raw[rows, :], codes[rows], weight[rows]
