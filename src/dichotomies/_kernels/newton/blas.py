"""Cholesky factors inside kernels: LAPACK as numba links it, working in place."""

from collections.abc import Callable
from typing import Any

import numpy as np

# Numba calls scipy's LAPACK; loaded here, it obeys limits on threads from the start.
from scipy.linalg.lapack import dpotrf

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.compile import compiled_as, vector_kernel

UPPER, DOUBLE = (np.int8(ord(letter)) for letter in "Ud")


def factorise(matrix: FloatArray) -> bool:
    """Overwrite the lower triangle of a matrix by its Cholesky factor; False if it has none."""
    matrix[:], info = dpotrf(matrix, lower=1, clean=0)
    return bool(info == 0)


@compiled_as(factorise)
def _factorise(matrix: Any) -> Callable[[Any], bool]:  # noqa: ARG001 - its type is always the same
    from numba import types

    routine: Any = types.ExternalFunction(
        "numba_xxpotrf",
        types.intc(types.char, types.char, types.intp, types.CPointer(types.float64), types.intp),  # type: ignore[no-untyped-call]
    )

    def call(matrix: Any) -> bool:
        # A row-major lower triangle is a column-major upper one.
        return bool(routine(DOUBLE, UPPER, len(matrix), matrix.ctypes, matrix.strides[0] // 8) == 0)

    return call


@vector_kernel
def solve_forward(factor: FloatArray, x: FloatArray) -> None:
    """Overwrite `x` by the solution of ``factor @ solution = x``, `factor` lower triangular."""
    for i in range(len(x)):
        total = x[i]
        row = factor[i]
        for j in range(i):
            total -= row[j] * x[j]
        x[i] = total / row[i]


@vector_kernel
def solve_backward(factor: FloatArray, x: FloatArray) -> None:
    """Overwrite `x` by the solution of ``factor.T @ solution = x``, `factor` lower triangular."""
    for i in range(len(x) - 1, -1, -1):
        row = factor[i]
        x[i] /= row[i]
        value = x[i]
        for j in range(i):
            x[j] -= row[j] * value
