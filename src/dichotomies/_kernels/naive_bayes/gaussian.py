"""Gaussian naive Bayes at the nodes of a tree: scores as quadratic functions, and their evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dichotomies._kernels.compile import kernel, vector_kernel
from dichotomies._kernels.elementary import sum_of_logs
from dichotomies._kernels.naive_bayes.moments import child_moments

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies._kernels.naive_bayes.moments import Moments


class Quadratic(NamedTuple):
    """Scores of nodes, or of one node, as quadratic functions of each feature.

    A feature `x` adds ``(square * y + linear) * y`` with ``y = x - center``.

    Attributes
    ----------
    center, square, linear : (n_nodes, n_features)
    """

    center: FloatArray
    square: FloatArray
    linear: FloatArray


@kernel
def row_of(scores: Quadratic, k: int) -> Quadratic:
    """Return the terms of one node."""
    return Quadratic(scores.center[k], scores.square[k], scores.linear[k])


@vector_kernel
def half_precisions(moment: FloatArray, weight: float, floor: float, out: FloatArray) -> None:
    """Write half the inverse of each variance plus `floor`."""
    for j in range(len(out)):
        out[j] = 0.5 / (moment[j] / weight + floor)


@vector_kernel
def difference_of_squares(
    mean: FloatArray, other_mean: FloatArray, half: FloatArray, other_half: FloatArray, out: Quadratic
) -> float:
    """Write ``other_half * (x - other_mean)**2 - half * (x - mean)**2`` as a function of ``x - center``.

    The center is the mean of the steeper square, which then has no linear or constant term. No term exceeds
    a few times the larger of the two squares, for any `x`, so rounding errors are no larger than those of
    the squares. Loops are kept short, because loops over many arrays are not vectorised.

    Returns
    -------
    float
        The sum of the constant terms.
    """
    center, square, linear = out
    for j in range(len(center)):
        center[j] = mean[j] if half[j] >= other_half[j] else other_mean[j]
    for j in range(len(center)):
        square[j] = other_half[j] - half[j]
    constant = 0.0
    for j in range(len(center)):
        distance = other_mean[j] - mean[j]
        slope = min(half[j], other_half[j]) * distance
        linear[j] = -2.0 * slope
        constant += slope * distance if half[j] >= other_half[j] else -slope * distance
    return constant


@kernel
def node_parameters(
    left: IntArray,
    right: IntArray,
    leaves: Moments,
    nodes: Moments,
    floor: FloatArray,
    is_trained: BoolArray,
    out: Quadratic,
    constant: FloatArray,
) -> None:
    """Write the quadratic terms of each node, zero where it is not trained.

    Parameters
    ----------
    left, right : (n_nodes,)
        Children, ``~position`` where a child is a leaf.
    floor : (n_nodes,)
        Added to the variances of a node.
    constant : (n_nodes,)
        Written: the constant term of the log-odds without the prior.
    """
    n_features = out.center.shape[1]
    half, other_half = np.empty(n_features), np.empty(n_features)
    for k in range(len(left)):
        row = row_of(out, k)
        constant[k] = 0.0
        if not is_trained[k]:
            row.center[:] = row.square[:] = row.linear[:] = 0.0
            continue
        a, b = child_moments(left[k], leaves, nodes), child_moments(right[k], leaves, nodes)
        half_precisions(a.moment, a.total[0], floor[k], half)
        half_precisions(b.moment, b.total[0], floor[k], other_half)
        constant[k] = 0.5 * (sum_of_logs(half) - sum_of_logs(other_half))
        constant[k] += difference_of_squares(a.mean, b.mean, half, other_half, row)


@vector_kernel
def score_one(x: Matrix, node: Quadratic) -> float:
    """Score a row at a node, without the constant."""
    center, square, linear = node
    total = 0.0
    for j in range(len(center)):
        y = x[j] - center[j]
        total += (square[j] * y + linear[j]) * y
    return total


@vector_kernel
def score_four(
    a: Matrix, b: Matrix, c: Matrix, d: Matrix, node: Quadratic
) -> tuple[float, float, float, float]:
    """Score four rows as `score_one` does, reading the node once."""
    center, square, linear = node
    total_a = total_b = total_c = total_d = 0.0
    for j in range(len(center)):
        m, q, p = center[j], square[j], linear[j]
        y_a, y_b, y_c, y_d = a[j] - m, b[j] - m, c[j] - m, d[j] - m
        total_a += (q * y_a + p) * y_a
        total_b += (q * y_b + p) * y_b
        total_c += (q * y_c + p) * y_c
        total_d += (q * y_d + p) * y_d
    return total_a, total_b, total_c, total_d


@kernel
def score_pairs(
    X: Matrix, rows: IntArray, nodes: IntArray, scores: Quadratic, constant: FloatArray, out: FloatArray
) -> None:
    """Score row ``rows[i]`` at node ``nodes[i]``."""
    for i in range(len(rows)):
        k = nodes[i]
        out[i] = constant[k] + score_one(X[rows[i]], row_of(scores, k))


@kernel
def score_rows(
    X: Matrix,
    row_order: IntArray,
    places: IntArray,
    node: Quadratic,
    constant: float,
    shift: int,
    out: FloatArray,
) -> None:
    """Score the rows at `places` of `row_order`, and write them to ``places + shift`` of `out`."""
    last = len(places) - len(places) % 4
    for i in range(0, last, 4):
        a, b, c, d = places[i], places[i + 1], places[i + 2], places[i + 3]
        four = X[row_order[a]], X[row_order[b]], X[row_order[c]], X[row_order[d]]
        score_a, score_b, score_c, score_d = score_four(*four, node)
        out[a + shift], out[b + shift] = constant + score_a, constant + score_b
        out[c + shift], out[d + shift] = constant + score_c, constant + score_d
    for i in range(last, len(places)):
        out[places[i] + shift] = constant + score_one(X[row_order[places[i]]], node)


@kernel
def score_own_rows(
    X: Matrix,
    row_order: IntArray,
    folds: IntArray,
    fold: int,
    scores: Quadratic,
    constant: FloatArray,
    is_trained: BoolArray,
    leaf_offset: IntArray,
    leaf_parent: IntArray,
    parent: IntArray,
    pair_of_place: IntArray,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    """Score the rows of one fold and of leaves `first` to `last` at all their ancestors.

    Leaves are scored one by one, so that their rows and most of their ancestors stay in cache.

    Parameters
    ----------
    row_order : (n_rows,)
        Row numbers sorted by leaf, delimited by `leaf_offset`.
    leaf_parent, parent : (n_leaves,), (n_nodes,)
        The node above, -1 above the root.
    pair_of_place : (n_nodes,)
        Offset from a place in `row_order` to the place of the row's score at a node in `out`.
    """
    for leaf in range(first, last):
        mine = np.empty(leaf_offset[leaf + 1] - leaf_offset[leaf], np.intp)
        n = 0
        for place in range(leaf_offset[leaf], leaf_offset[leaf + 1]):
            if folds[row_order[place]] == fold:
                mine[n] = place
                n += 1
        k = leaf_parent[leaf] if n > 0 else -1
        while k >= 0:
            if is_trained[k]:
                node, shift = row_of(scores, k), pair_of_place[k]
                score_rows(X, row_order, mine[:n], node, constant[k], shift, out)
            k = parent[k]


@kernel
def expand(
    scores: Quadratic, shift: FloatArray, steepest: float, square: FloatArray, linear: FloatArray,
    constant: FloatArray, n_steep: IntArray,
) -> None:  # fmt: skip
    """Write the coefficients of each node's score as a quadratic function of features less a common shift.

    A feature whose center is too many standard deviations from the shift, so that expanded terms would cancel
    to rounding errors, is left out and counted; see `add_steep`.

    Parameters
    ----------
    steepest : float
        The largest term to be expanded.
    square, linear : (n_features, n_nodes)
        Written.
    constant : (n_nodes,)
        Added to.
    n_steep : (n_features,)
        Written: the number of nodes at which each feature was left out.
    """
    for j in range(len(shift)):
        n_steep[j] = 0
        for k in range(len(constant)):
            away, q, p = scores.center[k, j] - shift[j], scores.square[k, j], scores.linear[k, j]
            if is_steep(away, q, p, steepest):
                n_steep[j] += 1
                square[j, k] = linear[j, k] = 0.0
            else:
                square[j, k] = q
                linear[j, k] = p - 2.0 * q * away
                constant[k] += (q * away - p) * away


@kernel
def is_steep(away: float, square: float, linear: float, steepest: float) -> bool:
    """Return True if a term is too large to be expanded at distance `away` from its center."""
    return max(abs(square * away), abs(linear)) * abs(away) > steepest


@kernel
def list_steep(
    scores: Quadratic, shift: FloatArray, steepest: float, offsets: IntArray, node: IntArray, steep: Quadratic
) -> None:
    """Write the terms that `expand` left out, feature by feature."""
    for j in range(len(shift)):
        place = offsets[j]
        for k in range(len(scores.center)):
            center, q, p = scores.center[k, j], scores.square[k, j], scores.linear[k, j]
            if is_steep(center - shift[j], q, p, steepest):
                node[place] = k
                steep.center[place], steep.square[place], steep.linear[place] = center, q, p
                place += 1


@kernel
def add_steep(X: Matrix, offsets: IntArray, node: IntArray, steep: Quadratic, out: FloatArray) -> None:
    """Add the terms that `expand` left out to the scores (n_rows, n_nodes)."""
    center, square, linear = steep
    for i in range(len(X)):
        row = out[i]
        for j in range(X.shape[1]):
            x = X[i, j]
            for place in range(offsets[j], offsets[j + 1]):
                y = x - center[place]
                row[node[place]] += (square[place] * y + linear[place]) * y
