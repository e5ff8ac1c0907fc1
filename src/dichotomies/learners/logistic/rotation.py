"""Rows along their principal axes, where second derivatives at the nodes are nearly diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies._common.parallel import run
from dichotomies._kernels.newton.axes import Axes

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray

#: Rows per feature from which the axes are found; they need not be exact.
_ROWS_PER_FEATURE = 16

#: Rows that are turned at a time.
_CHUNK = 2048


def principal_axes(X: FloatArray, n_jobs: int | None) -> Axes:
    """Turn rows to their principal axes."""
    [(center, variance, basis)] = run(_find_axes, [(X,)], n_jobs=1)
    rows, single = np.empty(X.shape, dtype=np.float32), basis.astype(np.float32)

    def turn(first: int) -> float:
        centred = (X[first : first + _CHUNK] - center).astype(np.float32)
        np.dot(centred, single, out=rows[first : first + _CHUNK])
        return float(np.einsum("ij,ij->i", centred, centred).max())

    squares = run(turn, [(i,) for i in range(0, len(X), _CHUNK)], n_jobs=n_jobs, shared_memory=True)
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
