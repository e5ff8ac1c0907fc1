"""Sums over the classes on either side of every node, from the leaves up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies._kernels.composition import levels

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray


def side_sums(left: IntArray, right: IntArray, leaves: FloatArray) -> FloatArray:
    """Add up the values of leaves, child by child, so that small sums are not lost in large ones.

    Parameters
    ----------
    left, right : (n_nodes,)
        Children, ``~position`` where a child is a leaf; nodes in level order.
    leaves : (n_leaves, n_values)
        Values, by leaf position.

    Returns
    -------
    (n_nodes, 2, n_values)
        Sums over the left and the right side of each node.
    """
    out = np.empty((len(left), 2, leaves.shape[1]))
    for level in reversed(levels(left, right)):
        for side, child in enumerate((left[level], right[level])):
            of_side, is_leaf = out[level, side], child < 0
            of_side[is_leaf] = leaves[~child[is_leaf]]
            of_side[~is_leaf] = out[child[~is_leaf]].sum(axis=1)
    return out
