"""Trees bred from trees: a genetic search for the one with the least NLL."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dichotomies.structures.balance import check_balance, depth_bound
from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure
from dichotomies.structures.best_of import TOLERANCE, grown_nameless, judge_of
from dichotomies.structures.fixed import resolve
from dichotomies.structures.tree_edits import crossed, normal_form, regrafted, swapped
from dichotomies.structures.two_means import TwoMeans

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies.tree import ClassTree

#: Changes in a row that lead to a tree already judged, after which the search ends.
_MOST_FAILURES = 100


@STRUCTURES.register("evolved")
class Evolved(Structure):
    """Trees bred from trees: a genetic search for the least out-of-fold NLL with the classifier's learner.

    It begins with a tree of "2-means" and random ones. Each new tree comes from one or two of the
    present ones, the better of two drawn at random: branches change places, a branch is hung elsewhere, or
    the classes below a node are arranged as in another tree. The best are kept. Grown without a classifier,
    by ``grow(X, y)``, trees are judged by linear discriminants guessed from the class centroids instead.

    Parameters
    ----------
    evaluations : int, default=100
        Trees judged, the first ones included.
    population : int, default=10
        Trees kept.
    structure : str or structure, default="random-pair"
        How the first trees but one are grown.
    seconds : float, optional
        Ends the search also after this time; the tree then depends on the machine's speed.
    max_rows : int, default=20000
        About how many rows they are judged on at most, drawn from each class in proportion.
    balance : float, default=0.0
        That of "2-means"; trees deeper than its bound, ``log(k) / -log(1 - s) + 1`` for a least share s of
        classes on either side, are not considered.

    References
    ----------
    Wever, Mohr & Hüllermeier, *Ensembles of evolved nested dichotomies for classification*, GECCO 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies.structures import STRUCTURES
    >>> X, y = load_iris(return_X_y=True)
    >>> STRUCTURES.create("evolved", evaluations=5).grow(X, y, random_state=0)
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
        if self.evaluations < 1 or self.population < 1:
            raise ValueError(
                f"evaluations and population must be at least 1, got {self.evaluations} and "
                f"{self.population}."
            )
        judge, seed = judge_of(task), int(rng.randint(2**31 - 1))
        search = _Search(
            lambda tree: judge(tree.over(task.classes), max_rows=self.max_rows, seed=seed),
            self.evaluations,
            self.seconds,
            depth_bound(task.n_classes, check_balance(self.balance)),
        )
        by_rows = task.classes[task.order]  # edits look at codes, and names must have no part in them
        search.try_out(TwoMeans(self.balance).grow_from(task, rng).over(by_rows))
        for _ in range(self.population - 1):
            search.try_out(grown_nameless(resolve(self.structure), task, rng).over(by_rows))
        while search.goes_on:
            search.keep(self.population)
            search.try_out(_child(search, rng))
        return search.best.over(task.classes)


class _Search:
    """The trees at present, best first, and what is left to spend."""

    def __init__(
        self,
        judge: Callable[[ClassTree], float],
        evaluations: int,
        seconds: float | None,
        most_depth: int,
    ) -> None:
        self._judge, self._left, self._most_depth = judge, evaluations, most_depth
        self._end = None if seconds is None else time.monotonic() + seconds
        self._seen: set[ClassTree] = set()
        self._failures = 0
        self.ranked: list[tuple[float, ClassTree]] = []

    @property
    def goes_on(self) -> bool:
        """Whether anything is left to spend, and new trees are still found."""
        in_time = self._end is None or time.monotonic() < self._end
        return self._left > 0 and self._failures < _MOST_FAILURES and in_time

    @property
    def best(self) -> ClassTree:
        """The tree with the least loss so far."""
        return self.ranked[0][1]

    def try_out(self, tree: ClassTree) -> None:
        """Judge a tree, unless it was before or is too deep, and put it in its rank behind its equals."""
        tree = normal_form(tree)
        if tree in self._seen or self._left == 0 or tree.max_depth > self._most_depth:
            self._failures += 1
            return
        self._seen.add(tree)
        self._left -= 1
        self._failures = 0
        loss = self._judge(tree)
        rank = sum(other <= loss + TOLERANCE * abs(loss) for other, _ in self.ranked)
        self.ranked.insert(rank, (loss, tree))

    def keep(self, population: int) -> None:
        """Forget all but the best."""
        del self.ranked[population:]

    def parent(self, rng: Any) -> ClassTree:
        """The better of two drawn at random."""
        rank = min(rng.randint(len(self.ranked), size=2))
        return self.ranked[int(rank)][1]


def _child(search: _Search, rng: Any) -> ClassTree:
    """A new tree from one or two of the present ones."""
    tree = search.parent(rng)
    change = rng.randint(3)
    if change == 0:
        return crossed(tree, search.parent(rng), rng)
    return swapped(tree, rng) if change == 1 else regrafted(tree, rng)
