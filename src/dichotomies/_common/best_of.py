"""The rule by which one of several ways is chosen from their losses on the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dichotomies._common.typing import FloatArray

K = TypeVar("K")


def best_of(losses: Mapping[K, FloatArray], weight: FloatArray, margin: float = 1.0) -> K:
    """Return the way of least mean loss, or the first one if the best is not clearly better than that.

    Parameters
    ----------
    losses : mapping to arrays of shape (n,)
        Loss of each row by every way; the first is the simplest, which the others have to beat.
    weight : array of shape (n,)
        Weight of each row.
    margin : float, default=1.0
        Standard errors of the paired difference by which the first way has to be beaten.

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
    first, largest = next(iter(losses)), float(weight.max(initial=0.0))
    unit = largest if largest > 1e100 else 1.0  # so that no sum overflows
    weight, total = weight / unit, max(float((weight / unit).sum()), np.finfo(float).tiny)
    best = min(losses, key=lambda way: float(weight @ losses[way]))
    gain = losses[first] - losses[best]
    mean = float(weight @ gain) / total
    error = np.sqrt(float(weight @ (gain - mean) ** 2)) / total
    return best if mean > margin * error else first
