"""The one decorator that owns numba's compile flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop over arrays.

    Kernels release the GIL, so joblib's threads run them side by side; they never start threads of
    their own, because nested thread pools fight for the same cores. Compiled code is kept on disk.
    Strict floating point (no ``fastmath``): infinities and the order of sums mean what they say.
    """
    compiled: Callable[P, R] = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    return compiled
