"""Log-probabilities on a GPU: fitting and applying scales and biases where the arrays are.

Only sums by class, and the entries of the true classes, come to the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._common.array_api import like, log_softmax, own_entries, to_host
from dichotomies._common.chunks import row_slices, rows_within
from dichotomies.calibrators.multiclass._rows import LOWEST, CalibrationRows

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray

#: Bytes of log-probabilities that are evaluated at a time.
_BLOCK_BYTES = 2**29


def normalised(raw: Any, xp: Any) -> Any:
    """Return normalised, finite log-probabilities; raise if a row has none."""
    if not bool(xp.all(xp.isfinite(xp.max(raw, axis=1)))):
        raise ValueError("log_proba must hold natural logarithms of probabilities; a row has none, or NaN.")
    return xp.clip(log_softmax(raw, xp), LOWEST, None)


def log_odds(x: Any, xp: Any) -> Any:
    """Return log-odds of normalised log-probabilities; see `_rows.log_odds`."""
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

    @classmethod
    def on_device(cls, raw: Any, codes: IntArray, weight: FloatArray, xp: Any) -> DeviceRows:
        """Validate and normalise the rows."""
        return cls(normalised(raw, xp), codes, weight, np.zeros(len(codes)), np.full(len(codes), LOWEST), xp)

    @property
    def own(self) -> FloatArray:  # type: ignore[override]
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
        x = self.xp.maximum(self.raw, like(self.floor, self.raw, self.xp)[:, None])
        odds = log_odds(x, self.xp)
        return DeviceRows(odds, self.codes, self.weight, self.shift, np.full(len(self.codes), -1e30), self.xp)

    def take(self, chosen: BoolArray) -> DeviceRows:
        """Return the rows where `chosen` is True."""
        some = np.flatnonzero(chosen)
        raw = self.xp.take(self.raw, like(some, self.raw, self.xp), axis=0)
        codes, weight = self.codes[chosen], self.weight[chosen]
        return DeviceRows(raw, codes, weight, self.shift[chosen], self.floor[chosen], self.xp)

    # ------------------------------------------------------------------ sums of the likelihood

    def class_sums(self, scale: FloatArray, bias: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and sums by class; see `Likelihood.class_sums`."""
        value, sums = 0.0, np.zeros((5, len(scale)))
        xp = self.xp
        for x, codes, weight in self._blocks():
            log_p = log_softmax(x * like(scale, x, xp) + like(bias, x, xp), xp)
            value -= float(xp.sum(weight * own_entries(log_p, codes, xp)))
            p = xp.exp(log_p)
            q = p * (1.0 - p)
            parts = [weight @ each for each in (p, p * x, q, q * x, q * x * x)]
            sums += to_host(xp.stack(parts)).astype(np.float64)
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
            sums += to_host(xp.stack([weight @ each for each in parts])).astype(np.float64)
        value, slope, curvature = sums.tolist()
        return value, slope, curvature

    def _blocks(self) -> Any:
        n_rows, n_classes = self.shape
        for rows in row_slices(n_rows, rows_within(_BLOCK_BYTES, n_classes)):
            x = self.raw[rows, :]
            yield x, like(self.codes[rows], x, self.xp), like(self.weight[rows], x, self.xp)
