"""New classes in a tree: subtrees beside existing ones, which stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies.tree.class_tree import ClassTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import FloatArray


class Graft(NamedTuple):
    """A tree of new classes, and the subtree that becomes its sibling.

    Attributes
    ----------
    branch : int
        Node number, or ``~position`` of a leaf.
    leaves : sequence of labels
        The new classes from left to right.
    split_depth : sequence of int
        Depths of the splits between them; empty for a single class.
    """

    branch: int
    leaves: Sequence[Any]
    split_depth: Sequence[int]


def grafted(tree: ClassTree, grafts: Sequence[Graft], classes: Any) -> ClassTree:
    """Return the tree with new nodes, which have an old subtree on the left and new classes on the right.

    Parameters
    ----------
    grafts : sequence of Graft
        At different branches.
    classes : array of labels
        All classes of the new tree, in the order of their codes.

    Examples
    --------
    >>> from dichotomies import ClassTree
    >>> from dichotomies.tree.grafting import Graft, grafted
    >>> tree = ClassTree.from_nested([["cat", "dog"], "ant"])
    >>> grafted(tree, [Graft(1, ["cow"], []), Graft(~2, ["bee"], [])], ["ant", "bee", "cat", "cow", "dog"])
    ClassTree.from_nested([[['cat', 'dog'], 'cow'], ['ant', 'bee']])
    """
    leaves, ranks = tree.leaf_labels.tolist(), tree.split_depth.astype(np.float64).tolist()
    # From right to left; of branches that end at the same leaf the outer first, so that it comes last.
    for end, depth, graft in sorted(((*_place(tree, each.branch), each) for each in grafts), key=_outer_last):
        leaves[end:end] = list(graft.leaves)
        ranks[end - 1 : end - 1] = [depth - 0.5, *(depth + np.asarray(graft.split_depth)).tolist()]
    return ClassTree(leaves, ranks, classes)


def _place(tree: ClassTree, branch: int) -> tuple[int, int]:
    """End of the range of leaves of a branch, and its depth."""
    if branch >= 0:
        return int(tree.stop[branch]), int(tree.depth[branch])
    return ~branch + 1, int(tree.leaf_depth[~branch])


def _outer_last(graft: tuple[int, int, Graft]) -> tuple[int, int]:
    return -graft[0], graft[1]


def landing(tree: ClassTree, log_odds: FloatArray) -> int:
    """Leaf where most rows of a class that the nodes do not know end up.

    From the root on, all rows follow the side that most of them go to.

    Parameters
    ----------
    log_odds : (n_rows, n_nodes)
        Log-odds of going left.

    Returns
    -------
    int
        ``~position`` of the leaf.
    """
    goes_left = (log_odds > 0).mean(axis=0) > 0.5
    branch = 0
    while branch >= 0:
        branch = int((tree.left if goes_left[branch] else tree.right)[branch])
    return branch
