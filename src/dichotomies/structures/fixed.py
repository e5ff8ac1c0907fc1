"""A tree the user already has, and whatever else the `structure` parameter accepts."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies.persistence import Estimator, savable
from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure
from dichotomies.tree import ClassTree


@savable("fixed-tree", Estimator())
class FixedTree(Structure):
    """Always the tree it was given.

    Parameters
    ----------
    tree : ClassTree or nested lists of labels
        It must have a leaf for every class it is asked for; classes that do not occur are left out. Where
        the labels are asked for by number, as scikit-learn's meta-estimators do, class i is the i-th
        label in sorted order.
    """

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:  # noqa: ARG002
        tree = self.tree if isinstance(self.tree, ClassTree) else ClassTree.from_nested(self.tree)
        if task.classes.dtype == tree.classes.dtype and np.array_equal(task.classes, tree.classes):
            return tree
        classes = set(task.classes.tolist())
        if not classes <= set(tree.classes.tolist()) and _are_codes(classes, tree.n_classes):
            tree = ClassTree(tree.leaf_order, tree.split_depth)
        occurring = classes & set(tree.classes.tolist())
        return (tree.restrict(occurring) if occurring else tree).over(task.classes)


def _are_codes(classes: set[Any], n_classes: int) -> bool:
    """Whether these look like the numbers of the classes rather than their labels."""
    return all(type(label) is int and 0 <= label < n_classes for label in classes)


def resolve(structure: Any) -> Structure:
    """Turn a name, a structure, a `ClassTree` or nested labels into a structure."""
    if isinstance(structure, ClassTree | list | tuple):
        return FixedTree(structure)
    return STRUCTURES.resolve(structure, Structure)
