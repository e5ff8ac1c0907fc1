"""The tree that is grown where the user does not say which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure

if TYPE_CHECKING:
    from dichotomies.tree import ClassTree


@STRUCTURES.register("auto")
class Auto(Structure):
    """The default: "2-means" on the class centroids, or "random-pair" where trees have to differ.

    Without features it is "class-balanced". Chosen for the NLL over the data, learners and calibrations of
    the study in the documentation; a later version may choose otherwise. Name the structure to keep it.

    Parameters
    ----------
    diverse : bool, default=False
        Whether every seed shall give another tree, as an ensemble needs them.

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
        name = "class-balanced" if task.X is None else "random-pair" if self.diverse else "2-means"
        tree: ClassTree = STRUCTURES.create(name).grow_from(task, rng)
        return tree
