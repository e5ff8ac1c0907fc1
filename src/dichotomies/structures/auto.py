"""The default structure, chosen by the number of classes, out-of-fold NLL and the work it takes."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2
from typing import Any

import numpy as np

from dichotomies.rows import Rows
from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure
from dichotomies.structures.two_means import TwoMeans
from dichotomies.tree import ClassTree

#: Minimum number of classes for which deeper trees are compared with a shallow one.
_MANY_CLASSES = 100
#: Maximum of rows times classes for the comparison.
_MAX_PAIRS = 100_000_000
#: Rows on which trees are scored: this share of them, within these bounds.
_SHARE, _LEAST_ROWS, _MOST_ROWS = 0.2, 2_000, 6_000
#: Classes within which the first of the deeper trees is deep.
_FEW_CLASSES = 64
#: Share of the NLL that a tree must save for every doubling of the work.
_GAIN = 0.01


@STRUCTURES.register("auto")
class Auto(Structure):
    """The default: "2-means", or a deeper tree where that is a bargain; "random-pair" for ensembles.

    "2-means" trees are shallow and quick to train, and no other structure has a lower NLL overall. The deep
    trees of "single" can be much better with hundreds of classes, and take much longer to train. With 100
    classes or more, "2-means" is therefore compared with two trees that are deep only among similar classes
    ("single" with `max_classes`): among 64 of them, and among as many as `max_work` allows, all if possible.
    A tree must lower the NLL by 1 % for every doubling of the work: the number of rows that the nodes are
    trained on, a row counted at each of its nodes. NLLs are out of fold, with the classifier's learner and
    calibration, on a fifth of the rows, 2,000 to 6,000, all rows of a subset of the classes. This happens
    only if the learner is fast (logistic regression or naive Bayes) and rows times classes are at most 100
    million; otherwise, and when grown without a classifier, the tree is "2-means"; without features,
    "class-balanced". The rule follows measurements in the documentation and may change in a later version:
    name a structure to fix it.

    Parameters
    ----------
    diverse : bool, default=False
        Draw a different tree for every seed ("random-pair"); used by ensembles.
    max_work : float, default=8.0
        Budget: how many times the work of "2-means" a tree may take. Training time grows less than the work,
        because nodes that split off one class are quick to train.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies.structures import STRUCTURES
    >>> X, y = load_iris(return_X_y=True)
    >>> STRUCTURES.create("auto").grow(X, load_iris().target_names[y], random_state=0)
    ClassTree.from_nested(['setosa', ['versicolor', 'virginica']])
    """

    def __init__(self, diverse: bool = False, max_work: float = 8.0) -> None:
        self.diverse = diverse
        self.max_work = max_work

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        if task.rows.base is None:
            return _grown("class-balanced", task, rng)
        if self.diverse:
            return _grown("random-pair", task, rng)
        shallow = TwoMeans().grow_from(task, rng)
        is_many = task.rows.n_classes >= _MANY_CLASSES
        affordable = len(task.rows) * task.rows.n_classes <= _MAX_PAIRS
        if not is_many or not affordable or task.judge is None or not task.judge.is_quick:
            return shallow
        return self._best(task, shallow, rng)

    def _best(self, task: GrowingTask, shallow: ClassTree, rng: Any) -> ClassTree:
        """Return the best bargain, and say what was compared."""
        assert task.judge is not None
        max_rows = int(np.clip(_SHARE * len(task.rows), _LEAST_ROWS, _MOST_ROWS))
        sample: Any = {"max_rows": max_rows, "seed": 0, "whole_classes": True, "calibrated": True}
        least = _work(shallow, task.rows)
        best, name, lowest, cost = shallow, "2-means", task.judge(shallow, **sample), 1.0
        said = [f"{name} {lowest:.3f}"]
        for title, tree in self._deeper(task, least, rng):
            times, loss = _work(tree, task.rows) / least, task.judge(tree, **sample)
            said.append(f"{title} {loss:.3f} at {times:.1f} times the work")
            if loss < (1 - _GAIN * max(log2(times / cost), 0.0)) * lowest:
                best, name, lowest, cost = tree, title, loss, times
        task.notes.append(f"tree: {name}, of {len(said)} by NLL out of fold and work ({'; '.join(said)})")
        return best

    def _deeper(self, task: GrowingTask, least: float, rng: Any) -> Iterator[tuple[str, ClassTree]]:
        """Yield trees within the budget by name: deep among few classes, and among as many as it allows."""
        deepest, limit = None, _FEW_CLASSES
        while limit < 2 * task.rows.n_classes:
            whole = limit >= task.rows.n_classes
            tree = _grown("single", task, rng, max_classes=None if whole else limit)
            if _work(tree, task.rows) > self.max_work * least:
                break
            deepest = ("single" if whole else f"single among {limit}"), tree
            if limit == _FEW_CLASSES:
                yield deepest
            limit *= 2
        if deepest is not None and limit > 2 * _FEW_CLASSES:
            yield deepest


def _work(tree: ClassTree, rows: Rows) -> float:
    """Weight of the rows at all nodes."""
    return max(float(rows.class_weight[tree.leaf_order] @ tree.leaf_depth), np.finfo(float).tiny)


def _grown(name: str, task: GrowingTask, rng: Any, **params: Any) -> ClassTree:
    tree: ClassTree = STRUCTURES.create(name, **params).grow_from(task, rng)
    return tree
