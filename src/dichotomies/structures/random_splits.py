"""Trees drawn at random, by three laws that differ in how deep and how uneven they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure, split_downwards
from dichotomies.tree import ClassTree

if TYPE_CHECKING:
    from dichotomies._common.typing import IntArray


@STRUCTURES.register("random")
class RandomSplits(Structure):
    """Shuffled classes, split point uniform in 1..k-1 at every node: the paper's trees.

    Choosing every split point uniformly is the same as splitting the boundaries between leaves in a
    random order, which is how it is done here. The mean leaf depth is ``2 (H_k - 1)``, 12.97 at 1,000
    classes.

    The tree depends on the seed and the sorted labels alone, not on the rows: a seed puts the i-th label
    at the same leaf whatever the data. The stored results of the paper's reproduction are for such trees, so
    it stays so. Hence, unlike with every other structure, permuting the names of the classes gives another
    tree; names that sort as before give the same, and all ways to name the leaves are equally likely.

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
        return random_splits(task, np.arange(task.n_classes), rng)


def random_splits(task: GrowingTask, codes: IntArray, rng: Any) -> ClassTree:
    """Draw a tree of "random" over class codes, which a seed shuffles from the order they are given in."""
    return task.tree(rng.permutation(codes), rng.permutation(task.n_classes - 1))


@STRUCTURES.register("coin-flip")
class CoinFlips(Structure):
    """Every class goes left or right by a fair coin, thrown anew if one side stays empty.

    Close to balanced: both sides of a large node hold about half of its classes.

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
    """Every one of the (2k-3)!! trees over k classes is equally likely.

    Grown leaf by leaf: the next class is hung into an edge of the tree so far (or above its root),
    every place equally likely. Uniform trees are deep: the mean leaf depth grows like the square root
    of k.

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
        k = task.n_classes
        parent = [-1] * (2 * k - 1)  # leaf i is node i; inserting it makes node k + i - 1
        node_at = [0]
        for leaf in range(1, k):
            beside = node_at[rng.randint(len(node_at))]
            joint = k + leaf - 1
            parent[joint] = parent[beside]
            parent[beside] = parent[leaf] = joint
            node_at += [leaf, joint]
        return ClassTree.from_parents(parent, labels=task.classes[task.order]).over(task.classes)
