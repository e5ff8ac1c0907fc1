"""Numba's side of kernels: flags, kernels that call kernels, and one line where compiling takes long."""

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numba
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.datamodel.models import OpaqueModel
from numba.core.event import Event, Listener, install_listener
from numba.extending import overload, register_model, typeof_impl

from dichotomies._kernels.cache import KernelCache
from dichotomies._kernels.compile import ANY_ORDER, OVERLOADS, Kernel, KernelByType

#: Newest numba whose internals `_Whole` and `_Part` were tested with. With newer ones, kernels are compiled
#: as numba does by itself, which takes longer.
_NEWEST = (0, 68)

#: Seconds of compilation that are announced to people who wait for it.
_LONG = 2.0


def dispatcher(kernel: Kernel[Any, Any], *, is_inner: bool = False) -> Callable[..., Any]:
    """Compile when first called, and keep the result on disk."""
    while OVERLOADS:
        function, implementation, inline = OVERLOADS.pop()
        options = {"jit_options": _options(ANY_ORDER), "inline": "always" if inline else "never"}
        overload(function, **options)(implementation)
    options = _options(kernel.fastmath) | {"no_cpython_wrapper": is_inner, "no_cfunc_wrapper": True}
    options["forceinline"] = is_inner and kernel.is_copied
    if kernel.borrows:  # otherwise as in the kernel that calls it
        options["_nrt"] = False
    if numba.version_info.short <= _NEWEST:
        options["pipeline_class"] = _PartCompiler if is_inner else _WholeCompiler
    made: Any = numba.njit(**options)(kernel.function)
    if not is_inner:
        made._cache = KernelCache(kernel.function, lambda: _announce(kernel))
    made.get_call_template = partial(_call_template, made)
    return made  # type: ignore[no-any-return]


class _Whole(JITCodeLibrary):
    """Machine code of a kernel that Python calls and of those that it calls, all optimised together, once."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def add_linking_library(self, library: Any) -> None:
        super().add_linking_library(library)  # type: ignore[no-untyped-call]
        if isinstance(library, _Part):
            self._linking_libraries += library._linking_libraries


class _Part(_Whole):
    """Code of a kernel that only kernels call, for them to optimise and translate."""

    def finalize(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 - there is none
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0

    @property
    def codegen(self) -> Any:
        return self  # for `set_env`, which would look for a symbol in machine code

    def set_env(self, name: str, environment: Any) -> None:
        """Kernels need no environment."""


class _WholeCompiler(Compiler):
    """Numba's compiler, which writes such a library."""

    _library: Any = _Whole

    def define_pipelines(self) -> Any:
        self.state.library = self._library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()  # type: ignore[no-untyped-call]

    def compile_extra(self, function: Any) -> Any:
        """Compile without garbage collection, which would take a sixth of the time and find little."""
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(function)  # type: ignore[no-untyped-call]
        finally:
            if was_enabled:
                gc.enable()


class _PartCompiler(_WholeCompiler):
    _library = _Part


def _call_template(made: Any, arguments: Any, keywords: Any) -> Any:
    """Resolve a call from another kernel: a literal has the type of a variable, not one of its own."""
    return type(made).get_call_template(made, tuple(map(types.unliteral, arguments)), keywords)


def _options(fastmath: frozenset[str]) -> Any:
    return {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath) or False}


@typeof_impl.register(Kernel)
def _type_of(kernel: Kernel[Any, Any], _: Any) -> Any:
    """A kernel that another one calls is the dispatcher that it wraps."""
    return types.Dispatcher(kernel.inner)


class _KernelByType(types.Callable, types.Opaque):
    """The type of kernels that are told apart by the class of their first argument."""

    def __init__(self, name: KernelByType) -> None:
        self._kernels = name.kernels
        super().__init__(
            f"KernelByType({', '.join(each.function.__name__ for each in name.kernels.values())})"
        )

    def _dispatcher(self, arguments: Any) -> Any:
        return types.Dispatcher(self._kernels[arguments[0].instance_class].inner)

    def get_call_type(self, context: Any, arguments: Any, keywords: Any) -> Any:
        return self._dispatcher(arguments).get_call_type(context, arguments, keywords)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return [], False

    def get_impl_key(self, signature: Any) -> Any:
        return self._dispatcher(signature.args).get_impl_key(signature)


register_model(_KernelByType)(OpaqueModel)


@typeof_impl.register(KernelByType)
def _type_by_type(name: KernelByType, _: Any) -> Any:
    return _KernelByType(name)


def _announce(kernel: Kernel[Any, Any]) -> None:
    if kernel.seconds > _LONG and is_interactive():
        print(
            f"dichotomies: compiling {kernel.function.__name__}, usually {kernel.seconds:.0f} s; "
            "the result is kept (`dichotomies warm-up` does this ahead of time).",
            file=sys.stderr,
        )


def is_interactive() -> bool:
    """Test whether someone is waiting: a prompt, a notebook or a terminal."""
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules or sys.stderr.isatty()


class Compilation(NamedTuple):
    """A kernel that Python called and that had to be compiled for the types of its arguments.

    Attributes
    ----------
    kernel : str
        Module and name.
    seconds : float
    """

    kernel: str
    seconds: float


class _Recorder(Listener):
    """Notes what is compiled, but not what is compiled as a part of it."""

    def __init__(self) -> None:
        self.found: list[Compilation] = []
        self._begun: list[float] = []

    def on_start(self, event: Event) -> None:  # noqa: ARG002 - as numba calls it
        self._begun.append(time.perf_counter())

    def on_end(self, event: Event) -> None:
        taken = time.perf_counter() - self._begun.pop()
        if not self._begun:
            code = event.data["dispatcher"].py_func
            module = code.__module__.removeprefix("dichotomies._kernels.")
            self.found.append(Compilation(f"{module}.{code.__qualname__}", taken))


@contextmanager
def compilations() -> Iterator[list[Compilation]]:
    """Note which kernels are compiled, in one thread; those that are found on disk are not."""
    recorder = _Recorder()
    with install_listener("numba:compile", recorder):
        yield recorder.found
