"""Entries of several arrays that follow one another, and segments of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import IntArray


def gather(arrays: Sequence[npt.NDArray[Any]], places: IntArray) -> npt.NDArray[Any]:
    """Take entries of the arrays, one after the other, without joining them first.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies._common.gathering import gather
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
    >>> from dichotomies._common.gathering import take_segments
    >>> take_segments(np.array([0, 2, 3, 6]), np.array([2, 0]))
    (array([0, 3, 5]), array([3, 4, 5, 0, 1]))
    """
    size = np.diff(offsets)[taken]
    ends = np.cumsum(size)
    places = np.repeat(offsets[taken] - (ends - size), size) + np.arange(size.sum())
    return np.concatenate([[0], ends]), places
