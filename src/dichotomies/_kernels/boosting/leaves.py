"""Rows that go through a tree together, one split after another, and the values of the leaves they reach."""

from typing import Any

import numpy as np

from dichotomies._kernels.compile import kernel


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


@kernel
def add_values(values: Any, place: Any, total: Any) -> None:
    """Add the value of the leaf that each row reached.

    Values of up to eight leaves stay in registers and are chosen by the bits of the leaf's number: reading
    them from memory row by row takes two to three times as long.

    Parameters
    ----------
    values : (n_leaves,)
    place, total : (n_rows,)
    """
    last = len(values) - 1
    v0, v1, v2, v3 = values[0], values[min(1, last)], values[min(2, last)], values[min(3, last)]
    if last < 4:
        for i in range(len(place)):
            is_odd = (place[i] & np.uint8(1)) != 0
            low, high = v1 if is_odd else v0, v3 if is_odd else v2
            total[i] += high if (place[i] & np.uint8(2)) != 0 else low
    elif last < 8:
        v4, v5, v6, v7 = values[4], values[min(5, last)], values[min(6, last)], values[min(7, last)]
        for i in range(len(place)):
            is_odd, is_upper = (place[i] & np.uint8(1)) != 0, (place[i] & np.uint8(2)) != 0
            low, next_low = v1 if is_odd else v0, v3 if is_odd else v2
            high, next_high = v5 if is_odd else v4, v7 if is_odd else v6
            low, high = next_low if is_upper else low, next_high if is_upper else high
            total[i] += high if (place[i] & np.uint8(4)) != 0 else low
    else:
        for i in range(len(place)):
            total[i] += values[place[i]]
