"""Sums of features over groups of rows, such as the rows of one class in one fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies._kernels.compile import kernel

if TYPE_CHECKING:
    from dichotomies._typing import FloatArray, IntArray, Matrix


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
        Where each group begins in `rows`, and the end.
    out : (n_groups, n_features)
        Zero before.
    """
    for group in range(first, last):
        for i in range(offsets[group], offsets[group + 1]):
            for j in range(X.shape[1]):
                out[group, j] += weight[i] * X[rows[i], j]


@kernel
def count_active(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    rows: IntArray,
    offsets: IntArray,
    first: int,
    last: int,
    n_features: int,
    out: IntArray,
) -> None:
    """Write how many features are other than zero in some CSR row of each group."""
    last_seen = np.full(n_features, -1, np.int32)
    for group in range(first, last):
        active = 0
        for i in range(offsets[group], offsets[group + 1]):
            for place in range(indptr[rows[i]], indptr[rows[i] + 1]):
                j = indices[place]
                if data[place] != 0 and last_seen[j] != group:
                    last_seen[j] = group
                    active += 1
        out[group] = active


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
    n_features: int,
    active_offsets: IntArray,
    feature: IntArray,
    count: FloatArray,
) -> None:
    """Write the active features of each group of CSR rows and their weighted sums.

    Parameters
    ----------
    active_offsets : (n_groups + 1,)
        Where the features of each group begin, as `count_active` found.
    feature, count : (n_active,)
        Written: features of a group in the order in which they first occur.
    """
    last_seen = np.full(n_features, -1, np.int32)
    entry_of = np.empty(n_features, np.int64)
    for group in range(first, last):
        end = active_offsets[group]
        for i in range(offsets[group], offsets[group + 1]):
            for place in range(indptr[rows[i]], indptr[rows[i] + 1]):
                j = indices[place]
                if data[place] == 0:
                    continue
                if last_seen[j] != group:
                    last_seen[j] = group
                    entry_of[j] = end
                    feature[end] = j
                    count[end] = 0.0
                    end += 1
                count[entry_of[j]] += weight[i] * data[place]


@kernel
def by_feature(
    active_offsets: IntArray,
    feature: IntArray,
    count: FloatArray,
    folds: int,
    feature_offsets: IntArray,
    leaf: IntArray,
    leaf_count: FloatArray,
) -> None:
    """Sort the counts of groups by feature, and by leaf within a feature.

    Parameters
    ----------
    folds : int
        Group ``g`` is fold ``g % folds`` of leaf ``g // folds``.
    feature_offsets : (n_features + 1,)
        Where the counts of each feature begin, and the end.
    leaf, leaf_count : (n_active,)
        Written.
    """
    cursor = feature_offsets[:-1].copy()
    for group in range(len(active_offsets) - 1):
        for entry in range(active_offsets[group], active_offsets[group + 1]):
            place = cursor[feature[entry]]
            cursor[feature[entry]] += 1
            leaf[place] = group // folds
            leaf_count[place] = count[entry]
