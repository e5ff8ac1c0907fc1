"""The rule by which one of several ways is chosen from their losses on the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from dichotomies._common.typing import FloatArray

K = TypeVar("K")

_HUGE = 1e50


def best_of(losses: Mapping[K, FloatArray], weight: FloatArray) -> K:
    """Return the way of least mean loss, or the first one if the best is not clearly better than that.

    Clearly: by more than a standard error of the paired difference.

    Parameters
    ----------
    losses : mapping to arrays of shape (n,)
        Loss of each row by every way; the first is the simplest, which the others have to beat.
    weight : array of shape (n,)
        Weight of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies._common.best_of import best_of
    >>> nothing, little, much = np.ones(100), np.ones(100) - 0.01 * np.arange(-49, 51), np.full(100, 0.5)
    >>> best_of({"nothing": nothing, "little": little}, np.ones(100))
    'nothing'
    >>> best_of({"nothing": nothing, "little": little, "much": much}, np.ones(100))
    'much'
    """
    first, weight = next(iter(losses)), weight / _unit([weight])
    unit = _unit(losses.values())
    losses = {way: loss / unit for way, loss in losses.items()}
    total = max(float(weight.sum()), np.finfo(float).tiny)
    best = min(losses, key=lambda way: float(weight @ losses[way]))
    gain = losses[first] - losses[best]
    mean = float(weight @ gain) / total
    error = np.sqrt(float(weight @ (gain - mean) ** 2)) / total
    return best if mean > error else first


def _unit(arrays: Iterable[FloatArray]) -> float:
    """Divisor that keeps sums of products from overflowing; 1 unless the numbers are huge."""
    largest = max(float(np.abs(each).max(initial=0.0)) for each in arrays)
    return largest if largest > _HUGE else 1.0
