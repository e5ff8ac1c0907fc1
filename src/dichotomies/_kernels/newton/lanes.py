"""Sparse rows and the weights of one or four members, which lie side by side.

A row is read once for all members. Their weights are an array (p + 1,), or (p + 1, 4), as many as a
vector register has doubles; the last ones are the intercepts.
"""

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.compile import compiled_as, vector_kernel

#: Members whose weights lie side by side.
LANES = 4

#: Bytes of a cache line.
_LINE = 64


def prefetch(array: Any, place: Any) -> None:
    """Ask for the cache line of an entry of a contiguous array; the interpreter has no need to."""


@compiled_as(prefetch)
def _prefetch(array: Any, place: Any) -> Any:  # noqa: ARG001 - the same for all types
    from dichotomies._kernels.newton.prefetching import prefetch_line

    def call(array: Any, place: Any) -> None:
        prefetch_line(array, place)

    return call


@vector_kernel
def prefetch_row(X: Any, state: FloatArray, i: int) -> None:
    """Ask for a row and its state."""
    data, columns, indptr = X
    for place in range(indptr[i], indptr[i + 1], np.uint64(_LINE // data.itemsize)):
        prefetch(data, place)
    for place in range(indptr[i], indptr[i + 1], np.uint64(_LINE // columns.itemsize)):
        prefetch(columns, place)
    width = state.shape[1]
    for place in range(i * width, (i + 1) * width, _LINE // state.itemsize):
        prefetch(state, np.uintp(place))


def _score_one(X: Any, i: Any, w: Any, out: Any) -> None:
    data, columns, indptr = X
    total = w[-1]
    for place in range(indptr[i], indptr[i + 1]):
        total += data[place] * w[columns[place]]
    out[0] = total


def _score_four(X: Any, i: Any, w: Any, out: Any) -> None:
    data, columns, indptr = X
    a, b, c, d = w[-1, 0], w[-1, 1], w[-1, 2], w[-1, 3]
    for place in range(indptr[i], indptr[i + 1]):
        x, j = data[place], columns[place]
        a += x * w[j, 0]
        b += x * w[j, 1]
        c += x * w[j, 2]
        d += x * w[j, 3]
    out[0], out[1], out[2], out[3] = a, b, c, d


def _add_one(X: Any, i: Any, pull: Any, w: Any) -> None:
    data, columns, indptr = X
    a = pull[0]
    for place in range(indptr[i], indptr[i + 1]):
        w[columns[place]] += a * data[place]


def _add_four(X: Any, i: Any, pull: Any, w: Any) -> None:
    data, columns, indptr = X
    a, b, c, d = pull[0], pull[1], pull[2], pull[3]
    for place in range(indptr[i], indptr[i + 1]):
        x, j = data[place], columns[place]
        w[j, 0] += x * a
        w[j, 1] += x * b
        w[j, 2] += x * c
        w[j, 3] += x * d


def score_row(X: Any, i: Any, w: Any, out: Any) -> None:
    """Write a row's score by each member: ``x' w + b``."""
    (_score_one if w.ndim == 1 else _score_four)(X, i, w, out)


@compiled_as(score_row)
def _score_row(X: Any, i: Any, w: Any, out: Any) -> Any:  # noqa: ARG001 - it depends on the lanes alone
    return _score_one if w.ndim == 1 else _score_four


def add_row(X: Any, i: Any, pull: Any, w: Any) -> None:
    """Add a row times each member's pull to its weights, but not to the intercept."""
    (_add_one if w.ndim == 1 else _add_four)(X, i, pull, w)


@compiled_as(add_row)
def _add_row(X: Any, i: Any, pull: Any, w: Any) -> Any:  # noqa: ARG001 - it depends on the lanes alone
    return _add_one if w.ndim == 1 else _add_four
