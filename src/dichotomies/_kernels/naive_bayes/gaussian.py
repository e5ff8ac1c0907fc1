"""Gaussian naive Bayes at the nodes of a tree: scores as quadratic functions, and their evaluation."""

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies._kernels.compile import kernel, vector_kernel
from dichotomies._kernels.elementary import sum_of_logs
from dichotomies._kernels.naive_bayes.moments import Moments, child_moments


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


@half_precisions.plainly
def _half_precisions(moment: FloatArray, weight: float, floor: float, out: FloatArray) -> None:
    out[:] = 0.5 / (moment / weight + floor)


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


@difference_of_squares.plainly
def _difference_of_squares(
    mean: FloatArray, other_mean: FloatArray, half: FloatArray, other_half: FloatArray, out: Quadratic
) -> float:
    is_steeper, distance = half >= other_half, other_mean - mean
    slope = np.minimum(half, other_half) * distance
    out.center[:] = np.where(is_steeper, mean, other_mean)
    out.square[:] = other_half - half
    out.linear[:] = -2.0 * slope
    return float((np.where(is_steeper, slope, -slope) * distance).sum())


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
            row.center[:] = 0.0
            row.square[:] = 0.0
            row.linear[:] = 0.0
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


@score_one.plainly
def _score_one(x: Matrix, node: Quadratic) -> float:
    y = x - node.center
    return float(((node.square * y + node.linear) * y).sum())


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


@score_pairs.plainly
def _score_pairs(
    X: Matrix, rows: IntArray, nodes: IntArray, scores: Quadratic, constant: FloatArray, out: FloatArray
) -> None:
    y = X[rows] - scores.center[nodes]
    out[:] = constant[nodes] + ((scores.square[nodes] * y + scores.linear[nodes]) * y).sum(axis=1)


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


@score_own_rows.plainly
def _score_own_rows(
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
    is_mine = folds[row_order] == fold
    begin: dict[int, int] = {}  # places of each node's rows, which follow each other
    end: dict[int, int] = {}
    for leaf in range(first, last):
        k = leaf_parent[leaf]
        while k >= 0:
            begin.setdefault(k, leaf_offset[leaf])
            end[k] = leaf_offset[leaf + 1]
            k = parent[k]
    for k, start in begin.items():
        if is_trained[k]:
            places = start + np.flatnonzero(is_mine[start : end[k]])
            node = row_of(scores, k)
            y = X[row_order[places]] - node.center
            out[places + pair_of_place[k]] = constant[k] + ((node.square * y + node.linear) * y).sum(axis=1)


def are_steep(scores: Quadratic, shift: FloatArray, steepest: float) -> BoolArray:
    """Mark the terms (n_nodes, n_features) that are too large to be expanded around a point.

    There the center is so many standard deviations away that terms would cancel to rounding errors; see
    `add_steep`.
    """
    away = scores.center - shift
    largest = np.maximum(np.abs(scores.square * away), np.abs(scores.linear))
    return np.asarray(largest * np.abs(away) > steepest)


def expand(scores: Quadratic, shift: FloatArray, is_steep: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of each node's score as a quadratic function of the shifted features.

    Those of the squares and of the features themselves (2 n_features, n_nodes), and the constant (n_nodes,);
    without the steep terms.
    """
    away, q, p = scores.center - shift, scores.square, scores.linear
    terms = q, p - 2.0 * q * away, (q * away - p) * away
    square, linear, constant = (np.where(is_steep, 0.0, term) for term in terms)
    # C order: how BLAS sums a row of the product then depends less on how many rows there are
    return np.ascontiguousarray(np.concatenate([square.T, linear.T])), constant.sum(axis=1)


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


@add_steep.plainly
def _add_steep(X: Matrix, offsets: IntArray, node: IntArray, steep: Quadratic, out: FloatArray) -> None:
    for j in np.flatnonzero(np.diff(offsets)):
        own = slice(offsets[j], offsets[j + 1])
        y = X[:, j, None] - steep.center[own]
        out[:, node[own]] += (steep.square[own] * y + steep.linear[own]) * y
