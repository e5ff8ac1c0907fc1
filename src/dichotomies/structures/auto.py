"""The tree that is grown where the user does not say which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure

if TYPE_CHECKING:
    from dichotomies.tree import ClassTree

#: From so many classes on a deep tree may be better than a shallow one.
_MANY_CLASSES = 100
#: Rows times classes, up to which a deep tree is affordable: it takes a minute or two of logistic regression.
_MOST_PAIRS = 100_000_000
#: Rows on which the two are compared.
_JUDGING_ROWS = 6_000


@STRUCTURES.register("auto")
class Auto(Structure):
    """The default: "2-means", or "single" where that is better and affordable; "random-pair" for ensembles.

    Trees of "2-means" are shallow and quick to train, and no other kind has a lower NLL on the whole. The
    deep ones of "single" can be much better with hundreds of classes. So from 100 classes on, both are tried
    out of fold, with the classifier's own learner and on all rows of some of the classes, as long as that
    learner is a quick one (logistic regression or naive Bayes) and rows times classes are at most 100
    million. Otherwise, and where there is no classifier, it is "2-means"; without features,
    "class-balanced". Chosen by the study in the documentation; a later version may choose otherwise. Name
    the structure to keep it.

    Parameters
    ----------
    diverse : bool, default=False
        Whether every seed shall give another tree, as an ensemble needs them: "random-pair".

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
        if task.X is None:
            return _grown("class-balanced", task, rng)
        if self.diverse:
            return _grown("random-pair", task, rng)
        shallow = _grown("2-means", task, rng)
        affordable = len(task.codes) * task.n_classes <= _MOST_PAIRS
        if task.n_classes < _MANY_CLASSES or not affordable or task.judge is None or not task.judge.is_quick:
            return shallow
        deep = _grown("single", task, rng)
        sample: Any = {"max_rows": _JUDGING_ROWS, "seed": 0, "whole_classes": True}
        return deep if task.judge(deep, **sample) < task.judge(shallow, **sample) else shallow


def _grown(name: str, task: GrowingTask, rng: Any) -> ClassTree:
    tree: ClassTree = STRUCTURES.create(name).grow_from(task, rng)
    return tree
