"""Cholesky factors inside kernels."""

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.compile import vector_kernel


@vector_kernel
def factorise(matrix: FloatArray) -> bool:
    """Overwrite a symmetric matrix by its Cholesky factor; False if it has none."""
    try:
        matrix[:] = np.linalg.cholesky(matrix)
    except Exception:
        return False
    return True


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
