"""Products with the rows of a node, dense or sparse, and preconditioners made of them.

Dense rows are a C-ordered array (n, p). Sparse rows are a tuple ``(data, columns, indptr)`` of a node's part
of a CSR matrix, its columns renumbered from 0, all of unsigned integers. Vectors of parameters have p + 1
entries, the last the intercept, whose feature is 1 in every row. Accumulation is in double precision.
"""

# ruff: noqa: ARG001 - overloads look at the types of some arguments only

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numba.extending import overload

from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.newton.blas import add_columns_gram, factorise, solve_backward, solve_forward

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray

#: As `vector_kernel` compiles; overloads are compiled with whoever calls them.
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}

#: Numbers of a block of rows, few enough to stay in a core's cache between two looks at them.
_BLOCK_SIZE = 2**15

#: A preconditioner looks at this many rows per feature, and at all rows where there are few features.
_ROWS_PER_FEATURE = 6
_FEW_FEATURES = 64

#: Features beyond which only the diagonal of the Hessian is used.
MOST_FEATURES = 2048


@vector_kernel
def block_rows(X: FloatArray) -> int:
    """Rows of a dense matrix to handle together."""
    return int(max(16, _BLOCK_SIZE // X.shape[1]))


# ---------------------------------------------------------------------- products


def product(X: Any, theta: Any, out: Any) -> None:
    """Scores of the rows: ``X w + b``."""


@overload(product, jit_options=_OPTIONS)
def _product(X: Any, theta: Any, out: Any) -> Any:
    def dense(X: Any, theta: Any, out: Any) -> None:
        p = X.shape[1]
        scores = np.dot(X, theta[:p].astype(X.dtype))
        for i in range(len(X)):
            out[i] = scores[i] + theta[p]

    def sparse(X: Any, theta: Any, out: Any) -> None:
        data, columns, indptr = X
        for i in range(len(out)):
            total = theta[-1]
            for place in range(indptr[i], indptr[i + 1]):
                total += data[place] * theta[columns[place]]
            out[i] = total

    return dense if isinstance(X, types.Array) else sparse


def transposed_product(X: Any, rows: Any, out: Any) -> None:
    """Sum of the rows times a number each: ``X' rows``, the last entry their sum."""


@overload(transposed_product, jit_options=_OPTIONS)
def _transposed_product(X: Any, rows: Any, out: Any) -> Any:
    def dense(X: Any, rows: Any, out: Any) -> None:
        n, p = X.shape
        step = block_rows(X)
        out[:] = 0.0
        for i in range(0, n, step):
            sums = np.dot(X[i : i + step].T, rows[i : i + step].astype(X.dtype))
            for j in range(p):
                out[j] += sums[j]
        out[p] = rows.sum()

    def sparse(X: Any, rows: Any, out: Any) -> None:
        data, columns, indptr = X
        out[:] = 0.0
        for i in range(len(rows)):
            for place in range(indptr[i], indptr[i + 1]):
                out[columns[place]] += rows[i] * data[place]
        out[-1] = rows.sum()

    return dense if isinstance(X, types.Array) else sparse


def curved_product(X: Any, curve: Any, v: Any, scores: Any, out: Any) -> None:
    """``out = X' D X v`` with the curvatures D of the rows, and ``scores = X v``, in one look at the rows."""


@overload(curved_product, jit_options=_OPTIONS)
def _curved_product(X: Any, curve: Any, v: Any, scores: Any, out: Any) -> Any:
    def dense(X: Any, curve: Any, v: Any, scores: Any, out: Any) -> None:
        n, p = X.shape
        step = block_rows(X)
        out[:] = 0.0
        slopes = v[:p].astype(X.dtype)
        pulled = np.empty(step, dtype=X.dtype)
        for i in range(0, n, step):
            block = X[i : i + step]
            inner = np.dot(block, slopes)
            for k in range(len(block)):
                scores[i + k] = inner[k] + v[p]
                pull = curve[i + k] * scores[i + k]
                pulled[k] = pull
                out[p] += pull
            sums = np.dot(block.T, pulled[: len(block)])
            for j in range(p):
                out[j] += sums[j]

    def sparse(X: Any, curve: Any, v: Any, scores: Any, out: Any) -> None:
        data, columns, indptr = X
        out[:] = 0.0
        for i in range(len(scores)):
            total = v[-1]
            for place in range(indptr[i], indptr[i + 1]):
                total += data[place] * v[columns[place]]
            scores[i] = total
            total *= curve[i]
            out[-1] += total
            for place in range(indptr[i], indptr[i + 1]):
                out[columns[place]] += total * data[place]

    return dense if isinstance(X, types.Array) else sparse


# ---------------------------------------------------------------------- preconditioners


def empty_preconditioner(X: Any, n_parameters: Any) -> Any:
    """Room for one: (p + 1, p + 1) for a Cholesky factor, (1, p + 1) for a diagonal."""


@overload(empty_preconditioner, jit_options=_OPTIONS)
def _empty_preconditioner(X: Any, n_parameters: Any) -> Any:
    def dense(X: Any, n_parameters: Any) -> Any:
        return np.empty((n_parameters if n_parameters <= MOST_FEATURES else 1, n_parameters))

    def sparse(X: Any, n_parameters: Any) -> Any:
        return np.empty((1, n_parameters))

    return dense if isinstance(X, types.Array) else sparse


def prepare(X: Any, curve: Any, penalty: Any, out: Any) -> None:
    """Write a preconditioner for ``X' D X + penalty``: the factor of a sampled Hessian, or its diagonal."""


@overload(prepare, jit_options=_OPTIONS)
def _prepare(X: Any, curve: Any, penalty: Any, out: Any) -> Any:
    def dense(X: Any, curve: Any, penalty: Any, out: Any) -> None:
        if len(out) == 1:
            diagonal_of(X, curve, penalty, out[0])
        else:
            # Rounding to single precision spoils a preconditioner only where curvatures span too many orders.
            sampled_hessian(X, curve, penalty, np.empty(0, dtype=np.float32), out)
            solved = factorise(out)
            if not solved:
                sampled_hessian(X, curve, penalty, np.empty(0), out)
                solved = factorise(out)
            if not solved:
                diagonal = np.empty(len(out))
                diagonal_of(X, curve, penalty, diagonal)
                out[:] = 0.0
                for j in range(len(out)):
                    out[j, j] = np.sqrt(diagonal[j])

    def sparse(X: Any, curve: Any, penalty: Any, out: Any) -> None:
        data, columns, indptr = X
        diagonal = out[0]
        diagonal[:] = penalty
        for i in range(len(curve)):
            diagonal[-1] += curve[i]
            for place in range(indptr[i], indptr[i + 1]):
                diagonal[columns[place]] += curve[i] * data[place] * data[place]

    return dense if isinstance(X, types.Array) else sparse


@vector_kernel
def diagonal_of(X: FloatArray, curve: FloatArray, penalty: FloatArray, out: FloatArray) -> None:
    """The diagonal of the Hessian of dense rows."""
    n, p = X.shape
    out[:] = penalty
    for i in range(n):
        for j in range(p):
            out[j] += curve[i] * X[i, j] * X[i, j]
        out[p] += curve[i]


@vector_kernel
def sampled_hessian(
    X: FloatArray, curve: FloatArray, penalty: FloatArray, like: FloatArray, out: FloatArray
) -> None:
    """The Hessian as every so many-th row tells it, in the precision of `like`.

    Neighbouring rows are of one class, so that the sample has its share of every class.
    """
    n, p = X.shape
    stride = sampling_stride(n, p)
    step = block_rows(X)
    block = np.empty((step, p + 1), dtype=like.dtype)
    hessian = np.zeros((p + 1, p + 1), dtype=like.dtype)
    filled = 0
    for i in range(0, n, stride):
        root = np.sqrt(curve[i] * stride)
        for j in range(p):
            block[filled, j] = root * X[i, j]
        block[filled, p] = root
        filled += 1
        if filled == step or i + stride >= n:
            add_columns_gram(block[:filled], hessian)
            filled = 0
    for i in range(p + 1):
        for j in range(i + 1):
            out[i, j] = hessian[i, j]
        out[i, i] += penalty[i]


@vector_kernel
def sampling_stride(n: int, p: int) -> int:
    """How many rows stand for each one looked at."""
    return max(1, n // max(_ROWS_PER_FEATURE * p, _FEW_FEATURES * n // p))


@vector_kernel
def precondition(factor: FloatArray, x: FloatArray, out: FloatArray) -> None:
    """Solve with a preconditioner, made by `prepare`."""
    if len(factor) == 1:
        for j in range(len(x)):
            out[j] = x[j] / factor[0, j]
    else:
        out[:] = x
        solve_forward(factor, out)
        solve_backward(factor, out)
