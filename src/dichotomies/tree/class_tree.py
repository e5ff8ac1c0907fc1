"""`ClassTree`: the immutable tree of a nested dichotomy, as flat arrays.

With the leaves of a binary tree in order, every boundary between two neighbours is the split of exactly one
internal node. The tree is therefore determined by the order in which the boundaries are split, and is their
Cartesian tree: the boundary of lowest rank in a range is the root of that range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray, LabelArray
from dichotomies._common.validation import as_labels, codes_of
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Size, check_value
from dichotomies.tree.conversions import Conversions, draw

_REPR_CLASSES = 8


@dataclass(frozen=True)
class Cut:
    """The frontier of a tree at a depth: groups of classes that no node above it separates.

    Attributes
    ----------
    start, stop : ndarray of shape (n_groups,)
        Range of leaf positions of each group, from left to right.
    node : ndarray of shape (n_groups,)
        The internal node at the root of each group, or -1 for a leaf.
    group_of_class : ndarray of shape (n_classes,)
        The group of each class, by its position in ``tree.classes``.
    """

    start: IntArray
    stop: IntArray
    node: IntArray
    group_of_class: IntArray

    def __len__(self) -> int:
        return len(self.start)


@savable("class-tree", classes=Array("label", "n_classes", same="classes"), n_nodes=Size("n_nodes"))
@dataclass(frozen=True, init=False, eq=False, repr=False)
class ClassTree(Conversions):
    """A binary tree over classes.

    The leaves are ordered from left to right; an internal node is a range ``[start, stop)`` of leaf
    positions, with the classes at positions below ``split`` on its left and the others on its right. Nodes
    are numbered in level order: the root is 0 and a parent precedes its children. All arrays are read-only.

    Most trees are built by `from_nested`, `from_edges`, `from_parents` or `from_linkage`, or grown by a
    structure of `dichotomies.structures`.

    Parameters
    ----------
    leaves : sequence of labels
        The class labels, from the leftmost leaf to the rightmost.
    split_rank : sequence of n_classes - 1 numbers
        Order of the splits between neighbouring leaves: in any range of leaves, the boundary of lowest rank
        is split first. The depth of the node that separates leaf ``i`` from leaf ``i + 1`` is such a rank.
    classes : sequence of labels, optional
        All classes, in the order of their codes; by default the sorted leaves. They must match the leaves
        exactly.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The labels; a class's *code* is its position here.
    leaf_order : ndarray of shape (n_classes,)
        The class code at each leaf position.
    start, split, stop, depth, parent : ndarray of shape (n_nodes,)
        Range, split point, depth and parent (-1 for the root) of each internal node.
    left, right : ndarray of shape (n_nodes,)
        Children of each node: a node number, or ``~position`` (a negative number) for a leaf.
    leaf_depth : ndarray of shape (n_classes,)
        Number of nodes above each leaf position.

    Examples
    --------
    >>> from dichotomies import ClassTree
    >>> tree = ClassTree.from_nested([["cat", "dog"], ["ant", ["bee", "fly"]]])
    >>> tree
    ClassTree.from_nested([['cat', 'dog'], ['ant', ['bee', 'fly']]])
    >>> print(tree)
    [0] 5 classes
    ├─ [1] 2 classes
    │  ├─ cat
    │  └─ dog
    └─ [2] 3 classes
       ├─ ant
       └─ [3] 2 classes
          ├─ bee
          └─ fly
    >>> tree.mean_depth, tree.max_depth
    (2.4, 3)
    """

    classes: LabelArray
    leaf_order: IntArray
    start: IntArray
    split: IntArray
    stop: IntArray
    depth: IntArray
    parent: IntArray
    left: IntArray
    right: IntArray
    leaf_depth: IntArray

    def __init__(
        self,
        leaves: Sequence[Any] | LabelArray,
        split_rank: Sequence[float] | IntArray | FloatArray,
        classes: Sequence[Any] | LabelArray | None = None,
    ) -> None:
        labels = as_labels(leaves)
        if len(split_rank) != len(labels) - 1:
            raise ValueError(
                f"A tree over {len(labels)} leaves has {len(labels) - 1} splits, got {len(split_rank)}."
            )
        known, leaf_order = codes_of(labels, classes)
        ranks = np.asarray(split_rank, dtype=np.float64)
        if np.isnan(ranks).any():
            raise ValueError("The ranks of splits must be numbers, but one is NaN.")
        nodes = _level_order(ranks.tolist())
        left, right = _children(nodes.start, nodes.split, nodes.parent)
        arrays = {
            "classes": known,
            "leaf_order": leaf_order,
            **nodes._asdict(),
            "left": left,
            "right": right,
            "leaf_depth": _leaf_depth(nodes.split, nodes.depth),
        }
        for name, array in arrays.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    # ------------------------------------------------------------------ queries

    @property
    def n_classes(self) -> int:
        """Number of leaves."""
        return len(self.leaf_order)

    @property
    def n_nodes(self) -> int:
        """Number of internal nodes, one less than the number of classes."""
        return len(self.start)

    @property
    def leaf_labels(self) -> LabelArray:
        """The labels of the leaves from left to right."""
        labels: LabelArray = self.classes[self.leaf_order]
        return labels

    @property
    def leaf_position(self) -> IntArray:
        """The leaf position of each class, by code; the inverse of `leaf_order`."""
        position = np.empty(self.n_classes, dtype=np.intp)
        position[self.leaf_order] = np.arange(self.n_classes)
        return position

    @property
    def mean_depth(self) -> float:
        """Mean number of nodes above a leaf, unweighted."""
        return float(self.leaf_depth.mean())

    @property
    def max_depth(self) -> int:
        """Number of nodes above the deepest leaf."""
        return int(self.leaf_depth.max())

    def path(self, label: Any) -> tuple[IntArray, BoolArray]:
        """Return the nodes from the root to the class `label`, and a mask, True where the path goes left.

        Examples
        --------
        >>> nodes, goes_left = ClassTree.from_nested([["cat", "dog"], "ant"]).path("dog")
        >>> nodes.tolist(), goes_left.tolist()
        ([0, 1], [True, False])
        """
        matches = np.flatnonzero(self.leaf_labels == label)
        if len(matches) != 1:
            raise KeyError(f"{label!r} is not a class of this tree.")
        position = matches[0]
        within = (self.start <= position) & (position < self.stop)
        nodes = np.flatnonzero(within)  # in level order, so top down
        return nodes, position < self.split[nodes]

    def cut(self, depth: int) -> Cut:
        """Return the frontier at a `depth`: the nodes at that depth, and the leaves at it or above.

        Examples
        --------
        >>> tree = ClassTree.from_nested([["cat", "dog"], "ant"])
        >>> [tree.leaf_labels[a:b].tolist() for a, b in zip(tree.cut(1).start, tree.cut(1).stop)]
        [['cat', 'dog'], ['ant']]
        """
        if depth != int(depth) or depth < 0:
            raise ValueError(f"depth must be a whole number, 0 or more, got {depth}.")
        nodes = np.flatnonzero(self.depth == depth)
        leaves = np.flatnonzero(self.leaf_depth <= depth)
        start = np.concatenate([self.start[nodes], leaves])
        order = np.argsort(start)
        start, node = start[order], np.concatenate([nodes, np.full(len(leaves), -1)])[order]
        stop = np.append(start[1:], self.n_classes)
        group_of_class = np.empty(self.n_classes, dtype=np.intp)
        group_of_class[self.leaf_order] = np.repeat(np.arange(len(start)), stop - start)
        return Cut(start, stop, node, group_of_class)

    def over(self, classes: Sequence[Any] | LabelArray) -> ClassTree:
        """Return the same tree with codes taken from `classes`, which must be exactly its labels."""
        return ClassTree(self.leaf_labels, self.split_depth, classes)

    def restrict(self, labels: Iterable[Any]) -> ClassTree:
        """Return the tree over the classes `labels` only; nodes with one empty side are removed.

        Examples
        --------
        >>> ClassTree.from_nested([["cat", "dog"], ["ant", "bee"]]).restrict(["dog", "bee", "ant"])
        ClassTree.from_nested(['dog', ['ant', 'bee']])
        """
        wanted = as_labels(list(labels))
        unknown = set(wanted.tolist()) - set(self.classes.tolist())
        if unknown or not len(wanted):
            given = repr(min(unknown, key=repr)) if unknown else "nothing"
            raise KeyError(f"restrict() needs classes of this tree, but was given {given}.")
        kept = np.flatnonzero(np.isin(self.leaf_labels, wanted))
        # Neighbours are separated at the shallowest of the splits between them.
        inner = self.split_depth[kept[0] : kept[-1]]
        ranks = np.minimum.reduceat(inner, kept[:-1] - kept[0]) if len(kept) > 1 else inner
        return ClassTree(self.leaf_labels[kept], ranks, self.classes[np.isin(self.classes, wanted)])

    def draw(self, max_lines: int = 40) -> str:
        """Return a text drawing with node numbers; lower levels are elided beyond `max_lines`."""
        return draw(self, max_lines)

    # ------------------------------------------------------------------ comparison and serialisation

    @property
    def split_depth(self) -> IntArray:
        """Depth of the node that separates each leaf from the next; with the leaves, it defines the tree."""
        depth = np.empty(self.n_nodes, dtype=np.intp)
        depth[self.split - 1] = self.depth
        return depth

    def _key(self) -> tuple[Any, ...]:
        return tuple(self.leaf_labels.tolist()), tuple(self.classes.tolist()), self.split_depth.tobytes()

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, ClassTree) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return ClassTree, (self.leaf_labels, self.split_depth, self.classes)

    def saved_parts(self) -> dict[str, Any]:
        """Return the arrays that are saved; all others are derived from them."""
        return {"classes": self.classes, "leaf_order": self.leaf_order, "split_depth": self.split_depth}

    @classmethod
    def from_saved_parts(cls, classes: LabelArray, leaf_order: IntArray, split_depth: IntArray) -> ClassTree:
        """Restore a tree from `classes`, `leaf_order` and `split_depth`, which are validated."""
        names = {"n_classes": len(classes)}
        check_value(Array("integer", "n_classes", within=(0, "n_classes")), leaf_order, "leaf_order", names)
        check_value(Array("integer", (1, "n_classes", -1)), split_depth, "split_depth", names)
        return cls(classes[leaf_order], split_depth, classes)

    def __repr__(self) -> str:
        if self.n_classes <= _REPR_CLASSES:
            return f"ClassTree.from_nested({self.to_nested()!r})"
        return (
            f"<ClassTree: {self.n_classes} classes, depth {self.mean_depth:.1f} mean, {self.max_depth} max>"
        )

    def __str__(self) -> str:
        return self.draw()


def _children(start: IntArray, split: IntArray, parent: IntArray) -> tuple[IntArray, IntArray]:
    """Return the children of each node: leaves by default, overwritten by the nodes' parent links."""
    left, right = ~start, ~split
    child = np.arange(1, len(start))
    is_left = split[1:] < split[parent[1:]]
    left[parent[1:][is_left]] = child[is_left]
    right[parent[1:][~is_left]] = child[~is_left]
    return left, right


