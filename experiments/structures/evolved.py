"""Genetic search for the tree with the lowest out-of-fold NLL."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dichotomies.structures.base import (
    GrowingTask,
    Structure,
    check_balance,
    depth_bound,
    resolve,
)
from dichotomies.structures.best_of import TOLERANCE, grow_by_rows, judge_of
from dichotomies.structures.two_means import TwoMeans
from dichotomies.tree import ClassTree
from experiments.structures.tree_edits import crossed, normal_form, regrafted, swapped

#: Consecutive proposals without a new tree after which the search ends.
_MAX_FAILURES = 100


class Evolved(Structure):
    """Genetic search for the tree with the lowest out-of-fold NLL under the classifier's own base learner.

    The first population is a "2-means" tree and random trees. Parents are selected by binary tournament, and
    a child swaps two subtrees, regrafts one, or rearranges the classes below a node as in a second parent.
    The best trees survive. When grown without a classifier, by ``grow(X, y)``, trees are scored by linear
    discriminants on the class centroids instead.

    Parameters
    ----------
    evaluations : int, default=100
        Number of trees scored, the first population included.
    population : int, default=10
        Number of trees kept.
    structure : str or structure, default="random-pair"
        Structure of the random trees in the first population.
    seconds : float, optional
        Time limit of the search; the tree then depends on the machine's speed.
    max_rows : int, default=20000
        Approximate maximum of rows used for scoring, drawn from each class in proportion.
    balance : float, default=0.0
        The `balance` of "2-means"; trees deeper than its bound, ``log(k) / -log(1 - s) + 1`` for a minimum
        share s of classes on either side, are rejected.

    References
    ----------
    Wever, Mohr & Hüllermeier, *Ensembles of evolved nested dichotomies for classification*, GECCO 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from experiments.structures import Evolved
    >>> X, y = load_iris(return_X_y=True)
    >>> Evolved(evaluations=5).grow(X, y, random_state=0)
    ClassTree.from_nested([0, [1, 2]])
    """

    def __init__(
        self,
        evaluations: int = 100,
        population: int = 10,
        structure: Any = "random-pair",
        seconds: float | None = None,
        max_rows: int = 20_000,
        balance: float = 0.0,
    ) -> None:
        self.evaluations = evaluations
        self.population = population
        self.structure = structure
        self.seconds = seconds
        self.max_rows = max_rows
        self.balance = balance

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        """Search for the tree, within the budget."""
        if self.evaluations < 1 or self.population < 1:
            raise ValueError(
                f"evaluations and population must be at least 1, got {self.evaluations} and "
                f"{self.population}."
            )
        judge, seed = judge_of(task), int(rng.randint(2**31 - 1))
        search = _Search(
            lambda tree: judge(tree.over(task.rows.classes), max_rows=self.max_rows, seed=seed),
            self.evaluations,
            self.seconds,
            depth_bound(task.rows.n_classes, check_balance(self.balance)),
        )
        by_rows = task.rows.classes[task.rows.class_order]
        search.evaluate(TwoMeans(self.balance).grow_from(task, rng).over(by_rows))
        for _ in range(self.population - 1):
            search.evaluate(grow_by_rows(resolve(self.structure), task, rng).over(by_rows))
        while search.should_continue:
            search.keep(self.population)
            search.evaluate(_child(search, rng))
        return search.best.over(task.rows.classes)


class _Search:
    """The population, best first, and the remaining budget."""

    def __init__(
        self,
        judge: Callable[[ClassTree], float],
        evaluations: int,
        seconds: float | None,
        max_depth: int,
    ) -> None:
        self._judge, self._left, self._max_depth = judge, evaluations, max_depth
        self._end = None if seconds is None else time.monotonic() + seconds
        self._seen: set[ClassTree] = set()
        self._failures = 0
        self.ranked: list[tuple[float, ClassTree]] = []

    @property
    def should_continue(self) -> bool:
        """True while budget is left and new trees are still found."""
        in_time = self._end is None or time.monotonic() < self._end
        return self._left > 0 and self._failures < _MAX_FAILURES and in_time

    @property
    def best(self) -> ClassTree:
        """The tree with the lowest loss so far."""
        return self.ranked[0][1]

    def evaluate(self, tree: ClassTree) -> None:
        """Score a tree unless it is a duplicate or too deep, and insert it after trees of equal loss."""
        tree = normal_form(tree)
        if tree in self._seen or self._left == 0 or tree.max_depth > self._max_depth:
            self._failures += 1
            return
        self._seen.add(tree)
        self._left -= 1
        self._failures = 0
        loss = self._judge(tree)
        rank = sum(other <= loss + TOLERANCE * abs(loss) for other, _ in self.ranked)
        self.ranked.insert(rank, (loss, tree))

    def keep(self, population: int) -> None:
        """Discard all but the best."""
        del self.ranked[population:]

    def parent(self, rng: Any) -> ClassTree:
        """Draw two trees and return the better one."""
        rank = min(rng.randint(len(self.ranked), size=2))
        return self.ranked[int(rank)][1]


def _child(search: _Search, rng: Any) -> ClassTree:
    """Return a new tree made from one or two parents."""
    tree = search.parent(rng)
    change = rng.randint(3)
    if change == 0:
        return crossed(tree, search.parent(rng), rng)
    return swapped(tree, rng) if change == 1 else regrafted(tree, rng)
