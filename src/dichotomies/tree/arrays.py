"""The arrays of a tree: codes of its leaves, and nodes from the ranks of the splits between leaves.

With the leaves of a binary tree in order, every boundary between two neighbours is the split of exactly one
internal node. The tree is therefore determined by the order in which the boundaries are split, and is their
Cartesian tree: the boundary of lowest rank in a range is the root of that range.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import IntArray, LabelArray

_KINDS = {
    "strings": (str,),
    "bytes": (bytes,),
    "booleans": (bool, np.bool_),
    "numbers": (int, float, np.integer, np.floating),
}


def _kind(label: Any) -> str:
    for name, types in _KINDS.items():
        if isinstance(label, types):
            return name
    raise TypeError(
        f"Class labels must be strings, numbers or booleans, got {label!r} of type {type(label).__name__}."
    )


def as_labels(labels: Sequence[Any] | LabelArray) -> LabelArray:
    """Return labels as an array; raise for mixed kinds, which numpy would silently convert."""
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        return labels
    by_kind = {_kind(label): label for label in labels}
    if len(by_kind) > 1:
        (first, one), (second, other) = list(by_kind.items())[:2]
        raise TypeError(
            f"Class labels must be all of one kind, got {first} such as {one!r} "
            f"and {second} such as {other!r}."
        )
    return np.asarray(labels)


def codes_of(leaves: LabelArray, classes: Sequence[Any] | LabelArray | None) -> tuple[LabelArray, IntArray]:
    """Return the classes in the order of their codes, and the code of each leaf.

    Raise unless every class has exactly one leaf; the message names the class.
    """
    names = leaves.tolist()
    label, count = Counter(names).most_common(1)[0] if names else (None, 0)
    if count != 1:
        raise ValueError(f"Class {label!r} is at {count} leaves of the tree." if count else "Empty tree.")
    known = np.unique(leaves) if classes is None else np.asarray(classes).copy()
    code = {name: i for i, name in enumerate(known.tolist())}
    if len(code) != len(known):
        twice = Counter(known.tolist()).most_common(1)[0][0]
        raise ValueError(f"Class {twice!r} is given twice.")
    if missing := set(code) - set(names):
        raise ValueError(f"Class {min(missing, key=repr)!r} is missing from the tree.")
    for name in names:
        if name not in code:
            raise ValueError(
                f"The tree has a leaf {name!r}, which is not among the {len(code)} classes. "
                "ClassTree.restrict() leaves out classes that do not occur."
            )
    return known, np.array([code[name] for name in names], dtype=np.intp)


class Nodes(NamedTuple):
    """One entry per internal node, in level order (by depth, then from left to right)."""

    start: IntArray
    split: IntArray
    stop: IntArray
    depth: IntArray
    parent: IntArray


def level_order(split_rank: Sequence[float]) -> Nodes:
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
    return Nodes(
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
