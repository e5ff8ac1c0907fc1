"""Small changes to a tree: two branches exchanged, a branch hung elsewhere, a part of another tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies.tree import ClassTree

#: A branch's place: the node it hangs from and the side, 0 left or 1 right.
Place = tuple[int, int]


class Branches:
    """A tree as it is changed: two branches per node, a node number or ``~code`` for the leaf of a class."""

    def __init__(self, tree: ClassTree) -> None:
        self._classes = tree.classes
        self._tree = tree
        self.root = 0
        self.below: list[list[int]] = [
            [_by_code(side, tree) for side in sides]
            for sides in zip(tree.left.tolist(), tree.right.tolist(), strict=True)
        ]

    def places(self) -> list[Place]:
        """All places where a branch hangs."""
        return [(node, side) for node in range(len(self.below)) for side in (0, 1)]

    def leaves(self, place: Place) -> range:
        """Leaf positions below a place, in the tree before it was changed."""
        node, side = place
        start, split, stop = (int(a[node]) for a in (self._tree.start, self._tree.split, self._tree.stop))
        return range(start, split) if side == 0 else range(split, stop)

    def made(self) -> ClassTree:
        """The tree; at every node, the side of the lowest class code is on the left."""
        lowest = self._lowest_codes()
        leaf_order: list[int] = []
        split_depth: list[int] = []
        pending = [(self.root, 0, -1)]  # a branch, its depth, and where its left neighbour parts from it
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
    """The same tree, with the side of the lowest class code on the left everywhere."""
    return Branches(tree).made()


def swapped(tree: ClassTree, rng: Any) -> ClassTree:
    """Two branches that do not contain one another change places."""
    branches = Branches(tree)
    places = branches.places()
    one = places[rng.randint(len(places))]
    apart = [place for place in places if place[0] != one[0] and _disjoint(branches, one, place)]
    if not apart:
        return tree
    other = apart[rng.randint(len(apart))]
    (a, i), (b, j) = one, other
    branches.below[a][i], branches.below[b][j] = branches.below[b][j], branches.below[a][i]
    return branches.made()


def regrafted(tree: ClassTree, rng: Any) -> ClassTree:
    """A branch is cut off, its sibling takes its parent's place, and it is hung into another place."""
    branches = Branches(tree)
    places = branches.places()
    node, side = places[rng.randint(len(places))]
    targets = [place for place in places if place[0] != node and _disjoint(branches, (node, side), place)]
    if not targets:
        return tree
    target = targets[rng.randint(len(targets))]
    sibling = branches.below[node][1 - side]
    parent = int(tree.parent[node])
    if parent < 0:
        branches.root = sibling
    else:
        branches.below[parent][branches.below[parent].index(node)] = sibling
    below, which = target
    branches.below[node][1 - side] = branches.below[below][which]
    branches.below[below][which] = node
    return branches.made()


def crossed(tree: ClassTree, other: ClassTree, rng: Any) -> ClassTree:
    """The classes below one node of `tree`, drawn at random, are arranged as in `other`."""
    if tree.n_nodes < 3:
        return tree
    node = 1 + rng.randint(tree.n_nodes - 1)
    inside = slice(int(tree.start[node]), int(tree.stop[node]))
    part = other.restrict(tree.leaf_labels[inside])
    labels, depths = tree.leaf_labels, tree.split_depth
    labels[inside] = part.leaf_labels
    depths[inside.start : inside.stop - 1] = part.split_depth + tree.depth[node]
    return normal_form(ClassTree(labels, depths, tree.classes))


def _disjoint(branches: Branches, one: Place, other: Place) -> bool:
    a, b = branches.leaves(one), branches.leaves(other)
    return a.stop <= b.start or b.stop <= a.start
