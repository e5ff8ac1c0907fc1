"""Selection of the best of several random trees by out-of-fold NLL."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies.structures.base import (
    STRUCTURES,
    GrowingTask,
    Structure,
    TreeJudge,
    resolve,
    split_downwards,
)
from dichotomies.structures.random_pair import QuickJudge
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


#: Relative differences in NLL below this are ties, and the first tree is kept: rounding must not decide.
TOLERANCE = 1e-7


@STRUCTURES.register("best-of-k")
class BestOf(Structure):
    """The best of several random trees, by out-of-fold NLL with the classifier's own base learner.

    All trees are scored on the same rows and folds. When grown without a classifier, by ``grow(X, y)``,
    they are scored by linear discriminants on the class centroids instead.

    Parameters
    ----------
    n_trees : int, default=10
        Number of trees grown.
    structure : str or structure, default="random"
        Structure that grows them; "random" shuffles the classes from ``task.rows.class_order``, not by label.
    max_rows : int, default=20000
        Approximate maximum of rows used for scoring, drawn from each class in proportion.

    References
    ----------
    Melnikov & Hüllermeier, *On the effectiveness of heuristics for learning nested dichotomies: an empirical
    analysis*, Machine Learning 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies import NestedDichotomyClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> NestedDichotomyClassifier(structure="best-of-k", random_state=0).fit(X, y).tree_
    ClassTree.from_nested([0, [2, 1]])
    """

    def __init__(self, n_trees: int = 10, structure: Any = "random", max_rows: int = 20_000) -> None:
        self.n_trees = n_trees
        self.structure = structure
        self.max_rows = max_rows

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        if self.n_trees < 1:
            raise ValueError(f"n_trees must be at least 1, got {self.n_trees}.")
        base, judge, seed = resolve(self.structure), judge_of(task), int(rng.randint(2**31 - 1))
        best, lowest = None, float("inf")
        for _ in range(self.n_trees):
            tree = grow_by_rows(base, task, rng)
            loss = judge(tree, max_rows=self.max_rows, seed=seed)
            if best is None or loss < lowest - TOLERANCE * abs(lowest):
                best, lowest = tree, loss
        assert best is not None
        return best


def grow_by_rows(structure: Structure, task: GrowingTask, rng: Any) -> ClassTree:
    """Grow a tree that does not depend on the label names, even with "random"."""
    if isinstance(structure, RandomSplits):
        return random_splits(task, task.rows.class_order, rng)
    return structure.grow_from(task, rng)


def judge_of(task: GrowingTask) -> TreeJudge:
    """Return the classifier's judge, or one that needs no base learner."""
    return QuickJudge(task) if task.judge is None else task.judge
