"""User-given trees, and conversion of the `structure` parameter to a structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies.persistence import Estimator, savable
from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure
from dichotomies.tree import ClassTree


@savable("fixed-tree", Estimator())
class FixedTree(Structure):
    """A tree given by the user.

    Parameters
    ----------
    tree : ClassTree or nested lists of labels
        It must have a leaf for every class in the data; leaves of absent classes are removed. If the
        data's labels are encoded as integers, as by scikit-learn's meta-estimators, class i is the i-th
        label of the tree in sorted order.
    """

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:  # noqa: ARG002
        tree = self.tree if isinstance(self.tree, ClassTree) else ClassTree.from_nested(self.tree)
        if task.rows.classes.dtype == tree.classes.dtype and np.array_equal(task.rows.classes, tree.classes):
            return tree
        classes = set(task.rows.classes.tolist())
        if not classes <= set(tree.classes.tolist()) and _are_codes(classes, tree.n_classes):
            tree = ClassTree(tree.leaf_order, tree.split_depth)
        occurring = classes & set(tree.classes.tolist())
        return (tree.restrict(occurring) if occurring else tree).over(task.rows.classes)


def _are_codes(classes: set[Any], n_classes: int) -> bool:
    """Return True if the labels are class codes rather than labels of the tree."""
    return all(type(label) is int and 0 <= label < n_classes for label in classes)


def resolve(structure: Any) -> Structure:
    """Turn a name, a structure, a `ClassTree` or nested labels into a structure."""
    if isinstance(structure, ClassTree | list | tuple):
        return FixedTree(structure)
    return STRUCTURES.resolve(structure, Structure)
