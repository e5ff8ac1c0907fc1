"""The rule by which one of several ways is chosen from their losses on the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray


def gather(arrays: Sequence[npt.NDArray[Any]], places: IntArray) -> npt.NDArray[Any]:
    """Take entries of the arrays, one after the other, without joining them first.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies._common.best_of import gather
    >>> gather([np.array([5, 6]), np.array([7, 8, 9])], np.array([4, 0, 2]))
    array([9, 5, 7])
    """
    out = np.empty((len(places), *arrays[0].shape[1:]), dtype=np.result_type(*arrays))
    begin = 0
    for array in arrays:
        mine = (begin <= places) & (places < begin + len(array))
        out[mine] = array[places[mine] - begin]
        begin += len(array)
    return out


def take_segments(offsets: IntArray, taken: IntArray) -> tuple[IntArray, Any]:
    """Concatenate some segments: return their new offsets and the indices of their entries.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies._common.best_of import take_segments
    >>> take_segments(np.array([0, 2, 3, 6]), np.array([2, 0]))
    (array([0, 3, 5]), array([3, 4, 5, 0, 1]))
    """
    size = np.diff(offsets)[taken]
    ends = np.cumsum(size)
    places = np.repeat(offsets[taken] - (ends - size), size) + np.arange(size.sum())
    return np.concatenate([[0], ends]), places


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
    first = next(iter(losses))
    losses, weight = _scaled(losses, weight)
    best = min(losses, key=lambda way: float(weight @ losses[way]))
    mean, error = _gain(losses[first], losses[best], weight)
    return best if mean > error else first


def simplest_of(losses: Mapping[K, FloatArray], weight: FloatArray, share: float) -> K:
    """Return the first way whose mean loss is not clearly above the least: see `best_of`, and by `share`.

    Parameters
    ----------
    losses, weight
        See `best_of`; the simplest way first.
    share : float
        Part of the least mean loss that a simpler way may cost, however large the standard error is.
    """
    losses, weight = _scaled(losses, weight)
    best = min(losses, key=lambda way: float(weight @ losses[way]))
    most = share * float(weight @ losses[best]) / _total(weight)
    gains = {way: _gain(loss, losses[best], weight) for way, loss in losses.items()}
    return next(way for way, (mean, error) in gains.items() if mean <= min(error, most))


def _scaled(losses: Mapping[K, FloatArray], weight: FloatArray) -> tuple[dict[K, FloatArray], FloatArray]:
    unit = _unit(losses.values())
    return {way: loss / unit for way, loss in losses.items()}, weight / _unit([weight])


def _gain(loss: FloatArray, best: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return the mean difference, and its standard error."""
    gain = loss - best
    mean = float(weight @ gain) / _total(weight)
    return mean, float(np.sqrt(float(weight @ (gain - mean) ** 2))) / _total(weight)


def _total(weight: FloatArray) -> float:
    return max(float(weight.sum()), np.finfo(float).tiny)


def _unit(arrays: Iterable[FloatArray]) -> float:
    """Divisor that keeps sums of products from overflowing; 1 unless the numbers are huge."""
    largest = max(float(np.abs(each).max(initial=0.0)) for each in arrays)
    return largest if largest > _HUGE else 1.0
