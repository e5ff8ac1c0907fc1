"""Sums over the classes on either side of every node, from the leaves up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.composition import levels

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray


@kernel
def side_sums(left: IntArray, right: IntArray, leaves: FloatArray, out: FloatArray) -> None:
    """Add up the values of leaves, child by child, so that small sums are not lost in large ones.

    Parameters
    ----------
    left, right : (n_nodes,)
        Children, ``~position`` where a child is a leaf; parents come before their children.
    leaves : (n_leaves, n_values)
        Values, by leaf position.
    out : (n_nodes, 2, n_values)
        Sums over the left and the right side of each node.
    """
    for k in range(len(left) - 1, -1, -1):
        for side in range(2):
            child = left[k] if side == 0 else right[k]
            for j in range(leaves.shape[1]):
                if child < 0:
                    out[k, side, j] = leaves[~child, j]
                else:
                    out[k, side, j] = out[child, 0, j] + out[child, 1, j]


@side_sums.plainly
def _side_sums(left: IntArray, right: IntArray, leaves: FloatArray, out: FloatArray) -> None:
    """A level of the tree at a time, the last first."""
    for level in reversed(levels(left, right)):
        for side, child in enumerate((left[level], right[level])):
            is_leaf = (child < 0)[:, None]
            of_leaves, of_nodes = (
                leaves[np.where(child < 0, ~child, 0)],
                out[np.maximum(child, 0)].sum(axis=1),
            )
            out[level, side] = np.where(is_leaf, of_leaves, of_nodes)
