"""Identification of nodes that split the same classes the same way, across trees."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray
    from dichotomies.tree.class_tree import ClassTree


class NodeKeys(NamedTuple):
    """Keys that identify the nodes of a tree.

    Attributes
    ----------
    sides : list of pairs of int
        Hashes of the class sets of both sides, the lower first.
    is_exchanged : (n_nodes,)
        True if the lower hash is that of the right side.
    """

    sides: list[tuple[int, int]]
    is_exchanged: BoolArray


def node_keys(tree: ClassTree) -> NodeKeys:
    """Return keys that are equal if and only if two nodes over the same classes split the same class sets.

    The hash of a class set is the sum of random 64-bit numbers, one per class: two different pairs of sets
    collide with probability 2 to the power of -128.

    Examples
    --------
    >>> from dichotomies import ClassTree
    >>> from dichotomies.tree.node_keys import node_keys
    >>> one, other = ClassTree.from_nested([["a", "b"], "c"]), ClassTree.from_nested(["c", ["a", "b"]])
    >>> node_keys(one).sides == node_keys(other).sides
    True
    >>> (node_keys(one).is_exchanged ^ node_keys(other).is_exchanged).tolist()
    [True, False]
    """
    number = _numbers(tree.n_classes)[tree.leaf_order]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(number)])
    left, right = sums[tree.split] - sums[tree.start], sums[tree.stop] - sums[tree.split]
    pairs = zip(np.minimum(left, right).tolist(), np.maximum(left, right).tolist(), strict=True)
    return NodeKeys(list(pairs), right < left)


@lru_cache(maxsize=8)
def _numbers(n_classes: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(0).integers(2**64, size=n_classes, dtype=np.uint64)
