"""Random edits of a tree: swap of two subtrees, regraft of a subtree, crossover with another tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies.tree import ClassTree

#: An edge of the tree: the parent node and the side, 0 left or 1 right.
Edge = tuple[int, int]


class EditableTree:
    """An editable tree: two children per node, each a node number or ``~code`` for the leaf of a class."""

    def __init__(self, tree: ClassTree) -> None:
        self._classes = tree.classes
        self._tree = tree
        self.root = 0
        self.below: list[list[int]] = [
            [_by_code(side, tree) for side in sides]
            for sides in zip(tree.left.tolist(), tree.right.tolist(), strict=True)
        ]

    def edges(self) -> list[Edge]:
        """Return all edges."""
        return [(node, side) for node in range(len(self.below)) for side in (0, 1)]

    def leaves(self, edge: Edge) -> range:
        """Return the leaf positions below an edge, in the tree before it was edited."""
        node, side = edge
        start, split, stop = (int(a[node]) for a in (self._tree.start, self._tree.split, self._tree.stop))
        return range(start, split) if side == 0 else range(split, stop)

    def build(self) -> ClassTree:
        """Return the edited tree in normal form; see `normal_form`."""
        lowest = self._lowest_codes()
        leaf_order: list[int] = []
        split_depth: list[int] = []
        pending = [(self.root, 0, -1)]  # a subtree, its depth, and the depth of the split on its left
        while pending:
            branch, depth, parting = pending.pop()
            if branch >= 0:
                left, right = sorted(self.below[branch], key=lambda side: lowest[side])
                pending += [(right, depth + 1, depth), (left, depth + 1, parting)]
                continue
            if leaf_order:
                split_depth.append(parting)
            leaf_order.append(~branch)
        return ClassTree(self._classes[np.array(leaf_order)], split_depth, self._classes)

    def _lowest_codes(self) -> dict[int, int]:
        lowest = {~code: code for code in range(len(self._classes))}
        pending = [self.root]
        while pending:
            node = pending[-1]
            unknown = [side for side in self.below[node] if side not in lowest]
            if unknown:
                pending += unknown
            else:
                lowest[node] = min(lowest[side] for side in self.below[node])
                pending.pop()
        return lowest


def _by_code(side: int, tree: ClassTree) -> int:
    return side if side >= 0 else ~int(tree.leaf_order[~side])


def normal_form(tree: ClassTree) -> ClassTree:
    """Return the same tree with the lowest class code of every node on the left."""
    return EditableTree(tree).build()


def swapped(tree: ClassTree, rng: Any) -> ClassTree:
    """Swap two subtrees, neither of which contains the other."""
    edited = EditableTree(tree)
    edges = edited.edges()
    one = edges[rng.randint(len(edges))]
    apart = [edge for edge in edges if edge[0] != one[0] and _disjoint(edited, one, edge)]
    if not apart:
        return tree
    other = apart[rng.randint(len(apart))]
    (a, i), (b, j) = one, other
    edited.below[a][i], edited.below[b][j] = edited.below[b][j], edited.below[a][i]
    return edited.build()


def regrafted(tree: ClassTree, rng: Any) -> ClassTree:
    """Move a subtree into another edge; its sibling replaces its parent."""
    edited = EditableTree(tree)
    edges = edited.edges()
    node, side = edges[rng.randint(len(edges))]
    targets = [edge for edge in edges if edge[0] != node and _disjoint(edited, (node, side), edge)]
    if not targets:
        return tree
    target = targets[rng.randint(len(targets))]
    sibling = edited.below[node][1 - side]
    parent = int(tree.parent[node])
    if parent < 0:
        edited.root = sibling
    else:
        edited.below[parent][edited.below[parent].index(node)] = sibling
    below, which = target
    edited.below[node][1 - side] = edited.below[below][which]
    edited.below[below][which] = node
    return edited.build()


def crossed(tree: ClassTree, other: ClassTree, rng: Any) -> ClassTree:
    """Rearrange the classes below a random node of `tree` as in `other`."""
    if tree.n_nodes < 3:
        return tree
    node = 1 + rng.randint(tree.n_nodes - 1)
    inside = slice(int(tree.start[node]), int(tree.stop[node]))
    part = other.restrict(tree.leaf_labels[inside])
    labels, depths = tree.leaf_labels, tree.split_depth
    labels[inside] = part.leaf_labels
    depths[inside.start : inside.stop - 1] = part.split_depth + tree.depth[node]
    return normal_form(ClassTree(labels, depths, tree.classes))


def _disjoint(edited: EditableTree, one: Edge, other: Edge) -> bool:
    a, b = edited.leaves(one), edited.leaves(other)
    return a.stop <= b.start or b.stop <= a.start
