"""A tree in napkinXC's notation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dichotomies.tree import ClassTree


def structure(tree: ClassTree) -> list[tuple[int, int, int]]:
    """Edges of a tree: parent, node and label, or -1."""
    inner = [(int(tree.parent[node]), node, -1) for node in range(tree.n_nodes)]
    children = [
        (node, int(child)) for node in range(tree.n_nodes) for child in (tree.left[node], tree.right[node])
    ]
    leaves = [(node, ~child) for node, child in children if child < 0]
    return inner + [(node, tree.n_nodes + leaf, int(tree.leaf_order[leaf])) for node, leaf in leaves]
