"""Sorting every segment of a flat array, in linear time where the scores are spread out."""

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel

#: Rows up to which insertion is the fastest way to sort.
FEW = 32


@kernel
def insert(values: FloatArray, order: IntArray) -> None:
    """Sort `values`, and `order` with them, by insertion: fast where few values are far from their place."""
    for i in range(1, len(values)):
        value, index, j = values[i], order[i], i
        while j > 0 and values[j - 1] > value:
            values[j], order[j] = values[j - 1], order[j - 1]
            j -= 1
        values[j], order[j] = value, index


@kernel
def spread(scores: FloatArray, values: FloatArray, order: IntArray) -> bool:
    """Put the scores into as many buckets of equal width as there are scores, bucket after bucket.

    Returns False, with nothing written, where more than a few fall into one bucket.
    """
    n, low = len(scores), scores.min()
    scale = (n - 1) / (scores.max() - low)
    if not 0.0 < scale < np.inf:
        return False
    ends = np.zeros(n + 1, np.intp)
    for i in range(n):
        ends[int((scores[i] - low) * scale) + 1] += 1
    if ends.max() > FEW:
        return False
    for i in range(n):
        ends[i + 1] += ends[i]
    for i in range(n):
        bucket = int((scores[i] - low) * scale)
        values[ends[bucket]], order[ends[bucket]] = scores[i], i
        ends[bucket] += 1
    return True


@kernel
def merge(values: FloatArray, order: IntArray) -> None:
    """Sort `values`, and `order` with them, by merging ever longer runs.

    numba's own ``argsort`` takes longer to compile than all the rest here.
    """
    n, length = len(values), 1
    new_values, new_order = np.empty(n), np.empty(n, np.intp)
    while length < n:
        for begin in range(0, n, 2 * length):
            middle, end = min(begin + length, n), min(begin + 2 * length, n)
            i, j = begin, middle
            for place in range(begin, end):
                if j >= end or (i < middle and values[i] <= values[j]):
                    new_values[place], new_order[place] = values[i], order[i]
                    i += 1
                else:
                    new_values[place], new_order[place] = values[j], order[j]
                    j += 1
        for i in range(n):
            values[i], order[i] = new_values[i], new_order[i]
        length *= 2


@kernel
def sort_segments(scores: FloatArray, offsets: IntArray, order: IntArray) -> None:
    """Write the indices (n,) of the rows, segment after segment, by increasing score in each.

    Buckets and then insertion; crowded scores, such as those with an outlier or many ties, by merging.
    Rows of equal score stay in their order.
    """
    for k in range(len(offsets) - 1):
        rows = slice(offsets[k], offsets[k + 1])
        own, place = scores[rows], order[rows]
        values = own.copy()
        for i in range(len(own)):
            place[i] = i
        if len(own) <= FEW or spread(own, values, place):
            insert(values, place)
        else:
            merge(values, place)
        for i in range(len(own)):
            place[i] += offsets[k]


@sort_segments.plainly
def _sort_segments(scores: FloatArray, offsets: IntArray, order: IntArray) -> None:
    segment = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order[:] = np.lexsort((scores, segment))
