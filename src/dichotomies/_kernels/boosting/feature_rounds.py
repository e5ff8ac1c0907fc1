"""The order in which a tree node tries the features: scrambled, yet not random.

The first of equally good features is taken. In a small node many features are: were the order always the
same, all trees would use the same corner of an image, where scikit-learn's, which go through the features
in random order, use all of it. Here the order is scrambled by how many bins the rows have.
"""

from typing import Any

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies._kernels.compile import kernel


@kernel
def start_round(offsets: IntArray, number: int, node: int) -> tuple[Any, Any]:
    """First feature of a round and the step to the next: they differ by rows, tree and node.

    Parameters
    ----------
    offsets : (n_features + 1,)
        Where each feature's bins begin, and the end.
    number : int
        Number of the tree.
    node : int
        The root, or the parent of the two nodes to be searched.
    """
    n_features = len(offsets) - 1
    mixed: Any = np.uint64(0)
    for part in (offsets[n_features], offsets[n_features // 2], number, node):
        mixed = scramble(mixed + np.uint64(part))
    first = np.int64(mixed % np.uint64(n_features))
    step = np.int64((mixed >> np.uint64(32)) % np.uint64(n_features))
    while not have_no_common_divisor(step, n_features):
        step += 1
    return first, step


@kernel
def scramble(x: Any) -> Any:
    """Mix 64 bits (the finaliser of SplitMix64: Steele, Lea & Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def have_no_common_divisor(a: Any, b: Any) -> bool:
    """Test whether steps of `a` visit all of `b` places (Euclid)."""
    while b:
        a, b = b, a % b
    return bool(a == 1)
