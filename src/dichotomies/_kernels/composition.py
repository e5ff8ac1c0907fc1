"""From the log-odds at every node to the log-probability of every class."""

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._typing import FloatArray, IntArray


@kernel
def path_sums(
    log_odds: FloatArray,
    log_likelier: FloatArray,
    left: IntArray,
    right: IntArray,
    leaf_class: IntArray,
    out: FloatArray,
) -> None:
    """Sum log-probabilities from the root down to every leaf.

    Parameters
    ----------
    log_odds : (n_rows, n_nodes)
        Log-odds of going left, nodes in level order, so that a parent is visited before its children.
    log_likelier : (n_rows, n_nodes)
        Log-probability of the likelier side, ``-log(1 + exp(-|log_odds|))``; the other side's is
        ``|log_odds|`` below it.
    left, right : (n_nodes,)
        Child node, or ``~position`` of a leaf.
    leaf_class : (n_classes,)
        Column of `out` for each leaf position.
    out : (n_rows, n_classes)
        Log-probabilities, written in full.
    """
    n_rows, n_nodes = log_odds.shape
    reach = np.empty(n_nodes)
    for i in range(n_rows):
        reach[0] = 0.0
        for k in range(n_nodes):
            likelier = reach[k] + log_likelier[i, k]
            to_left = likelier + min(log_odds[i, k], 0.0)
            to_right = likelier - max(log_odds[i, k], 0.0)
            if left[k] >= 0:
                reach[left[k]] = to_left
            else:
                out[i, leaf_class[~left[k]]] = to_left
            if right[k] >= 0:
                reach[right[k]] = to_right
            else:
                out[i, leaf_class[~right[k]]] = to_right