def _leaf_depth(split: IntArray, depth: IntArray) -> IntArray:
    """Return the leaf depths: one more than the deeper of the two neighbouring splits."""
    beside = np.full(len(split) + 2, -1, dtype=np.intp)
    beside[split] = depth
    return np.maximum(beside[:-1], beside[1:]) + 1


class _Nodes(NamedTuple):
    """One entry per internal node, in level order (by depth, then from left to right)."""

    start: IntArray
    split: IntArray
    stop: IntArray
    depth: IntArray
    parent: IntArray


def _level_order(split_rank: Sequence[float]) -> _Nodes:
    """Arrange the boundaries between leaves as nodes in level order.

    Parameters
    ----------
    split_rank : sequence of n_leaves - 1 numbers
        ``split_rank[i]`` belongs to the boundary between leaf ``i`` and leaf ``i + 1``. In any range of
        leaves the boundary of lowest rank is split first; ties go to the leftmost.
    """
    before, after = _enclosing_boundaries(split_rank)
    parent, depths = _parents_and_depths(split_rank, before, after)
    start, depth = np.asarray(before, dtype=np.intp) + 1, np.asarray(depths, dtype=np.intp)
    order = np.lexsort((start, depth))
    node_of_boundary = np.full(len(order) + 1, -1, dtype=np.intp)  # the last entry is the parent of the root
    node_of_boundary[order] = np.arange(len(order))
    return _Nodes(
        start=start[order],
        split=order.astype(np.intp) + 1,
        stop=np.asarray(after, dtype=np.intp)[order] + 1,
        depth=depth[order],
        parent=node_of_boundary[np.asarray(parent, dtype=np.intp)[order]],
    )


def _enclosing_boundaries(rank: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return the nearest boundary on either side that is split earlier (-1 and n if there is none)."""
    n = len(rank)
    before, after = [-1] * n, [n] * n
    pending: list[int] = []
    for i in range(n):
        while pending and rank[pending[-1]] > rank[i]:
            after[pending.pop()] = i
        if pending:
            before[i] = pending[-1]
        pending.append(i)
    return before, after


def _parents_and_depths(
    rank: Sequence[float], before: list[int], after: list[int]
) -> tuple[list[int], list[int]]:
    """Return parents and depths; the parent is the later split of the two enclosing boundaries, or -1."""
    n = len(rank)
    parent, depth = [-1] * n, [0] * n
    for i in sorted(range(n), key=lambda i: rank[i]):
        left, right = before[i], after[i]
        if right == n or (left >= 0 and rank[left] > rank[right]):
            parent[i] = left
        else:
            parent[i] = right
        depth[i] = depth[parent[i]] + 1 if parent[i] >= 0 else 0
    return parent, depth
