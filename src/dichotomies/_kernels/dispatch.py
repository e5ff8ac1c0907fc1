"""Numba's side of kernels, imported with numba at the first compiled call: public names of numba alone."""

import gc
import hashlib
import os
import shutil
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any

import numba
from numba import types
from numba.extending import overload, typeof_impl

from dichotomies._kernels.compile import ANY_ORDER, OVERLOADS, Kernel

_COMMON: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

#: Dispatchers that Python calls and whose code is kept on disk, by the names of their kernels.
KEPT: dict[str, Any] = {}


def dispatcher(kernel: Kernel[Any, Any]) -> Any:
    """Compile when first called from Python, and keep the result on disk if possible."""
    _copy_read_only_folder()
    while OVERLOADS:
        function, implementation, inline = OVERLOADS.pop()
        options: Any = {**_COMMON, "fastmath": set(ANY_ORDER)}
        overload(function, jit_options=options, inline="always" if inline else "never")(implementation)
    try:
        made = numba.njit(cache=True, **_COMMON, **kernel.options)(_linked(kernel, with_sources=True))
    except RuntimeError:  # there is no folder that can be written to
        return without_cache(kernel)
    code = kernel.function
    KEPT[f"{code.__module__.removeprefix('dichotomies._kernels.')}.{code.__qualname__}"] = made
    return _first_without_garbage_collection(kernel, made)


@cache
def _copy_read_only_folder() -> TemporaryDirectory[str] | None:
    """Have numba work with a copy of a folder that it would not even read."""
    config = vars(numba.config)
    folder = config["CACHE_DIR"]
    if not folder or not Path(folder).is_dir() or os.access(folder, os.W_OK):
        return None
    copy = TemporaryDirectory(prefix="kernels-", ignore_cleanup_errors=True)
    config["CACHE_DIR"] = shutil.copytree(folder, copy.name, dirs_exist_ok=True)
    return copy


def inner(kernel: Kernel[Any, Any]) -> Any:
    """Compile for the kernels that call it; Python has no access to it, which saves a third of the time."""
    options = {**_COMMON, **kernel.options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(**options)(_linked(kernel))


def without_cache(kernel: Kernel[Any, Any]) -> Any:
    """Compile in every process, where numba's cache fails; a warning says so once."""
    _warn_once()
    return numba.njit(**_COMMON, **kernel.options)(_linked(kernel))


def compiled_so_far() -> set[str]:
    """Kernels compiled in this process, with the types of their arguments; not those read from disk."""
    return {f"{name}{types}" for name, made in KEPT.items() for types in made.stats.cache_misses}


def folder() -> str:
    """The folder above those in which kernels are kept; empty if they are not."""
    paths = {str(Path(made.stats.cache_path).parent) for made in KEPT.values() if made.signatures}
    return min(paths, default="")


@cache
def _warn_once() -> None:
    warnings.warn(
        "Compiled kernels cannot be kept on disk, or what is there cannot be read: they are compiled again "
        "in every process. Set NUMBA_CACHE_DIR to an empty folder that can be written to.",
        RuntimeWarning,
        stacklevel=2,
    )


def _linked(kernel: Kernel[Any, Any], *, with_sources: bool = False) -> Any:
    """The kernel's code, with dispatchers in place of the kernels that it calls.

    Numba keeps what it compiles by the name and file of the code, but kernels call one another across files:
    the name that it is shown has a checksum of them all.
    """
    code = kernel.function
    known: dict[str, Any] = code.__globals__
    calls = {
        name: known[name].inner for name in code.__code__.co_names if isinstance(known.get(name), Kernel)
    }
    linked = FunctionType(
        code.__code__, {**known, **calls}, code.__name__, code.__defaults__, code.__closure__
    )
    linked.__module__ = code.__module__
    linked.__qualname__ = f"{code.__qualname__}-{_sources()}" if with_sources else code.__qualname__
    return linked


def _first_without_garbage_collection(kernel: Kernel[Any, Any], made: Any) -> Callable[..., Any]:
    """Collecting garbage while numba compiles would take a sixth of the time and find little."""

    def first(*arguments: Any) -> Any:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            result = made(*arguments)
        finally:
            if was_enabled:
                gc.enable()
        kernel.compiled = made
        return result

    return first


@cache
def _sources() -> str:
    """A checksum of the code of all kernels."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@typeof_impl.register(Kernel)
def _type_of(kernel: Kernel[Any, Any], _: Any) -> Any:
    """A kernel that another one calls is the dispatcher that it wraps."""
    return types.Dispatcher(kernel.inner)
