"""Kernels: loops over arrays that are compiled when first needed, and plain code where that is not worth it.

The one place that decides how kernels are compiled, kept, called, and when they are not called at all.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, partial, update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from dichotomies._common.typing import IntArray

P = ParamSpec("P")
R = TypeVar("R")

#: Sums may be taken in any order, so that vector instructions can take them; infinities and NaN keep their
#: meaning. The order depends on the machine and the length of the loop alone: the same call, the same bits.
ANY_ORDER = frozenset({"reassoc", "contract", "nsz"})

#: Rows up to which plain code is considered, and the seconds that it may take, by its estimate: where a model
#: is trained, and where it answers, which happens again and again.
FEW_ROWS, PATIENCE, PATIENCE_OF_ANSWERS = 5_000, 0.25, 0.001


def is_small(n_rows: int, seconds: float, *, is_answer: bool = False) -> bool:
    """Decide between plain code and kernels, which may have to be compiled first, by sizes alone.

    Parameters
    ----------
    n_rows : int
        Rows of the whole problem. Many rows, or the many requests that they stand for, are worth a compiler.
    seconds : float
        Estimate of the time that plain code takes. It depends on sizes, never on clocks or on what is
        compiled already, so that the same rows give the same bits in every process.
    is_answer : bool
        True if rows are scored, False if a model is trained; scoring during training is a part of training.
    """
    patience = PATIENCE_OF_ANSWERS if is_answer and not _TRAINS.get() else PATIENCE
    return n_rows <= FEW_ROWS and seconds <= patience and not _COMPILES_ALWAYS.get()


#: Set while a model is trained; while nothing counts as small; while plain code runs.
_TRAINS: ContextVar[bool] = ContextVar("trains", default=False)
_COMPILES_ALWAYS: ContextVar[bool] = ContextVar("compiles always", default=False)
_RUNS_PLAINLY: ContextVar[bool] = ContextVar("runs plainly", default=False)


@contextmanager
def _set(state: ContextVar[bool]) -> Iterator[None]:
    token = state.set(True)
    try:
        yield
    finally:
        state.reset(token)


def training() -> AbstractContextManager[None]:
    """Allow plain code that scores rows the time it is allowed for training, of which this is a part."""
    return _set(_TRAINS)


def compiling_always() -> AbstractContextManager[None]:
    """Use kernels whatever the sizes, so that a few rows are enough to have them compiled."""
    return _set(_COMPILES_ALWAYS)


def has_compiler() -> bool:
    """Return False if ``NUMBA_DISABLE_JIT=1``: the interpreter runs all kernels."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


class Kernel(Generic[P, R]):
    """A loop over arrays, compiled at its first call.

    Compiled, it releases the GIL, so that joblib's threads run kernels side by side; it never starts threads
    of its own, because nested thread pools fight for the same cores. Kernels are not bounds-checked. With
    ``NUMBA_DISABLE_JIT=1`` the interpreter runs the same code.

    Attributes
    ----------
    function : callable
        The code, in Python.
    plain : callable
        The same without a compiler: that code, or vectorised code.
    fastmath : set of str
        Liberties of LLVM with sums; if empty, they are taken in the order of the code.
    seconds : float
        Usual time to compile.
    """

    def __init__(
        self,
        function: Callable[P, R],
        fastmath: frozenset[str],
        seconds: float,
        is_inline: bool,
        is_copied: bool,
        borrows: bool,
    ) -> None:
        update_wrapper(self, function)
        self.function, self.fastmath, self.seconds = function, fastmath, seconds
        self.is_copied, self.borrows = is_copied, borrows
        self.plain = function
        if is_inline:  # what numba looks for
            self.targetoptions, self.py_func = {"inline": "always"}, function

    def __call__(self, *arguments: P.args, **_: P.kwargs) -> R:
        """Run the compiled code, or plain code if whoever calls is plain code."""
        if _RUNS_PLAINLY.get():
            return self.plain(*arguments)  # type: ignore[call-arg]
        return self.compiled(*map(canonical, arguments))  # type: ignore[call-arg]

    def ready(self, *arguments: Any) -> Callable[[], R]:
        """A call that only runs the compiled code: nothing before that can fail any more."""
        return partial(self.compiled, *map(canonical, arguments))

    def plainly(self, function: Callable[P, R]) -> Callable[P, R]:
        """Register what does the same in plain numpy, where the interpreter would take long."""
        self.plain = function
        return function

    def when(self, small: bool, /) -> Callable[P, R]:
        """The way to run: plain code if the work is small (see `is_small`), else compiled code."""
        return self._run_plainly if small else self

    def _run_plainly(self, *arguments: P.args, **_: P.kwargs) -> R:
        with _set(_RUNS_PLAINLY), np.errstate(all="ignore"):  # compiled code does not warn either
            return self.plain(*arguments)  # type: ignore[call-arg]

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """The dispatcher, which compiles at the first call; numba is imported only now."""
        if not has_compiler():
            return np.errstate(all="ignore")(self.function)  # compiled code does not warn either
        from dichotomies._kernels import dispatch

        return dispatch.dispatcher(self)

    @cached_property
    def inner(self) -> Callable[P, R]:
        """The dispatcher that other kernels call, which compiles faster: Python has no access to it."""
        from dichotomies._kernels import dispatch

        return dispatch.dispatcher(self, is_inner=True)


