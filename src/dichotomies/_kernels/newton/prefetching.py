"""The processor's instruction to fetch memory ahead of its use."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _prefetch_line(typing_context: Any, array: Any, place: Any) -> Any:  # noqa: ARG001 - as numba calls it
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


prefetch_line: Any = intrinsic(_prefetch_line)
