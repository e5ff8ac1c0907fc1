"""The one decorator that owns numba's compile flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop over arrays.

    Kernels release the GIL, so joblib's threads run them side by side; they never start threads of
    their own, because nested thread pools fight for the same cores. Strict floating point (no
    ``fastmath``): infinities and the order of sums mean what they say.
    """
    return _compiled(function, fastmath=False)


def vector_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop whose sums may be taken in any order, so that vector instructions can take them.

    Infinities and NaN still mean what they say. The order depends on the machine and the length of the
    loop alone, so the same call gives the same bits.
    """
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def _compiled(function: Callable[P, R], fastmath: bool | set[str]) -> Callable[P, R]:
    """Compile when first called, and keep the result on disk wherever numba finds a place for it."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        compiled: Callable[P, R] = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to write: neither beside the package nor in the user's home
        compiled = numba.njit(**options)(function)
    return compiled
