"""Sums of features over groups of rows, such as the rows of one class in one fold."""

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies._kernels.compile import kernel


class GroupedRows(NamedTuple):
    """Rows sorted by group, without rows of zero weight.

    Attributes
    ----------
    rows, weight : (n_kept_rows,)
        Row numbers, in their original order within a group, and their weights, greater than 0.
    offsets : (n_groups + 1,)
        Start of each group in `rows`, and the end.
    """

    rows: IntArray
    weight: FloatArray
    offsets: IntArray


@kernel
def dense_group_sums(X: Matrix, grouped: GroupedRows, first: int, last: int, out: FloatArray) -> None:
    """Write the weighted sum of every feature over the rows of groups `first` to `last`.

    Parameters
    ----------
    out : (n_groups, n_features)
        Must be zero on entry.
    """
    rows, weight, offsets = grouped
    for group in range(first, last):
        for i in range(offsets[group], offsets[group + 1]):
            for j in range(X.shape[1]):
                out[group, j] += weight[i] * X[rows[i], j]


@dense_group_sums.plainly
def _dense_group_sums(X: Matrix, grouped: GroupedRows, first: int, last: int, out: FloatArray) -> None:
    rows, weight, offsets = grouped
    for group in range(first, last):
        own = slice(offsets[group], offsets[group + 1])
        out[group] = weight[own] @ X[rows[own]]


@kernel
def sum_active(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    grouped: GroupedRows,
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
    rows, weight, offsets = grouped
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
