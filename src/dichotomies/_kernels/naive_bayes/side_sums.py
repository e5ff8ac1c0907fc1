"""Sums over the classes on either side of every node."""

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.composition import levels

#: Additions up to which every node adds up its own leaves, however many nodes share them.
_FEW = 2**18


def side_sums(tree: Any, leaves: FloatArray) -> FloatArray:
    """Add up the values of leaves; nothing is subtracted, so that small sums are not lost in large ones.

    Parameters
    ----------
    tree : ClassTree
    leaves : (n_leaves, n_values)
        Values, by leaf position.

    Returns
    -------
    (n_nodes, 2, n_values)
        Sums over the left and the right side of each node.
    """
    n_values = leaves.shape[1]
    if (tree.stop - tree.start).sum() * n_values <= _FEW:
        edges = np.stack([tree.start, tree.split, tree.stop], axis=1).ravel()
        padded = np.append(leaves, np.zeros((1, n_values)), axis=0)
        return np.add.reduceat(padded, edges, axis=0).reshape(-1, 3, n_values)[:, :2]
    out = np.empty((tree.n_nodes, 2, n_values))
    for level in reversed(levels(tree.left, tree.right)):
        for side, child in enumerate((tree.left[level], tree.right[level])):
            of_side, is_leaf = out[level, side], child < 0
            of_side[is_leaf] = leaves[~child[is_leaf]]
            of_side[~is_leaf] = out[child[~is_leaf]].sum(axis=1)
    return out
