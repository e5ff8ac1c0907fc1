"""Conversion of trees to and from other notations: nested lists, edges, parents, scipy linkage.

Every notation is traversed once from left to right, without recursion, which gives the leaves in order
and, for each pair of neighbours, the depth of the node that separates them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from reprlib import repr as shorten
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import IntArray, LabelArray

if TYPE_CHECKING:
    from dichotomies.tree.class_tree import ClassTree

_NAME_WIDTH = 32
_LIST_WIDTH = 48


def draw(tree: ClassTree, max_lines: int) -> str:
    """Draw the top of the tree, level by level, in at most `max_lines` lines.

    Expanding a node adds two lines, and nodes are numbered in level order, so the expanded nodes are the
    first ``(max_lines - 1) // 2``.
    """
    if max_lines < 1:
        raise ValueError(f"max_lines must be at least 1, got {max_lines}.")
    n_open = (max_lines - 1) // 2
    names = [_clip(" ".join(str(label).split()), _NAME_WIDTH) for label in tree.leaf_labels.tolist()]
    left, right = tree.left.tolist(), tree.right.tolist()
    lines = []
    pending: list[tuple[int, str, str]] = [(0 if tree.n_nodes else ~0, "", "")]
    while pending:
        node, lead, indent = pending.pop()
        if node < 0:
            lines.append(lead + names[~node])
            continue
        start, stop = int(tree.start[node]), int(tree.stop[node])
        text = f"{lead}[{node}] {stop - start} classes"
        if node >= n_open:
            lines.append(f"{text}: {_listing(names[start:stop])}")
            continue
        lines.append(text)
        pending.append((right[node], indent + "└─ ", indent + "   "))
        pending.append((left[node], indent + "├─ ", indent + "│  "))
    return "\n".join(lines)


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _listing(names: list[str]) -> str:
    """Return as many names as fit on a line, always including the last."""
    shown: list[str] = []
    room = _LIST_WIDTH - len(names[-1])
    for name in names[:-1]:
        room -= len(name) + 2
        if room < 0:
            shown.append("…")
            break
        shown.append(name)
    return ", ".join([*shown, names[-1]])


class Conversions:
    """Constructors of a `ClassTree` from other notations, and back."""

    if TYPE_CHECKING:  # of the class that these are constructors of
        left: IntArray
        right: IntArray

        @property
        def leaf_labels(self) -> LabelArray: ...  # noqa: D102

        def __init__(self, leaves: Any, split_rank: Any, classes: Any = None) -> None: ...

    @classmethod
    def from_nested(cls, nested: Any, classes: Sequence[Any] | LabelArray | None = None) -> Self:
        """Build from `nested` pairs, lists or tuples of labels; `classes` are those of the constructor."""
        return cls(*_walk(nested, lambda item: item if isinstance(item, list | tuple) else None), classes)

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[Hashable, Hashable]]) -> Self:
        """Build from `edges` (parent, child); a node that is never a parent is a leaf and names its class.

        Examples
        --------
        >>> from dichotomies import ClassTree
        >>> ClassTree.from_edges([("pet", "cat"), ("pet", "dog"), ("root", "pet"), ("root", "ant")])
        ClassTree.from_nested([['cat', 'dog'], 'ant'])
        """
        return cls(*_of_edges(edges))

    @classmethod
    def from_parents(
        cls,
        parents: Mapping[Hashable, Hashable] | Sequence[int] | IntArray,
        labels: Sequence[Any] | LabelArray | Mapping[int, Any] | None = None,
    ) -> Self:
        """Build from each node's parent.

        Parameters
        ----------
        parents : mapping or sequence of int
            A mapping ``{child: parent}``, or a list where entry ``i`` is the number of node ``i``'s
            parent and -1 marks the root.
        labels : sequence or mapping, optional
            The class label of each leaf, by node number. By default a leaf is its own label.

        Examples
        --------
        >>> from dichotomies import ClassTree
        >>> ClassTree.from_parents([-1, 0, 0, 1, 1], labels=["", "", "ant", "cat", "dog"])
        ClassTree.from_nested([['cat', 'dog'], 'ant'])
        """
        leaves, split_depth = _of_parents(parents)
        if labels is None:
            return cls(leaves, split_depth)
        try:
            return cls([labels[leaf] for leaf in leaves], split_depth)
        except (IndexError, KeyError) as error:
            raise ValueError("labels must have an entry for every node that is a leaf.") from error

    @classmethod
    def from_linkage(cls, linkage: npt.ArrayLike, labels: Sequence[Any] | LabelArray | None = None) -> Self:
        """Build from a `linkage` matrix of scipy over classes with these `labels`.

        Examples
        --------
        >>> from scipy.cluster.hierarchy import linkage
        >>> from dichotomies import ClassTree
        >>> ClassTree.from_linkage(linkage([[0.0], [9.0], [1.0]]), labels=["low", "high", "low too"])
        ClassTree.from_nested(['high', ['low', 'low too']])
        """
        return cls(*_of_linkage(linkage, labels))

    def to_nested(self) -> Any:
        """Return nested lists of labels, the inverse of `from_nested`."""
        leaves = self.leaf_labels.tolist()
        built: list[Any] = [None] * len(self.left)
        for node in range(len(self.left) - 1, -1, -1):
            sides = int(self.left[node]), int(self.right[node])
            built[node] = [leaves[~side] if side < 0 else built[side] for side in sides]
        return built[0] if built else leaves[0]


class Layout(NamedTuple):
    """Leaves from left to right, and the depth at which neighbouring leaves are separated."""

    leaves: list[Any]
    split_depth: list[int]


_BOUNDARY = object()


def _walk(root: Any, children: Callable[[Any], Sequence[Any] | None]) -> Layout:
    """Lay out the tree below `root`; `children` returns None for a leaf."""
    layout = Layout([], [])
    pending: list[tuple[Any, int]] = [(root, 0)]
    while pending:
        item, depth = pending.pop()
        if item is _BOUNDARY:
            layout.split_depth.append(depth)
        elif (below := children(item)) is None:
            layout.leaves.append(item)
        else:
            _check_two(below, item)
            pending += [(below[1], depth + 1), (_BOUNDARY, depth), (below[0], depth + 1)]
    return layout


def _check_two(children: Sequence[Any], node: Any) -> None:
    if len(children) != 2:
        count = {0: "no child", 1: "one child"}.get(len(children), f"{len(children)} children")
        raise ValueError(f"Every node of a class tree needs two children, but {shorten(node)} has {count}.")


def _of_edges(edges: Iterable[tuple[Hashable, Hashable]]) -> Layout:
    """Read (parent, child) pairs."""
    children: dict[Hashable, list[Hashable]] = {}
    parent_of: dict[Hashable, Hashable] = {}
    for parent, child in edges:
        if child in parent_of and parent_of[child] == parent:
            raise ValueError(f"The edge from {parent!r} to {child!r} is given twice.")
        if child in parent_of:
            raise ValueError(
                f"Every node of a class tree has one parent, but {child!r} is the child of both "
                f"{parent_of[child]!r} and {parent!r}."
            )
        parent_of[child] = parent
        children.setdefault(parent, []).append(child)
    layout = _walk(_root(children, parent_of), children.get)
    if 2 * len(layout.leaves) - 1 != len(parent_of) + 1:
        inside = set(chain(children, *children.values())) - _reached(layout.leaves, parent_of)
        raise ValueError(f"The edges form a cycle through {shorten(min(inside, key=repr))}.")
    return layout


def _root(children: Mapping[Hashable, Any], parent_of: Mapping[Hashable, Hashable]) -> Hashable:
    roots = [node for node in children if node not in parent_of]
    if len(roots) > 1:
        raise ValueError(f"A class tree has one root, but both {roots[0]!r} and {roots[1]!r} have no parent.")
    if not roots:
        raise ValueError("A class tree has a root, but there is no node without a parent.")
    return roots[0]


def _reached(leaves: Iterable[Hashable], parent_of: Mapping[Hashable, Hashable]) -> set[Hashable]:
    reached: set[Hashable] = set()
    for leaf in leaves:
        node = leaf
        while node not in reached:
            reached.add(node)
            node = parent_of.get(node, node)
    return reached


def _of_parents(parents: Mapping[Hashable, Hashable] | Sequence[int] | IntArray) -> Layout:
    """Read a mapping child -> parent, or a list of each node's parent with -1 at the root."""
    if isinstance(parents, Mapping):
        return _of_edges((parent, child) for child, parent in parents.items())
    numbers = list(parents)
    for child, parent in enumerate(numbers):
        if parent != int(parent) or not -1 <= parent < len(numbers) or parent == child:
            raise ValueError(
                f"The parent of node {child} is given as {parent}: expected another node from 0 to "
                f"{len(numbers) - 1}, or -1 for the root."
            )
    roots = [child for child, parent in enumerate(numbers) if parent == -1]
    if len(roots) != 1:
        raise ValueError(f"Exactly one node, the root, has parent -1; here the nodes {roots[:5]} have it.")
    if len(numbers) == 1:
        return Layout([0], [])
    return _of_edges((int(parent), child) for child, parent in enumerate(numbers) if parent >= 0)


def _of_linkage(linkage: npt.ArrayLike, labels: Sequence[Any] | LabelArray | None) -> Layout:
    """Read a matrix of merges as `scipy.cluster.hierarchy.linkage` returns it."""
    from scipy.cluster.hierarchy import is_valid_linkage  # takes long to import

    merges = np.asarray(linkage, dtype=np.float64)
    is_valid_linkage(merges, throw=True, name="linkage")
    n_leaves = len(merges) + 1
    if labels is not None and len(labels) != n_leaves:
        raise ValueError(f"The linkage matrix joins {n_leaves} leaves, but {len(labels)} labels were given.")
    pairs = merges[:, :2].astype(int).tolist()
    layout = _walk(2 * n_leaves - 2, lambda i: pairs[i - n_leaves] if i >= n_leaves else None)
    if labels is None:
        return layout
    names = list(labels)  # by position, not by the index of a pandas Series
    return layout._replace(leaves=[names[i] for i in layout.leaves])
