"""Sparse rows and the weights of one or four members, which lie side by side.

A row is looked up once for all members. Their weights are an array (p + 1,), or (p + 1, 4), as many as a
vector register has doubles; the last ones are the intercepts.
"""

# ruff: noqa: ARG001 - overloads look at the types of some arguments only

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from dichotomies._kernels.compile import vector_kernel

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray

#: As `vector_kernel` compiles; overloads are compiled with whoever calls them.
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}

#: Members whose weights lie side by side.
LANES = 4

#: Bytes of a cache line.
_LINE = 64


def _prefetch_line(typing_context: Any, array: Any, place: Any) -> Any:
    """Ask for the cache line of an entry of a contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type, _ = signature.args
        pointer = cgutils.create_struct_proxy(array_type)(context, builder, value=arguments[0]).data  # type: ignore[no-untyped-call]
        address = builder.bitcast(builder.gep(pointer, [arguments[1]]), ir.PointerType(ir.IntType(8)))
        kinds = [ir.IntType(32)] * 3
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [address.type], ir.FunctionType(ir.VoidType(), [address.type, *kinds])
        )
        builder.call(
            function, [address, *(kind(value) for kind, value in zip(kinds, (0, 3, 1), strict=True))]
        )
        return context.get_dummy_value()

    return types.void(array, types.uintp), generate


prefetch: Any = intrinsic(_prefetch_line)


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


def score_row(X: Any, i: Any, w: Any, out: Any) -> None:
    """Write a row's score by each member: ``x' w + b``."""


@overload(score_row, jit_options=_OPTIONS)
def _score_row(X: Any, i: Any, w: Any, out: Any) -> Any:
    def one(X: Any, i: Any, w: Any, out: Any) -> None:
        data, columns, indptr = X
        total = w[-1]
        for place in range(indptr[i], indptr[i + 1]):
            total += data[place] * w[columns[place]]
        out[0] = total

    def four(X: Any, i: Any, w: Any, out: Any) -> None:
        data, columns, indptr = X
        a, b, c, d = w[-1, 0], w[-1, 1], w[-1, 2], w[-1, 3]
        for place in range(indptr[i], indptr[i + 1]):
            x, j = data[place], columns[place]
            a += x * w[j, 0]
            b += x * w[j, 1]
            c += x * w[j, 2]
            d += x * w[j, 3]
        out[0], out[1], out[2], out[3] = a, b, c, d

    return one if w.ndim == 1 else four


def add_row(X: Any, i: Any, pull: Any, w: Any) -> None:
    """Add a row times each member's pull to its weights, but not to the intercept."""


@overload(add_row, jit_options=_OPTIONS)
def _add_row(X: Any, i: Any, pull: Any, w: Any) -> Any:
    def one(X: Any, i: Any, pull: Any, w: Any) -> None:
        data, columns, indptr = X
        a = pull[0]
        for place in range(indptr[i], indptr[i + 1]):
            w[columns[place]] += a * data[place]

    def four(X: Any, i: Any, pull: Any, w: Any) -> None:
        data, columns, indptr = X
        a, b, c, d = pull[0], pull[1], pull[2], pull[3]
        for place in range(indptr[i], indptr[i + 1]):
            x, j = data[place], columns[place]
            w[j, 0] += x * a
            w[j, 1] += x * b
            w[j, 2] += x * c
            w[j, 3] += x * d

    return one if w.ndim == 1 else four
