"""The leaf that each of some rows reaches in a tree, all rows going through one split after another."""

from typing import Any

import numpy as np

from dichotomies._kernels.compile import kernel


@kernel
def move_above(codes: Any, limit: Any, stays: Any, leaf: Any, new_leaf: Any, place: Any) -> None:
    """Move the rows at a leaf with codes above the limit, but for one code that stays, to another leaf."""
    for i in range(len(place)):
        moved = new_leaf if (codes[i] > limit) & (codes[i] != stays) else leaf
        place[i] = moved if place[i] == leaf else place[i]


@kernel
def move_categories(codes: Any, bits: Any, leaf: Any, new_leaf: Any, place: Any) -> None:
    """Move the rows at a leaf whose categories are not in the set to another one."""
    for i in range(len(place)):
        code = np.int64(codes[i]) & 255
        stays = (bits[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) == np.uint64(1)
        moved = leaf if stays else new_leaf
        place[i] = moved if place[i] == leaf else place[i]
