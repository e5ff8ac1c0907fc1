"""Means and centred second moments of groups of rows, combined up a tree.

Moments are combined by the formula of Chan, Golub & LeVeque (1979), which has no cancellation: with weights
``a`` and ``b`` and means that differ by ``d``, the centred second moments of the union are the sum of those
of the parts and ``d**2 * a * b / (a + b)``.
"""

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies._kernels.compile import kernel, vector_kernel
from dichotomies._kernels.elementary import copy
from dichotomies._kernels.naive_bayes.class_counts import GroupedRows


class Moments(NamedTuple):
    """Weight, means and centred second moments of groups of rows, or of one group.

    Attributes
    ----------
    total : (n_groups,)
    mean, moment : (n_groups, n_features)
    """

    total: FloatArray
    mean: FloatArray
    moment: FloatArray


@kernel
def group_moments(X: Matrix, grouped: GroupedRows, first: int, last: int, out: Moments) -> None:
    """Write weight, means and centred second moments of the rows of groups `first` to `last`.

    Parameters
    ----------
    out : Moments
        Of all groups; must be zero on entry.
    """
    rows, weight, offsets = grouped
    total, mean, moment = out
    for group in range(first, last):
        center, spread = mean[group], moment[group]
        for i in range(offsets[group], offsets[group + 1]):
            total[group] += weight[i]
            add_scaled(weight[i], X[rows[i]], center)
        if total[group] > 0.0:
            for j in range(len(center)):
                center[j] /= total[group]
        for i in range(offsets[group], offsets[group + 1]):
            add_squares(weight[i], X[rows[i]], center, spread)


@vector_kernel
def add_scaled(weight: float, x: Matrix, out: FloatArray) -> None:
    """Add `weight` times `x`."""
    for j in range(len(out)):
        out[j] += weight * x[j]


@vector_kernel
def add_squares(weight: float, x: Matrix, center: FloatArray, out: FloatArray) -> None:
    """Add `weight` times the squared distances from `center`."""
    for j in range(len(out)):
        distance = x[j] - center[j]
        out[j] += weight * (distance * distance)


@group_moments.plainly
def _group_moments(X: Matrix, grouped: GroupedRows, first: int, last: int, out: Moments) -> None:
    rows, weight, offsets = grouped
    for group in range(first, last):
        own = slice(offsets[group], offsets[group + 1])
        some, w = X[rows[own]].astype(np.float64), weight[own]
        out.total[group] = w.sum()
        if out.total[group] > 0.0:
            out.mean[group] = w @ some / out.total[group]
        out.moment[group] = w @ (some - out.mean[group]) ** 2


@kernel
def group_of(moments: Moments, i: int) -> Moments:
    """Return the moments of one group."""
    return Moments(moments.total[i : i + 1], moments.mean[i], moments.moment[i])


@kernel
def child_moments(child: int, leaves: Moments, nodes: Moments) -> Moments:
    """Return the moments of a child, ``~position`` where it is a leaf."""
    return group_of(leaves, ~child) if child < 0 else group_of(nodes, child)


@kernel
def combine_into(group: Moments, into: Moments, i: int) -> None:
    """Combine a group into group `i` of others, whose mean and moment are ignored if its weight is 0."""
    weight, before = group.total[0], into.total[i]
    mean, moment, into_mean, into_moment = group.mean, group.moment, into.mean[i], into.moment[i]
    both = weight + before
    if before == 0.0:
        copy(mean, into_mean)
        copy(moment, into_moment)
    elif weight > 0.0:
        part, share = weight / both, weight * (before / both)
        for j in range(len(mean)):
            distance = mean[j] - into_mean[j]
            into_mean[j] += part * distance
            into_moment[j] += moment[j] + share * distance * distance
    into.total[i] = both


@combine_into.plainly
def _combine_into(group: Moments, into: Moments, i: int) -> None:
    weight, before = group.total[0], into.total[i]
    both = weight + before
    if before == 0.0:
        into.mean[i], into.moment[i] = group.mean, group.moment
    elif weight > 0.0:
        distance = group.mean - into.mean[i]
        into.mean[i] += weight / both * distance
        into.moment[i] += group.moment + weight * (before / both) * distance * distance
    into.total[i] = both


@kernel
def leaf_moments(n_folds: int, left_out: int, groups: Moments, leaves: Moments) -> None:
    """Combine all folds but one of each leaf; group ``leaf * n_folds + fold``."""
    leaves.total[:] = 0.0
    for leaf in range(len(leaves.total)):
        for fold in range(n_folds):
            if fold != left_out:
                combine_into(group_of(groups, leaf * n_folds + fold), leaves, leaf)


@leaf_moments.plainly
def _leaf_moments(n_folds: int, left_out: int, groups: Moments, leaves: Moments) -> None:
    """All leaves at once: deviations within folds, and of the means of folds from that of the leaf."""
    kept = np.arange(n_folds) != left_out
    total, mean, moment = (each.reshape(-1, n_folds, *each.shape[1:])[:, kept] for each in groups)
    is_empty = total == 0.0
    mean, moment = (np.where(is_empty[:, :, None], 0.0, each) for each in (mean, moment))
    leaves.total[:] = total.sum(axis=1)
    share = total / np.where(leaves.total > 0.0, leaves.total, 1.0)[:, None]
    leaves.mean[:] = np.einsum("lf,lfj->lj", share, mean)
    apart = mean - leaves.mean[:, None]
    leaves.moment[:] = moment.sum(axis=1) + np.einsum("lf,lfj->lj", total, apart * apart)


@kernel
def node_moments(left: IntArray, right: IntArray, leaves: Moments, nodes: Moments) -> None:
    """Combine the children of each node, from the leaves up."""
    nodes.total[:] = 0.0
    for k in range(len(left) - 1, -1, -1):
        combine_into(child_moments(left[k], leaves, nodes), nodes, k)
        combine_into(child_moments(right[k], leaves, nodes), nodes, k)
