"""Dense linear algebra inside kernels: BLAS and LAPACK as numba links them, working in place.

numba's ``np.linalg`` copies its arguments and ``np.dot`` cannot add to a matrix or work on part of one, so
the routines behind them are called by name; that way kernels can still be kept on disk.
"""

# ruff: noqa: ARG001 - overloads look at the types of some arguments only

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

# What numba calls is scipy's BLAS; loaded here, it obeys limits on threads from the start.
import scipy.linalg.cython_blas
import scipy.linalg.cython_lapack  # noqa: F401
from numba import types
from numba.extending import overload

from dichotomies._kernels.compile import vector_kernel

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray

N, T, UPPER = (np.int8(ord(letter)) for letter in "ntU")

#: Columns per block of a symmetric product: only blocks on and below the diagonal are computed.
BLOCK = 96


def _matrix_product(dtype: Any) -> Any:
    pointer = types.CPointer(dtype)  # type: ignore[no-untyped-call]
    signature = types.intc(
        *(types.char,) * 3, *(types.intp,) * 3, pointer, pointer, types.intp, pointer, types.intp, pointer,
        pointer, types.intp,
    )  # fmt: skip
    return types.ExternalFunction("numba_xxgemm", signature)


_gemm64, _gemm32 = _matrix_product(types.float64), _matrix_product(types.float32)
_potrf: Any = types.ExternalFunction(
    "numba_xxpotrf",
    types.intc(types.char, types.char, types.intp, types.CPointer(types.float64), types.intp),  # type: ignore[no-untyped-call]
)
_D, _S = np.int8(ord("d")), np.int8(ord("s"))


def _gemm(
    transposed_a: Any, transposed_b: Any, m: Any, n: Any, k: Any, one: Any, a: Any, b: Any, c: Any
) -> None:
    """``c += op(a) op(b)`` of column-major matrices, each an array whose rows are BLAS's columns.

    `one` is an array that holds 1 in the arrays' type.
    """


@overload(_gemm)
def _gemm_of(
    transposed_a: Any, transposed_b: Any, m: Any, n: Any, k: Any, one: Any, a: Any, b: Any, c: Any
) -> Any:
    routine, kind = (_gemm64, _D) if a.dtype == types.float64 else (_gemm32, _S)

    def call(
        transposed_a: Any, transposed_b: Any, m: Any, n: Any, k: Any, one: Any, a: Any, b: Any, c: Any
    ) -> None:
        size = a.itemsize
        routine(
            kind, transposed_a, transposed_b, m, n, k, one.ctypes, a.ctypes, a.strides[0] // size, b.ctypes,
            b.strides[0] // size, one.ctypes, c.ctypes, c.strides[0] // size,
        )  # fmt: skip

    return call


@vector_kernel
def add_columns_gram(rows: FloatArray, out: FloatArray) -> None:
    """Add ``rows.T @ rows`` to `out` (p, p), on and below the diagonal (and some above)."""
    n, p = rows.shape
    one = np.ones(1, dtype=rows.dtype)
    for i in range(0, p, BLOCK):
        height, width = min(BLOCK, p - i), min(i + BLOCK, p)
        # Row-major out[i:i+height, :width] is column-major (width, height).
        _gemm(N, T, width, height, n, one, rows, rows[:, i:], out[i:])


@vector_kernel
def add_rows_gram(rows: FloatArray, out: FloatArray) -> None:
    """Add ``rows @ rows.T`` to `out` (n, n), on and below the diagonal (and some above)."""
    n, p = rows.shape
    one = np.ones(1, dtype=rows.dtype)
    for i in range(0, n, BLOCK):
        height, width = min(BLOCK, n - i), min(i + BLOCK, n)
        _gemm(T, N, width, height, p, one, rows, rows[i:], out[i:])


@vector_kernel
def factorise(matrix: FloatArray) -> bool:
    """Overwrite the lower triangle of a matrix by its Cholesky factor; False if it has none."""
    # A row-major lower triangle is a column-major upper one.
    return bool(_potrf(_D, UPPER, len(matrix), matrix.ctypes, matrix.strides[0] // 8) == 0)


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
