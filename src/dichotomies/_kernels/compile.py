"""Kernels: loops over arrays that are compiled when first needed, and plain code where that is not worth it.

The one place that decides how kernels are compiled, kept, called, and when they are not called at all.
"""

from __future__ import annotations

import os
from functools import cached_property, partial, update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies._common.typing import IntArray

P = ParamSpec("P")
R = TypeVar("R")

#: Sums may be taken in any order, so that vector instructions can take them; infinities and NaN keep their
#: meaning. The order depends on the machine and the length of the loop alone: the same call, the same bits.
ANY_ORDER = frozenset({"reassoc", "contract", "nsz"})

#: Seconds that plain code may take, by its estimate, where a kernel would have to be compiled.
PATIENCE = 0.25


def is_small(seconds: float) -> bool:
    """Decide between plain code and kernels, by the sizes of the work alone.

    Parameters
    ----------
    seconds : float
        Estimate of the time that plain code takes. It depends on sizes, never on clocks or on what is
        compiled already, so that the same rows give the same bits in every process.
    """
    return seconds <= PATIENCE


class Kernel(Generic[P, R]):
    """A loop over arrays, compiled at its first call.

    Compiled, it releases the GIL, so that joblib's threads run kernels side by side; it never starts threads
    of its own, because nested thread pools fight for the same cores. Kernels are not bounds-checked. With
    ``NUMBA_DISABLE_JIT=1`` the interpreter runs the same code.

    Attributes
    ----------
    function : callable
        The code, in Python.
    fastmath : set of str
        What LLVM may do with sums; nothing where it is empty: their order means what it says.
    seconds : float
        How long it usually takes to compile.
    """

    def __init__(self, function: Callable[P, R], fastmath: frozenset[str], seconds: float) -> None:
        update_wrapper(self, function)
        self.function, self.fastmath, self.seconds = function, fastmath, seconds

    def __call__(self, *arguments: P.args, **_: P.kwargs) -> R:
        """Run the compiled code."""
        return self.compiled(*map(canonical, arguments))  # type: ignore[call-arg,arg-type]

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """The dispatcher, which compiles at the first call; numba is imported only now."""
        if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
            return np.errstate(all="ignore")(self.function)  # compiled code does not warn either
        from dichotomies._kernels import dispatch  # noqa: PLC0415 - numba takes long to import

        return dispatch.dispatcher(self)

    @cached_property
    def inner(self) -> Callable[P, R]:
        """The dispatcher that other kernels call, which compiles faster: Python has no access to it."""
        from dichotomies._kernels import dispatch  # noqa: PLC0415

        return dispatch.dispatcher(self, is_inner=True)


@overload
def kernel(function: Callable[P, R], /) -> Kernel[P, R]: ...
@overload
def kernel(*, seconds: float) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def kernel(function: Any = None, /, *, seconds: float = 0.0, fastmath: frozenset[str] = frozenset()) -> Any:
    """Make a kernel with strict floating point; `seconds` is how long it usually takes to compile."""
    if function is None:
        return partial(kernel, seconds=seconds, fastmath=fastmath)
    return Kernel(function, fastmath, seconds)


@overload
def vector_kernel(function: Callable[P, R], /) -> Kernel[P, R]: ...
@overload
def vector_kernel(*, seconds: float) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def vector_kernel(function: Any = None, /, *, seconds: float = 0.0) -> Any:
    """Make a kernel whose sums may be taken in any order; see `ANY_ORDER`."""
    return kernel(function, seconds=seconds, fastmath=ANY_ORDER)  # type: ignore[call-overload]


def compiled_as(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what kernels compile in place of a function that the interpreter runs.

    The decorated function gets the types of the arguments and returns the code, as with numba's ``overload``.
    """

    def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
        OVERLOADS.append((function, implementation))
        return implementation

    return register


#: What `compiled_as` was told, for numba once it is there.
OVERLOADS: list[tuple[Callable[..., Any], Callable[..., Any]]] = []


class _Writable:
    """The memory of a read-only array, for numpy to make an array of that does not say so."""

    def __init__(self, array: Any) -> None:
        self.array = array  # keeps the memory alive
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def canonical(argument: Any) -> Any:
    """An argument as kernels take it: read-only arrays would be a signature of their own.

    Kernels write to what is theirs to write, so the memory of such an array is not changed.
    """
    if isinstance(argument, np.ndarray):
        return argument if argument.flags.writeable else np.asarray(_Writable(argument))
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        return type(argument)(*map(canonical, argument))
    return argument


def csr_arrays(X: Any) -> tuple[Any, IntArray, IntArray]:
    """The arrays of a CSR matrix, indices as int32 and offsets as int64, whichever scipy chose."""
    return X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
