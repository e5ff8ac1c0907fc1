"""Nodes on dense rows by kernels.

Large nodes are solved along the principal axes of all rows, where second derivatives are nearly diagonal;
nodes with fewer rows than features by the products of their rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies._common.chunks import row_slices
from dichotomies._common.parallel import run
from dichotomies._kernels.newton.axes import Axes, train_along_axes
from dichotomies._kernels.newton.gram import FEW_ROWS, train_by_gram

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies._kernels.newton.node import Results
    from dichotomies.learners.logistic.training import NodeTraining

#: Single precision does down to this tol, and for features up to this size.
_LOOSE_TOL, _LARGEST = 1e-5, 1e15

#: Turning rows to their principal axes is work of 1 per number and axis, finding the axes so much per number
#: of their matrix and axis; and so much is saved per number in the rows of a node.
_FINDING, _SAVING = 32, 256

#: Rows times features of a node up to which matrices of second derivatives cost next to nothing.
SMALL_NODE = 10_000

#: Rows beyond which no Gram matrix of them is made.
MOST_GRAM_ROWS = 1500

#: Rows per feature from which the axes are found; they need not be exact.
_ROWS_PER_FEATURE = 16

#: Rows that are turned at a time.
_CHUNK = 2048


def large_nodes(training: NodeTraining) -> BoolArray:
    """Mark the nodes that are solved along the principal axes, where these suit."""
    size = training.task.node_size
    return (size > FEW_ROWS) & (size * training.task.rows.n_features > SMALL_NODE)


def by_kernels(training: NodeTraining, which: IntArray, results: Results, weights: FloatArray) -> IntArray:
    """Train nodes, each by the kernel it suits; return those that none solved.

    Parameters
    ----------
    weights : (n_kept, n_nodes, n_features)
        Written.
    """
    left = along_axes(training, which, results, weights)
    if not len(left):  # then the rows need not be sorted
        return left
    left = by_gram(training, left, training.X, results, weights)
    return training.by_rows(left, training.X, results, weights)


def along_axes(training: NodeTraining, which: IntArray, results: Results, weights: FloatArray) -> IntArray:
    """Train large nodes in single precision; return those that are left to others."""
    is_large = large_nodes(training)[which]
    if not is_large.any() or training.axes is None:
        return which
    axes, chosen, along = training.axes, which[is_large], np.zeros(weights.shape)
    given = training.nodes, training.objective, results, along
    training.in_batches(chosen, lambda some: train_along_axes(some, axes, *given))
    failed = (results.n_steps[:, chosen] < 0).any(axis=0)
    for member in range(training.n_kept):
        # all at once: the last bit of a product depends on how many there are
        turned = along[member, chosen] @ axes.basis.T
        weights[member, chosen[~failed]] = turned[~failed]
    return np.concatenate([which[~is_large], chosen[failed]])


def suitable_axes(training: NodeTraining) -> Axes | None:
    """The rows along their principal axes; None if that does not suit or pay."""
    rows, n_jobs = training.task.rows, training.context.n_jobs
    if not large_nodes(training).any() or not _suits_axes(training, rows.X):
        return None
    axes: Axes = rows.remember("principal axes", lambda: principal_axes(rows.X, n_jobs))
    return axes


def _suits_axes(training: NodeTraining, X: FloatArray) -> bool:
    """Test that single precision will do, and turning rows to their axes is less work than it saves."""
    n, p = X.shape
    if not training.settings.free_intercept or training.settings.tol < _LOOSE_TOL:
        return False
    pays = p * (n + _FINDING * p) < _SAVING * training.task.node_size.sum()
    return bool(pays and max(X.max(), -X.min()) < _LARGEST)


def by_gram(
    training: NodeTraining, which: IntArray, X: FloatArray, results: Results, weights: FloatArray
) -> IntArray:
    """Train nodes with fewer rows than features; return those that are left to others."""
    fits = training.task.node_size[which] <= min(X.shape[1], MOST_GRAM_ROWS)
    given = X, training.nodes, training.objective, results, weights
    training.in_batches(which[fits], lambda some: train_by_gram(some, *given))
    left: IntArray = which[~fits]
    return left


def principal_axes(X: FloatArray, n_jobs: int | None) -> Axes:
    """Turn rows to their principal axes."""
    [(center, variance, basis)] = run(_find_axes, [(X,)], n_jobs=1)
    rows, single = np.empty(X.shape, dtype=np.float32), basis.astype(np.float32)

    def turn(part: slice) -> float:
        centred = (X[part] - center).astype(np.float32)
        np.dot(centred, single, out=rows[part])
        return float(np.einsum("ij,ij->i", centred, centred).max())

    squares = run(turn, [(part,) for part in row_slices(len(X), _CHUNK)], n_jobs=n_jobs, shared_memory=True)
    return Axes(
        rows, variance, basis, center @ basis, float(np.abs(center).max()), float(max(squares)) ** 0.5
    )


def _find_axes(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mean row, and the variances along the axes and the axes themselves, in columns."""
    n, p = X.shape
    sample = X[:: max(1, n // (_ROWS_PER_FEATURE * p))].astype(np.float64)
    center = sample.mean(axis=0)
    sample -= center
    variance, basis = np.linalg.eigh(sample.T @ sample / len(sample))
    return center, np.maximum(variance, 0.0), np.ascontiguousarray(basis)
