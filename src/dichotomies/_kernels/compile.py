"""Kernels: loops over arrays that are compiled when first needed, and plain code where that is not worth it.

The one place that decides how kernels are compiled, kept, called, and when they are not called at all.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cached_property, partial, update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from dichotomies._common.progress import CALL, set_call

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
    patience = PATIENCE_OF_ANSWERS if is_answer and CALL.get().kernels != "training" else PATIENCE
    return n_rows <= FEW_ROWS and seconds <= patience and CALL.get().kernels != "compiling"


@contextmanager
def _set(state: str) -> Iterator[None]:
    """Set the state of kernels.

    "training" while a model is trained; "compiling" while nothing counts as small; "plain" while plain code
    runs, and what it calls runs plainly, too; otherwise "answering".
    """
    token = set_call(kernels=state)
    try:
        yield
    finally:
        CALL.reset(token)


def training() -> AbstractContextManager[None]:
    """Allow plain code that scores rows the time it is allowed for training, of which this is a part."""
    return _set("compiling" if CALL.get().kernels == "compiling" else "training")


def compiling_always() -> AbstractContextManager[None]:
    """Use kernels whatever the sizes."""
    return _set("compiling")


def has_compiler() -> bool:
    """Return False if ``NUMBA_DISABLE_JIT=1``: the interpreter runs all kernels."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


class Kernel(Generic[P, R]):
    """A loop over arrays that numba, imported only then, compiles at its first call and keeps on disk.

    Compiled, it releases the GIL, so that joblib's threads run kernels side by side; it never starts threads
    of its own, because nested thread pools fight for the same cores. Kernels are not bounds-checked. With
    ``NUMBA_DISABLE_JIT=1`` the interpreter runs the same code.
    """

    def __init__(self, function: Callable[P, R], **options: Any) -> None:
        update_wrapper(self, function)
        self.function, self.options = function, options
        self.plain = function

    def __call__(self, *arguments: P.args, **_: P.kwargs) -> R:
        """Run the compiled code, or plain code if whoever calls is plain code."""
        if CALL.get().kernels == "plain":
            return self.plain(*arguments)  # type: ignore[call-arg]
        return self.run(*map(canonical, arguments))

    def run(self, *arguments: Any) -> R:
        """Run the compiled code on arguments that are `canonical` already."""
        try:
            return self.compiled(*arguments)  # type: ignore[call-arg]
        except Exception:  # of numba's cache, before the code runs: kernels themselves raise nothing
            if not has_compiler():
                raise
            from dichotomies._kernels import dispatch

            self.compiled = dispatch.without_cache(self)
            return self.compiled(*arguments)  # type: ignore[call-arg]

    def ready(self, *arguments: Any) -> Callable[[], R]:
        """A call that only runs the compiled code: nothing before that can fail any more."""
        return partial(self.run, *map(canonical, arguments))

    def plainly(self, function: Callable[P, R]) -> Callable[P, R]:
        """Register what does the same in plain numpy, where the interpreter would take long."""
        self.plain = function
        return function

    def when(self, small: bool, /) -> Callable[P, R]:
        """The way to run: plain code if the work is small (see `is_small`), else compiled code."""
        return self._run_plainly if small else self

    def _run_plainly(self, *arguments: P.args, **_: P.kwargs) -> R:
        with _set("plain"), np.errstate(all="ignore"):  # compiled code does not warn either
            return self.plain(*arguments)  # type: ignore[call-arg]

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """Numba's dispatcher, which compiles at the first call."""
        if not has_compiler():
            return np.errstate(all="ignore")(self.function)  # compiled code does not warn either
        from dichotomies._kernels import dispatch

        made: Callable[P, R] = dispatch.dispatcher(self)
        return made

    @cached_property
    def inner(self) -> Any:
        """The dispatcher that other kernels call: its code is kept as a part of theirs."""
        from dichotomies._kernels import dispatch

        return dispatch.inner(self)


@overload
def kernel(function: Callable[P, R], /) -> Kernel[P, R]: ...
@overload
def kernel(*, inline: bool) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def kernel(function: Any = None, /, *, inline: bool = False) -> Any:
    """Make a kernel with strict floating point.

    If `inline`, numba copies the code into the kernels that call it: a part that is called in one place is
    compiled once with the whole, instead of by itself and again with every kernel above it.
    """
    if function is None:
        return partial(kernel, inline=inline)
    return Kernel(function, inline="always" if inline else "never")


def vector_kernel(function: Callable[P, R], /) -> Kernel[P, R]:
    """Make a kernel whose sums may be taken in any order; see `ANY_ORDER`."""
    return Kernel(function, fastmath=set(ANY_ORDER))


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
