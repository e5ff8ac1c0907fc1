"""Selection of the best of several random trees by out-of-fold NLL."""

from __future__ import annotations

from typing import Any

from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure, TreeJudge, resolve
from dichotomies.structures.quick import QuickJudge
from dichotomies.structures.random_splits import RandomSplits, random_splits
from dichotomies.tree import ClassTree

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
