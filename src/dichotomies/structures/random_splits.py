"""Random trees under three distributions that differ in depth and balance."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure, split_downwards
from dichotomies.tree import ClassTree


@STRUCTURES.register("random")
class RandomSplits(Structure):
    """Shuffled classes and a split point uniform in 1..k-1 at every node: the paper's random trees.

    Drawing every split point uniformly is equivalent to splitting the boundaries between leaves in a random
    order, which is how it is implemented. The mean leaf depth is ``2 (H_k - 1)``, 12.97 at 1,000 classes.

    The tree depends on the seed and the sorted labels alone, not on the rows: a seed puts the i-th label at
    the same leaf for any data. The stored results of the paper's reproduction rely on it. Hence, unlike with
    every other structure, permuting the label names gives a different tree; names that sort as before give
    the same tree, and all assignments of labels to leaves are equally likely.

    References
    ----------
    Leathart, Frank, Pfahringer & Holmes, *On the Calibration of Nested Dichotomies for Large Multiclass
    Tasks*.

    Examples
    --------
    >>> from dichotomies.structures import STRUCTURES
    >>> STRUCTURES.create("random").grow(None, list("abcde"), random_state=0)
    ClassTree.from_nested(['c', [['a', 'b'], ['d', 'e']]])
    """

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        return random_splits(task, np.arange(task.rows.n_classes), rng)


def random_splits(task: GrowingTask, codes: IntArray, rng: Any) -> ClassTree:
    """Draw a tree of "random" over `codes`, shuffled from the order given."""
    return task.tree(rng.permutation(codes), rng.permutation(task.rows.n_classes - 1))


@STRUCTURES.register("coin-flip")
class CoinFlips(Structure):
    """Every class goes left or right by a fair coin; the node is redrawn if one side is empty.

    Nearly balanced: both sides of a large node hold about half of its classes.

    Examples
    --------
    >>> from dichotomies.structures import STRUCTURES
    >>> STRUCTURES.create("coin-flip").grow(None, list("abcde"), random_state=0)
    ClassTree.from_nested([['e', ['c', 'b']], ['d', 'a']])
    """

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        def split(codes: IntArray) -> tuple[IntArray, IntArray]:
            while True:
                heads = rng.randint(2, size=len(codes)).astype(bool)
                if heads.any() and not heads.all():
                    return codes[heads], codes[~heads]

        return split_downwards(task, split)


@STRUCTURES.register("uniform")
class UniformTrees(Structure):
    """A draw from the uniform distribution over the (2k-3)!! trees with k classes.

    Grown leaf by leaf: the next class is inserted into an edge of the tree so far, or above its root, every
    place equally likely. Uniform trees are deep: the mean leaf depth grows like the square root of k.

    References
    ----------
    Frank & Kramer, *Ensembles of nested dichotomies for multi-class problems*, ICML 2004.

    Examples
    --------
    >>> from dichotomies.structures import STRUCTURES
    >>> STRUCTURES.create("uniform").grow(None, list("abcde"), random_state=0)
    ClassTree.from_nested(['b', [['a', 'd'], ['c', 'e']]])
    """

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        k = task.rows.n_classes
        parent = [-1] * (2 * k - 1)  # leaf i is node i; its insertion creates node k + i - 1
        node_at = [0]
        for leaf in range(1, k):
            beside = node_at[rng.randint(len(node_at))]
            joint = k + leaf - 1
            parent[joint] = parent[beside]
            parent[beside] = parent[leaf] = joint
            node_at += [leaf, joint]
        return ClassTree.from_parents(parent, labels=task.rows.classes[task.rows.class_order]).over(
            task.rows.classes
        )
