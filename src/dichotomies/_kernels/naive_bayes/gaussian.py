"""Means and centred second moments, combined up a tree, and the scores that follow from them.

Moments are combined by the formula of Chan, Golub & LeVeque (1979), which has no cancellation: with weights
``a`` and ``b`` and means that differ by ``d``, the centred second moments of the union are the sum of those
of the parts and ``d**2 * a * b / (a + b)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies._kernels.compile import kernel, vector_kernel

if TYPE_CHECKING:
    from dichotomies._typing import BoolArray, FloatArray, IntArray, Matrix


SMALL, LARGE = 1e-100, 1e100


@kernel
def group_moments(
    X: Matrix,
    rows: IntArray,
    weight: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    total: FloatArray,
    mean: FloatArray,
    moment: FloatArray,
) -> None:
    """Write weight, means and centred second moments of the rows of groups `first` to `last`.

    Parameters
    ----------
    rows, weight : (n_rows,)
        Row numbers sorted by group, and the weight of each, more than 0.
    offsets : (n_groups + 1,)
        Where each group begins in `rows`, and the end.
    total : (n_groups,)
    mean, moment : (n_groups, n_features)
        All three are zero before.
    """
    for group in range(first, last):
        for i in range(offsets[group], offsets[group + 1]):
            total[group] += weight[i]
            for j in range(X.shape[1]):
                mean[group, j] += weight[i] * X[rows[i], j]
        if total[group] > 0.0:
            for j in range(X.shape[1]):
                mean[group, j] /= total[group]
        for i in range(offsets[group], offsets[group + 1]):
            for j in range(X.shape[1]):
                distance = X[rows[i], j] - mean[group, j]
                moment[group, j] += weight[i] * distance * distance


@kernel
def absorb(
    weight: float,
    mean: FloatArray,
    moment: FloatArray,
    into_weight: float,
    into_mean: FloatArray,
    into_moment: FloatArray,
) -> float:
    """Combine one group into another and return its new weight."""
    both = weight + into_weight
    if weight > 0.0 and into_weight > 0.0:
        part, share = weight / both, weight * (into_weight / both)
        for j in range(len(mean)):
            distance = mean[j] - into_mean[j]
            into_mean[j] += part * distance
            into_moment[j] += moment[j] + share * distance * distance
    elif weight > 0.0:
        into_mean[:] = mean
        into_moment[:] = moment
    return both


@kernel
def leaf_moments(
    n_folds: int,
    left_out: int,
    total: FloatArray,
    mean: FloatArray,
    moment: FloatArray,
    leaf_total: FloatArray,
    leaf_mean: FloatArray,
    leaf_moment: FloatArray,
) -> None:
    """Combine the folds of each leaf, but for one; group ``leaf * n_folds + fold``. Outputs begin at zero."""
    for leaf in range(len(leaf_total)):
        for fold in range(n_folds):
            group = leaf * n_folds + fold
            if fold != left_out:
                leaf_total[leaf] = absorb(
                    total[group],
                    mean[group],
                    moment[group],
                    leaf_total[leaf],
                    leaf_mean[leaf],
                    leaf_moment[leaf],
                )


@kernel
def node_moments(
    left: IntArray,
    right: IntArray,
    leaf_total: FloatArray,
    leaf_mean: FloatArray,
    leaf_moment: FloatArray,
    total: FloatArray,
    mean: FloatArray,
    moment: FloatArray,
) -> None:
    """Combine the children of each node, from the leaves up; outputs have a row per node, zero before."""
    for k in range(len(left) - 1, -1, -1):
        for child in (left[k], right[k]):
            if child < 0:
                total[k] = absorb(
                    leaf_total[~child], leaf_mean[~child], leaf_moment[~child], total[k], mean[k], moment[k]
                )
            else:
                total[k] = absorb(total[child], mean[child], moment[child], total[k], mean[k], moment[k])


@kernel
def largest_variances(total: FloatArray, moment: FloatArray, out: FloatArray) -> None:
    """Write the largest variance of any feature at each node, 0 where there are no rows."""
    for k in range(len(total)):
        largest = 0.0
        for j in range(moment.shape[1]):
            largest = max(largest, moment[k, j])
        out[k] = largest / total[k] if total[k] > 0.0 else 0.0


@kernel
def side_parameters(
    child: IntArray,
    leaf_total: FloatArray,
    leaf_mean: FloatArray,
    leaf_moment: FloatArray,
    total: FloatArray,
    mean: FloatArray,
    moment: FloatArray,
    floor: FloatArray,
    is_trained: BoolArray,
    side_mean: FloatArray,
    half_precision: FloatArray,
    log_density: FloatArray,
) -> None:
    """Write what scores one side of each node: the mean and half the inverse variance of each feature.

    Parameters
    ----------
    child : (n_nodes,)
        The child on that side, ``~position`` where it is a leaf.
    floor : (n_nodes,)
        Added to the variances of a node.
    side_mean, half_precision : (n_nodes, n_features)
        Written; zero where a node is not trained.
    log_density : (n_nodes,)
        Written: half the sum of the logarithms of the precisions.
    """
    for k in range(len(child)):
        log_density[k] = 0.0
        if not is_trained[k]:
            side_mean[k] = 0.0
            half_precision[k] = 0.0
            continue
        c = ~child[k] if child[k] < 0 else child[k]
        weight = leaf_total[c] if child[k] < 0 else total[c]
        center = leaf_mean[c] if child[k] < 0 else mean[c]
        spread = leaf_moment[c] if child[k] < 0 else moment[c]
        product = 1.0
        for j in range(side_mean.shape[1]):
            variance = spread[j] / weight + floor[k]
            side_mean[k, j] = center[j]
            half_precision[k, j] = 0.5 / variance
            # One logarithm of a product costs less than those of its factors.
            if SMALL < product * variance < LARGE:
                product *= variance
            else:
                log_density[k] -= 0.5 * np.log(product)
                product = variance
        log_density[k] -= 0.5 * np.log(product)


@vector_kernel
def direct_score(x: Matrix, mean: FloatArray, half_precision: FloatArray) -> float:
    """Squared distance from the right side's mean less that from the left's; both have a row per side."""
    score = 0.0
    for j in range(len(x)):
        from_left, from_right = x[j] - mean[0, j], x[j] - mean[1, j]
        score += half_precision[1, j] * (from_right * from_right)
        score -= half_precision[0, j] * (from_left * from_left)
    return score


@kernel
def score_pairs(
    X: Matrix,
    rows: IntArray,
    nodes: IntArray,
    mean: FloatArray,
    half_precision: FloatArray,
    constant: FloatArray,
    out: FloatArray,
) -> None:
    """Score row ``rows[i]`` at node ``nodes[i]``; means and precisions are (n_nodes, 2, n_features)."""
    for i in range(len(rows)):
        k = nodes[i]
        out[i] = constant[k] + direct_score(X[rows[i]], mean[k], half_precision[k])


@kernel
def score_own_rows(
    X: Matrix,
    row_order: IntArray,
    folds: IntArray,
    fold: int,
    mean: FloatArray,
    half_precision: FloatArray,
    constant: FloatArray,
    is_trained: BoolArray,
    first: int,
    last: int,
    first_row: IntArray,
    pair_offsets: IntArray,
    out: FloatArray,
) -> None:
    """Score the rows of one fold at their own nodes `first` to `last`; all else in `out` stays as it is.

    Parameters
    ----------
    first_row : (n_nodes,)
        Where each node's rows begin in `row_order`.
    pair_offsets : (n_nodes + 1,)
        Where each node's scores begin in `out`, and the end.
    """
    for k in range(first, last):
        if not is_trained[k]:
            continue
        for place in range(pair_offsets[k], pair_offsets[k + 1]):
            row = row_order[first_row[k] + place - pair_offsets[k]]
            if folds[row] == fold:
                out[place] = constant[k] + direct_score(X[row], mean[k], half_precision[k])


@kernel
def expand(
    mean: FloatArray,
    half_precision: FloatArray,
    shift: FloatArray,
    steepest: float,
    square: FloatArray,
    linear: FloatArray,
    constant: FloatArray,
    n_steep: IntArray,
) -> None:
    """Write the coefficients of each node's score as a quadratic function of shifted features.

    Where a mean is so many standard deviations away from the shift that the terms of the square would
    cancel to rounding errors, it is left out and counted; see `add_steep`.

    Parameters
    ----------
    steepest : float
        The largest ``half_precision * mean**2`` to be expanded.
    square, linear : (n_features, n_nodes)
        Written.
    constant : (n_nodes,)
        Added to.
    n_steep : (n_features,)
        Written: how many squares were left out.
    """
    for j in range(len(shift)):
        n_steep[j] = 0
        for k in range(len(constant)):
            square[j, k] = linear[j, k] = 0.0
            for side in range(2):
                sign = -1.0 if side == 0 else 1.0
                m, h = mean[k, side, j] - shift[j], half_precision[k, side, j]
                if h * m * m > steepest:
                    n_steep[j] += 1
                else:
                    square[j, k] += sign * h
                    linear[j, k] -= sign * 2.0 * h * m
                    constant[k] += sign * h * m * m


@kernel
def list_steep(
    mean: FloatArray,
    half_precision: FloatArray,
    shift: FloatArray,
    steepest: float,
    offsets: IntArray,
    node: IntArray,
    center: FloatArray,
    slope: FloatArray,
) -> None:
    """Write the squares that `expand` left out, feature by feature; `slope` has the sign of their side."""
    for j in range(len(shift)):
        place = offsets[j]
        for k in range(len(mean)):
            for side in range(2):
                m, h = mean[k, side, j], half_precision[k, side, j]
                if h * (m - shift[j]) * (m - shift[j]) > steepest:
                    node[place], center[place] = k, m
                    slope[place] = -h if side == 0 else h
                    place += 1


@kernel
def add_steep(
    X: Matrix,
    offsets: IntArray,
    node: IntArray,
    center: FloatArray,
    slope: FloatArray,
    out: FloatArray,
) -> None:
    """Add the squares that `expand` left out to the scores (n_rows, n_nodes)."""
    for i in range(len(X)):
        row = out[i]
        for j in range(X.shape[1]):
            x = X[i, j]
            for place in range(offsets[j], offsets[j + 1]):
                distance = x - center[place]
                row[node[place]] += slope[place] * distance * distance
