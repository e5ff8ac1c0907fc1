"""Order in which a tree node tries the features: a deterministic pseudo-random permutation.

Among equally good features the first one tried is taken, and in small nodes many are equally good. With a
fixed order, all trees would use the same corner of an image, whereas scikit-learn tries features in random
order. Here the order is derived from the number of bins, the tree and the node.
"""

from typing import Any

import numpy as np

from dichotomies._kernels.compile import kernel


@kernel
def first_and_step(features: Any, n_features: int, number: int, node: int) -> tuple[Any, Any]:
    """Return the first feature to try and the (cyclic) step to the next one.

    Parameters
    ----------
    features : (n_features or more,) of FEATURE
    number : int
        Number of the tree.
    node : int
        The root, or the parent of the two nodes to be split.
    """
    mixed: Any = np.uint64(0)
    for part in (features[n_features - 1]["end"], features[n_features // 2]["begin"], number, node):
        mixed = mix_bits(mixed + np.uint64(part))
    first = np.int64(mixed % np.uint64(n_features))
    step = np.int64((mixed >> np.uint64(32)) % np.uint64(n_features))
    while not are_coprime(step, n_features):
        step += 1
    return first, step


@kernel(inline=True)
def mix_bits(x: Any) -> Any:
    """Mix 64 bits (the finaliser of SplitMix64: Steele, Lea & Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel(inline=True)
def are_coprime(a: Any, b: Any) -> bool:
    """Return True if steps of `a` visit all of `b` places (Euclid's algorithm)."""
    while b:
        a, b = b, a % b
    return bool(a == 1)
