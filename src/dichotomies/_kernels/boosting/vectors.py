"""Vector instructions for a block of rows, which the compiler would not find by itself."""

from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

_BYTE, _INT = ir.IntType(8), ir.IntType(32)


def features() -> list[str]:
    """What the processor that numba compiles for can do, as LLVM writes it."""
    return cpu_target.target_context.codegen().magic_tuple()[-1].split(",")  # type: ignore[no-any-return]


class Pick(NamedTuple):
    """An instruction that picks a number of a table for each lane of a vector.

    Attributes
    ----------
    name : str
        As LLVM calls it.
    lanes : int
        32-bit numbers of a vector.
    registers : int
        Vectors of the table. The lowest bits of an index count, as many as the table needs.
    """

    name: str
    lanes: int
    registers: int

    @property
    def entries(self) -> int:
        """Numbers of the table."""
        return self.lanes * self.registers


def find_pick() -> Pick | None:
    """The widest such instruction; None if there is none that is known."""
    if "+avx512f" in features():
        return Pick("llvm.x86.avx512.vpermi2var.d.512", 16, 2)
    return Pick("llvm.x86.avx2.permd", 8, 1) if "+avx2" in features() else None


def has_wide_bytes() -> bool:
    """Test whether a vector has 64 bytes, half of which compilers would use by themselves."""
    return "+avx512bw" in features()


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any, vector: Any) -> Any:
    """Address of the vector that begins at an index of an array of this numba type."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _constant(vector: Any, number: int) -> Any:
    return ir.Constant(vector, [number] * vector.count)


def _repeated(builder: Any, vector: Any, number: Any) -> Any:
    """A vector of one number."""
    one = builder.insert_element(_constant(vector, 0), number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(one, one, _constant(ir.VectorType(_INT, vector.count), 0))


def adder(pick: Pick, *, is_part: bool) -> Any:
    """A function of values, first, place, total and i that adds the values of ``4 * lanes`` rows from i on.

    The table is read from ``values[first:]``; if `is_part`, rows of places that are not in it are left alone.
    An index is one of the four bytes of a 32-bit number, which saves moving it: the rows ``i + b``,
    ``i + b + 4`` and so on are added to the totals from ``i + b * lanes`` on.
    """
    vector = ir.VectorType(_INT, pick.lanes)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def pointer(which: int, index: Any, distance: int = 0) -> Any:
            index = builder.add(index, ir.Constant(index.type, distance))
            return _pointer(context, builder, signature.args[which], arguments[which], index, vector)

        _, first, _, _, i = arguments
        starts = (pointer(0, first, k * pick.lanes) for k in range(pick.registers))
        table, *more = (builder.load(start, align=4) for start in starts)
        places = builder.load(pointer(2, i), align=1)
        function = ir.FunctionType(vector, [vector] * (2 + len(more)))
        instruction = cgutils.get_or_insert_function(builder.module, function, pick.name)  # type: ignore[no-untyped-call]
        for byte in range(4):
            index = builder.lshr(places, _constant(vector, 8 * byte))
            if is_part:
                index = builder.and_(index, _constant(vector, 255))
                index = builder.sub(index, _repeated(builder, vector, builder.trunc(first, _INT)))
            value = builder.call(instruction, [table, index, *more])
            if is_part:
                is_inside = builder.icmp_unsigned("<", index, _constant(vector, pick.entries))
                value = builder.select(is_inside, value, _constant(vector, 0))
            total = pointer(3, i, byte * pick.lanes)
            builder.store(builder.add(builder.load(total, align=4), value), total, align=4)
        return context.get_dummy_value()

    def typed(_: Any, values: Any, first: Any, place: Any, total: Any, i: Any) -> Any:  # noqa: ARG001
        return types.void(values, types.intp, place, total, types.intp), generate

    return intrinsic(typed)


def mover(lanes: int) -> Any:
    """A function like `leaves.move_above` for so many rows from i on, with codes of one byte."""
    vector = ir.VectorType(_BYTE, lanes)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        codes, *numbers, place, i = arguments
        limit, leaf, new_leaf = (_repeated(builder, vector, number) for number in numbers)
        code = builder.load(_pointer(context, builder, signature.args[0], codes, i, vector), align=1)
        target = _pointer(context, builder, signature.args[4], place, i, vector)
        before = builder.load(target, align=1)
        moves = builder.and_(
            builder.icmp_unsigned(">", code, limit), builder.icmp_unsigned("==", before, leaf)
        )
        builder.store(builder.select(moves, new_leaf, before), target, align=1)
        return context.get_dummy_value()

    def typed(_: Any, codes: Any, limit: Any, leaf: Any, new_leaf: Any, place: Any, i: Any) -> Any:  # noqa: ARG001
        return types.void(codes, types.uint8, types.uint8, types.uint8, place, types.intp), generate

    return intrinsic(typed)