@overload
def kernel(function: Callable[P, R], /) -> Kernel[P, R]: ...
@overload
def kernel(
    *, seconds: float = 0.0, inline: bool = False, copied: bool = False, borrows: bool = False
) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def kernel(
    function: Any = None,
    /,
    *,
    seconds: float = 0.0,
    inline: bool = False,
    copied: bool = False,
    borrows: bool = False,
    fastmath: frozenset[str] = frozenset(),
) -> Any:
    """Make a kernel with strict floating point.

    Parameters
    ----------
    seconds : float
        Usual time to compile.
    inline : bool
        Copy the code into the kernels that call it. A part that is called in one place is then compiled with
        the whole, instead of once by itself and again at every level of calls above it.
    copied : bool
        Have LLVM copy the machine code into the kernels that call it, which saves passing many arrays.
    borrows : bool
        Count no references to arrays, here and in the kernels that it calls, none of which may make a new
        array. Counting takes a fifth of the time where views of few elements are taken.
    """
    if function is None:
        options = {"inline": inline, "copied": copied, "borrows": borrows, "fastmath": fastmath}
        return partial(kernel, seconds=seconds, **options)
    return Kernel(function, fastmath, seconds, inline, copied, borrows)


@overload
def vector_kernel(function: Callable[P, R], /) -> Kernel[P, R]: ...
@overload
def vector_kernel(*, seconds: float) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def vector_kernel(function: Any = None, /, *, seconds: float = 0.0) -> Any:
    """Make a kernel whose sums may be taken in any order; see `ANY_ORDER`."""
    return kernel(function, seconds=seconds, fastmath=ANY_ORDER)  # type: ignore[call-overload]


class KernelByType:
    """Kernels under one name, told apart by the class of their first argument, a named tuple.

    Compiled code holds the one it needs and no other.
    """

    def __init__(self, kernels: dict[type, Kernel[..., Any]]) -> None:
        self.kernels = kernels

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel for this first argument."""
        return self.kernels[type(arguments[0])](*arguments)


def by_type(kernels: dict[type, Kernel[..., Any]]) -> KernelByType:
    """Give one name to kernels for different classes of their first argument."""
    return KernelByType(kernels)


def compiled_as(
    function: Callable[..., Any], *, inline: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what kernels compile in place of a function that the interpreter runs.

    The decorated function gets the types of the arguments and returns the code, as with numba's ``overload``.
    It is copied into its callers if `inline`, which saves passing many arrays to a short function.
    """

    def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
        OVERLOADS.append((function, implementation, inline))
        return implementation

    return register


#: Registrations of `compiled_as`, handed to numba once it is imported.
OVERLOADS: list[tuple[Callable[..., Any], Callable[..., Any], bool]] = []


class _Writable:
    """The memory of a read-only array, for numpy to make an array of that does not say so."""

    def __init__(self, array: Any) -> None:
        self.array = array  # keeps the memory alive
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def canonical(argument: Any) -> Any:
    """An argument as kernels take it: a read-only array, or a tuple with one, would be of another type.

    Kernels write to what is theirs to write, so the memory of such an array is not changed.
    """
    if isinstance(argument, np.ndarray):
        return argument if argument.flags.writeable else np.asarray(_Writable(argument))
    if isinstance(argument, tuple) and not all(map(_is_canonical, argument)):
        return type(argument)(*map(canonical, argument))
    return argument


def _is_canonical(argument: Any) -> bool:
    if isinstance(argument, np.ndarray):
        return argument.flags.writeable
    return not isinstance(argument, tuple) or all(map(_is_canonical, argument))


def csr_arrays(X: Any) -> tuple[Any, IntArray, IntArray]:
    """The arrays of a CSR matrix, indices as int32 and offsets as int64, whichever scipy chose."""
    return X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
