"""Scores of Gaussian naive Bayes: at every node a quadratic function of each feature."""

from typing import NamedTuple

from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies._kernels.compile import kernel, vector_kernel


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


@kernel
def score_pairs(
    X: Matrix, rows: IntArray, nodes: IntArray, scores: Quadratic, constant: FloatArray, out: FloatArray
) -> None:
    """Score row ``rows[i]`` at node ``nodes[i]``."""
    for i in range(len(rows)):
        k = nodes[i]
        out[i] = constant[k] + score_one(X[rows[i]], row_of(scores, k))


@kernel
def add_steep(X: Matrix, offsets: IntArray, node: IntArray, steep: Quadratic, out: FloatArray) -> None:
    """Add terms of some nodes, stored feature by feature, to the scores (n_rows, n_nodes)."""
    center, square, linear = steep
    for i in range(len(X)):
        row = out[i]
        for j in range(X.shape[1]):
            x = X[i, j]
            for place in range(offsets[j], offsets[j + 1]):
                y = x - center[place]
                row[node[place]] += (square[place] * y + linear[place]) * y
