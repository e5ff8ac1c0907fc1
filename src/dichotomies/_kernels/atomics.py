"""Memory that threads of compiled code wait on: operations that no other thread divides."""

import os
import platform
from functools import partial
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_ORDERING = "seq_cst"

#: Function of the operating system by which a thread gives way to another.
_GIVE_WAY = "sched_yield" if os.name == "posix" else "SwitchToThread"

#: On x86, have the processor wait for some cycles, without taking resources from the core's other thread.
_PAUSE = "llvm.x86.sse2.pause" if platform.machine() in {"x86_64", "AMD64"} else None


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Address of an entry of an array of this numba type."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


@intrinsic
def add(_: Any, array: Any, index: Any, amount: Any) -> Any:  # noqa: ARG001 - numba passes types
    """Add to an entry of an integer array; return what it was before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], *arguments[:2])
        return builder.atomic_rmw("add", place, arguments[2], _ORDERING)

    return types.int64(array, types.intp, types.int64), generate


@intrinsic
def load(_: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    """Return an entry of an integer array, read anew."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], *arguments)
        return builder.load_atomic(place, _ORDERING, 8)

    return types.int64(array, types.intp), generate


@intrinsic
def pause(_: Any) -> Any:
    """Wait for some cycles."""
    return types.void(), partial(_call, _PAUSE, ir.VoidType())


@intrinsic
def give_way(_: Any) -> Any:
    """Let another thread use the processor, if one is waiting for it."""
    return types.void(), partial(_call, _GIVE_WAY, ir.IntType(32))


def _call(name: str | None, result: Any, context: Any, builder: Any, *_: Any) -> Any:
    """Call a function that takes no arguments."""
    if name is not None:
        function = ir.FunctionType(result, [])
        builder.call(cgutils.get_or_insert_function(builder.module, function, name), [])  # type: ignore[no-untyped-call]
    return context.get_dummy_value()
