"""A tree the user already has, and whatever else the `structure` parameter accepts."""

from __future__ import annotations

from typing import Any

from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure
from dichotomies.tree import ClassTree


class FixedTree(Structure):
    """Always the tree it was given.

    Parameters
    ----------
    tree : ClassTree or nested lists of labels
        Its leaves must be exactly the classes it is asked for.
    """

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:  # noqa: ARG002
        if isinstance(self.tree, ClassTree):
            return self.tree.over(task.classes)
        return ClassTree.from_nested(self.tree, task.classes)


def resolve(structure: Any) -> Structure:
    """Turn a name, a structure, a `ClassTree` or nested labels into a structure."""
    if isinstance(structure, Structure):
        return structure
    if isinstance(structure, str):
        return STRUCTURES.create(structure)
    if isinstance(structure, ClassTree | list | tuple):
        return FixedTree(structure)
    raise TypeError(
        f"structure must be one of {STRUCTURES.names()}, a structure object, a ClassTree or nested lists "
        f"of labels, got {structure!r}."
    )
