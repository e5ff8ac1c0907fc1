"""A forest after its trees were edited: nodes that are those of before, and nodes that must be trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._common.typing import BoolArray, IntArray, LabelArray
from dichotomies.tree.class_tree import ClassTree
from dichotomies.tree.forest import Forest, node_keys

if TYPE_CHECKING:
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
    >>> from dichotomies.tree.edited_forest import grafted
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


@dataclass(frozen=True)
class EditedForest:
    """A forest, and where its distinct nodes come from.

    Attributes
    ----------
    forest : Forest
        Sides of nodes are exchanged relative to the node that was trained, see `Forest.is_exchanged`.
    source : (n_different,)
        Number of each distinct node among those of the forest before; -1 where it must be trained.
    new_nodes : list of (n_new,)
        For each tree the numbers of the nodes to train, in the order of the distinct nodes.
    """

    forest: Forest
    source: IntArray
    new_nodes: list[IntArray]

    @classmethod
    def of(cls, before: Forest, trees: Sequence[ClassTree], changed: BoolArray) -> EditedForest:
        """Compare edited trees with those before.

        A node is the one of before if that separates the same classes and none of them has changed.

        Parameters
        ----------
        trees : sequence of ClassTree
            One for each tree before, with the order of the leaves of before.
        changed : (n_classes,)
            True for classes of the new trees whose rows have changed.
        """
        codes, code_of_old = _common_codes(trees[0].classes, before.trees[0].classes)
        known: dict[object, tuple[int, bool]] = {}
        place = np.empty((len(trees), trees[0].n_nodes), dtype=np.intp)
        is_exchanged = np.zeros(place.shape, dtype=bool)
        source, new_nodes = [], []
        trained: dict[tuple[int, int], tuple[int, bool]] = {}
        for t in range(len(trees)):
            trained |= _trained(before, t, code_of_old)
        for t, tree in enumerate(trees):
            keys, is_touched = node_keys(tree, codes), _holds(tree, changed)
            own_new = []
            for k, (sides, exchanged) in enumerate(zip(keys.sides, keys.is_exchanged.tolist(), strict=True)):
                old, direction = (-1, exchanged) if is_touched[k] else trained.get(sides, (-1, exchanged))
                key = ("old", old) if old >= 0 else sides
                if key not in known:
                    known[key] = len(known), direction
                    source.append(old)
                    if old < 0:
                        own_new.append(k)
                place[t, k], direction = known[key]
                is_exchanged[t, k] = direction != exchanged
            new_nodes.append(np.array(own_new, dtype=np.intp))
        return cls(Forest(trees, place, is_exchanged), np.array(source, dtype=np.intp), new_nodes)


def _common_codes(classes: LabelArray, old: LabelArray) -> tuple[IntArray, IntArray]:
    """Codes of both sets of classes among all classes."""
    union = np.union1d(classes, old)
    return np.searchsorted(union, classes), np.searchsorted(union, old)


def _holds(tree: ClassTree, changed: BoolArray) -> BoolArray:
    """True for nodes with a class that has changed."""
    count = np.concatenate([[0], np.cumsum(changed[tree.leaf_order])])
    return np.asarray(count[tree.stop] > count[tree.start])


def _trained(before: Forest, t: int, codes: IntArray) -> dict[tuple[int, int], tuple[int, bool]]:
    """Distinct node and direction of the trained node, by the classes it separates, for nodes of a tree."""
    keys = node_keys(before.trees[t], codes)
    direction = keys.is_exchanged ^ before.is_exchanged[t]
    return dict(zip(keys.sides, zip(before.place[t].tolist(), direction.tolist(), strict=True), strict=True))
