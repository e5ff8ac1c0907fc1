"""Several trees over the same classes, and the nodes they have between them, each counted once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Each, Part, Size
from dichotomies.tree import ClassTree
from dichotomies.tree.node_keys import node_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray


@savable(
    "forest",
    trees=Each(Part(ClassTree, "n_nodes", "classes"), "n_trees"),
    place=Array("integer", "n_trees", "n_nodes", within=(0, 2**31)),
    is_exchanged=Array("boolean", "n_trees", "n_nodes"),
    n_different=Size("n_different"),
)
@dataclass(frozen=True)
class Forest:
    """Trees over the same classes.

    A node that splits the same classes the same way as one of an earlier tree is the same node: it is
    trained once and asked once. The different nodes are numbered tree by tree, as they first occur.

    Attributes
    ----------
    trees : sequence of ClassTree
    place : (n_trees, n_nodes)
        Each node's number among the different ones.
    is_exchanged : (n_trees, n_nodes)
        Whether left and right are the other way round where it first occurred.

    Examples
    --------
    >>> from dichotomies import ClassTree
    >>> from dichotomies.tree.forest import Forest
    >>> trees = [ClassTree.from_nested([["a", "b"], "c"]), ClassTree.from_nested([["c", "a"], "b"])]
    >>> Forest.of(trees).n_different, Forest.of([trees[0], trees[0]]).n_different
    (4, 2)
    """

    trees: Sequence[ClassTree]
    place: IntArray
    is_exchanged: BoolArray

    @classmethod
    def of(cls, trees: Sequence[ClassTree], *, shared: bool = True) -> Forest:
        """Find the nodes that trees have in common, or (not `shared`) let every tree have its own."""
        known: dict[object, tuple[int, bool]] = {}
        place = np.empty((len(trees), trees[0].n_nodes), dtype=np.intp)
        is_exchanged = np.zeros(place.shape, dtype=bool)
        for t, tree in enumerate(trees):
            keys = node_keys(tree)
            for k, (sides, exchanged) in enumerate(zip(keys.sides, keys.is_exchanged.tolist(), strict=True)):
                key = sides if shared else (t, sides)
                place[t, k], first = known.setdefault(key, (len(known), exchanged))
                is_exchanged[t, k] = first != exchanged
        return cls(trees, place, is_exchanged)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.trees[0].n_classes

    @property
    def n_different(self) -> int:
        """Number of different nodes."""
        return int(self.place.max()) + 1

    def new_nodes(self, t: int) -> IntArray:
        """The nodes of a tree that no tree before it has."""
        n_before = int(self.place[:t].max(initial=-1)) + 1
        return np.flatnonzero(self.place[t] >= n_before)

    def log_odds_of_tree(self, t: int, log_odds: FloatArray) -> FloatArray:
        """Log-odds at the nodes of a tree, of those at all different nodes."""
        mine: FloatArray = log_odds.take(self.place[t], axis=1)
        np.negative(mine, out=mine, where=self.is_exchanged[t])
        return mine
