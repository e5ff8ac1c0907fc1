"""Rows that go through a tree together, one split after another, and the values of the leaves they reach."""

from typing import Any

import numpy as np

from dichotomies._kernels.compile import compiled_as, kernel

#: Rows that go through trees together are a multiple of what one instruction takes.
LANES = 64

#: Numbers after the values of the last tree, for instructions that read more than a tree has.
PADDING = 32


@kernel
def split_above(codes: Any, limit: Any, place: Any) -> None:
    """Write the leaf of every row after the first split: 1 where the code is above the limit, otherwise 0."""
    for i in range(len(place)):
        place[i] = np.uint8(codes[i] > limit)


@kernel
def move_above(codes: Any, limit: Any, leaf: Any, new_leaf: Any, place: Any) -> None:
    """Move the rows at a leaf with codes above the limit to another leaf."""
    for i in range(len(place)):
        place[i] = new_leaf if (codes[i] > limit) & (place[i] == leaf) else place[i]


def move_block_above(codes: Any, limit: Any, leaf: Any, new_leaf: Any, place: Any) -> None:
    """The same for a multiple of `LANES` rows."""
    for i in range(len(place)):
        place[i] = new_leaf if (codes[i] > limit) & (place[i] == leaf) else place[i]


@compiled_as(move_block_above)
def _move_block_above(codes: Any, limit: Any, leaf: Any, new_leaf: Any, place: Any) -> Any:  # noqa: ARG001
    from dichotomies._kernels.boosting.vectors import has_wide_bytes, mover

    if codes.dtype.bitwidth > 8 or not has_wide_bytes():
        return move_block_above
    move = mover(LANES)

    def call(codes: Any, limit: Any, leaf: Any, new_leaf: Any, place: Any) -> None:
        for i in range(0, len(place), LANES):
            move(codes, limit, leaf, new_leaf, place, i)

    return call


@kernel
def move_known_above(codes: Any, limit: Any, missing: Any, leaf: Any, new_leaf: Any, place: Any) -> None:
    """Move the rows at a leaf with codes above the limit, but for that of missing values, to another leaf."""
    for i in range(len(place)):
        moves = (codes[i] > limit) & (codes[i] != missing) & (place[i] == leaf)
        place[i] = new_leaf if moves else place[i]


@kernel
def move_categories(codes: Any, bits: Any, leaf: Any, new_leaf: Any, place: Any) -> None:
    """Move the rows at a leaf whose categories are not in the set to another one.

    The word of a category's bit is chosen by the upper bits of its code, which is quicker than reading it.
    """
    word0, word1, word2, word3 = bits[0], bits[1], bits[2], bits[3]
    for i in range(len(place)):
        is_odd = (codes[i] & np.uint8(64)) != 0
        low, high = word1 if is_odd else word0, word3 if is_odd else word2
        word = high if (codes[i] & np.uint8(128)) != 0 else low
        stays = (word >> np.uint64(codes[i] & np.uint8(63))) & np.uint64(1) == np.uint64(1)
        moved = leaf if stays else new_leaf
        place[i] = moved if place[i] == leaf else place[i]


def total_of_row(i: Any) -> Any:
    """Where the sum of row i of a block is among the totals; see `add_values`."""
    return i


@compiled_as(total_of_row)
def _total_of_row(i: Any) -> Any:  # noqa: ARG001 - the same for all types
    from dichotomies._kernels.boosting.vectors import find_pick

    pick = find_pick()
    if pick is None:
        return total_of_row
    lanes = pick.lanes

    def call(i: Any) -> Any:
        return (i & -(4 * lanes)) + (i & 3) * lanes + ((i & (4 * lanes - 1)) >> 2)

    return call


def add_values(values: Any, place: Any, total: Any) -> None:
    """Add the value of the leaf that each row reached, of which the total is at `total_of_row`.

    Reading values from memory row by row takes several times as long as an instruction that picks them from
    a register, where the processor has one.

    Parameters
    ----------
    values : (n_leaves,)
        Followed in memory by `PADDING` more.
    place, total : (n_rows,)
        A multiple of `LANES`.
    """
    for i in range(len(place)):
        total[i] += values[place[i]]


@compiled_as(add_values)
def _add_values(values: Any, place: Any, total: Any) -> Any:  # noqa: ARG001 - the same for all types
    from dichotomies._kernels.boosting.vectors import adder, find_pick

    pick = find_pick()
    if pick is None:
        return add_values
    rows, entries = 4 * pick.lanes, pick.entries
    add_all, add_part = adder(pick, is_part=False), adder(pick, is_part=True)

    def call(values: Any, place: Any, total: Any) -> None:
        if len(values) <= entries:
            for i in range(0, len(place), rows):
                add_all(values, 0, place, total, i)
        else:
            for first in range(0, len(values), entries):
                for i in range(0, len(place), rows):
                    add_part(values, first, place, total, i)

    return call
