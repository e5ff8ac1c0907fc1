"""New classes in a tree: leaves beside existing ones, no deeper than a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.tree.class_tree import ClassTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import FloatArray


def greatest_depth(n_classes: int) -> float:
    """Depth that new leaves do not exceed: half as deep again as a balanced tree, and one."""
    return 1.5 * float(np.log2(n_classes)) + 1.0


def grafted(tree: ClassTree, labels: Sequence[Any], affinity: FloatArray, classes: Any) -> ClassTree:
    """Return the tree with new classes, each as the sibling of the class that it has most affinity to.

    Classes are added one after another, a later one possibly beside an earlier one. Leaves whose sibling
    would be deeper than `greatest_depth` are passed over; there is always one that is not.

    Parameters
    ----------
    labels : sequence of n_new labels
        The new classes.
    affinity : (n_new, n_leaves + n_new)
        Of each new class to the classes of the leaves, from left to right, then to the new classes.
    classes : array of labels
        All classes of the new tree, in the order of their codes.

    Examples
    --------
    >>> from dichotomies import ClassTree
    >>> from dichotomies.tree.grafting import grafted
    >>> tree = ClassTree.from_nested([["cat", "dog"], "ant"])
    >>> affinity = np.array([[0.1, 0.2, 0.9, 0.0, 0.0], [0.1, 0.2, 0.3, 0.9, 0.0]])
    >>> grafted(tree, ["bee", "fly"], affinity, ["ant", "bee", "cat", "dog", "fly"])
    ClassTree.from_nested([['cat', 'dog'], ['ant', ['bee', 'fly']]])
    """
    leaves, column = tree.leaf_labels.tolist(), list(range(tree.n_classes))
    depth, split_depth = tree.leaf_depth.tolist(), tree.split_depth.tolist()
    for i, label in enumerate(labels):
        is_free = np.array(depth) + 1 <= greatest_depth(len(leaves) + 1)
        at = int(np.argmax(np.where(is_free, affinity[i, column], -np.inf)))
        leaves.insert(at + 1, label)
        column.insert(at + 1, tree.n_classes + i)
        split_depth.insert(at, depth[at])
        depth[at : at + 1] = [depth[at] + 1] * 2
    return ClassTree(leaves, split_depth, classes)
