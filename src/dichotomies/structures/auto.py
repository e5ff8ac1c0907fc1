"""The default structure, chosen by the number of classes and out-of-fold NLL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure

if TYPE_CHECKING:
    from dichotomies.tree import ClassTree

#: Minimum number of classes for which a deep tree is compared with a shallow one.
_MANY_CLASSES = 100
#: Maximum of rows times classes for the comparison: a minute or two of logistic regression.
_MAX_PAIRS = 100_000_000
#: Number of rows on which the two trees are scored.
_JUDGING_ROWS = 6_000


@STRUCTURES.register("auto")
class Auto(Structure):
    """The default: "2-means", or "single" where that is better and affordable; "random-pair" for ensembles.

    "2-means" trees are shallow and quick to train, and no other structure has a lower NLL overall. The deep
    trees of "single" can be much better with hundreds of classes. With at least 100 classes, both are
    therefore grown, and the one with the lower out-of-fold NLL is returned. They are scored with the
    classifier's own learner on all rows of a subset of the classes. This happens only if the learner is fast
    (logistic regression or naive Bayes) and rows times classes are at most 100 million; otherwise, and when
    grown without a classifier, the tree is "2-means"; without features, "class-balanced". The rule follows
    the study in the documentation and may change in a later version: name a structure to fix it.

    Parameters
    ----------
    diverse : bool, default=False
        Draw a different tree for every seed ("random-pair"); used by ensembles.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies.structures import STRUCTURES
    >>> X, y = load_iris(return_X_y=True)
    >>> STRUCTURES.create("auto").grow(X, load_iris().target_names[y], random_state=0)
    ClassTree.from_nested(['setosa', ['versicolor', 'virginica']])
    """

    def __init__(self, diverse: bool = False) -> None:
        self.diverse = diverse

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:
        if task.rows.base is None:
            return _grown("class-balanced", task, rng)
        if self.diverse:
            return _grown("random-pair", task, rng)
        shallow = _grown("2-means", task, rng)
        affordable = len(task.rows) * task.rows.n_classes <= _MAX_PAIRS
        if (
            task.rows.n_classes < _MANY_CLASSES
            or not affordable
            or task.judge is None
            or not task.judge.is_quick
        ):
            return shallow
        deep = _grown("single", task, rng)
        sample: Any = {"max_rows": _JUDGING_ROWS, "seed": 0, "whole_classes": True}
        return deep if task.judge(deep, **sample) < task.judge(shallow, **sample) else shallow


def _grown(name: str, task: GrowingTask, rng: Any) -> ClassTree:
    tree: ClassTree = STRUCTURES.create(name).grow_from(task, rng)
    return tree
