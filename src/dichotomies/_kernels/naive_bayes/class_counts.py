"""Sums of features over groups of rows, such as the rows of one class in one fold."""

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies._kernels.compile import kernel


@kernel
def dense_group_sums(
    X: Matrix,
    rows: IntArray,
    weight: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    """Write the weighted sum of every feature over the rows of groups `first` to `last`.

    Parameters
    ----------
    rows, weight : (n_rows,)
        Row numbers sorted by group, and the weight of each.
    offsets : (n_groups + 1,)
        Start of each group in `rows`, and the end.
    out : (n_groups, n_features)
        Must be zero on entry.
    """
    for group in range(first, last):
        for i in range(offsets[group], offsets[group + 1]):
            for j in range(X.shape[1]):
                out[group, j] += weight[i] * X[rows[i], j]


@dense_group_sums.plainly
def _dense_group_sums(
    X: Matrix,
    rows: IntArray,
    weight: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    for group in range(first, last):
        own = slice(offsets[group], offsets[group + 1])
        out[group] = weight[own] @ X[rows[own]]


@kernel
def sum_active(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    rows: IntArray,
    weight: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    sizes: IntArray,
    entry_of: IntArray,
    feature: IntArray,
    count: FloatArray,
) -> int:
    """Write the active features of groups `first` to `last` of CSR rows, group after group; return how many.

    Parameters
    ----------
    sizes : (n_groups,)
        Written: the number of features that are nonzero in some row of each group.
    entry_of : (n_features,)
        Scratch; must be negative on entry.
    feature, count : (capacity,)
        Written: features of a group in the order in which they first occur, and their weighted sums.
    """
    end = 0
    for group in range(first, last):
        begin = end
        for i in range(offsets[group], offsets[group + 1]):
            for place in range(indptr[rows[i]], indptr[rows[i] + 1]):
                j = np.uintp(indices[place])
                if data[place] == 0:
                    continue
                if entry_of[j] < begin:
                    entry_of[j] = end
                    feature[end] = j
                    count[end] = 0.0
                    end += 1
                count[np.uintp(entry_of[j])] += weight[i] * data[place]
        sizes[group] = end - begin
    return end
