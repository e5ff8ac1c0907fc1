"""From the log-odds at every node to the log-probability of every class."""

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel


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


@path_sums.plainly
def _path_sums(
    log_odds: FloatArray,
    log_likelier: FloatArray,
    left: IntArray,
    right: IntArray,
    leaf_class: IntArray,
    out: FloatArray,
) -> None:
    """A level of the tree at a time; nodes and classes as rows, which are quick to pick."""
    odds, likelier, result = log_odds.T.copy(), log_likelier.T.copy(), np.empty(out.shape[::-1])
    reach = np.zeros(odds.shape)
    for level in levels(left, right):
        reached = reach[level] + likelier[level]
        sides = reached + np.minimum(odds[level], 0.0), reached - np.maximum(odds[level], 0.0)
        for child, values in zip((left[level], right[level]), sides, strict=True):
            is_leaf = child < 0
            result[leaf_class[~child[is_leaf]]] = values[is_leaf]
            reach[child[~is_leaf]] = values[~is_leaf]
    out[:] = result.T


def plain_seconds(size: int, depth: IntArray) -> float:
    """Estimate how long plain code takes for so many log-odds at nodes of these depths."""
    return 2e-8 * size + 3e-5 * (1 + int(depth.max(initial=0)))


def levels(left: IntArray, right: IntArray) -> list[slice]:
    """Nodes of the same depth, which are next to one another."""
    found, start, stop = [], 0, min(1, len(left))
    while start < stop:
        found.append(slice(start, stop))
        n_children = (left[start:stop] >= 0).sum() + (right[start:stop] >= 0).sum()
        start, stop = stop, stop + int(n_children)
    return found


def implied_log_odds(
    log_proba: FloatArray, left: IntArray, right: IntArray, leaf_class: IntArray
) -> FloatArray:
    """Log-odds at every node that would compose to these class log-probabilities: `path_sums` undone.

    Parameters
    ----------
    log_proba : (n_rows, n_classes)
    left, right : (n_nodes,)
        Child node, or ``~position`` of a leaf; nodes in level order.
    leaf_class : (n_classes,)
        Column of `log_proba` for each leaf position.

    Returns
    -------
    (n_rows, n_nodes)
        Log-odds of going left.
    """
    out, total = np.empty((2, len(log_proba), len(left)))  # total: of all classes below each node
    for level in reversed(levels(left, right)):
        sides = []
        for child in (left[level], right[level]):
            is_leaf, values = child < 0, np.empty((len(out), len(child)))
            values[:, is_leaf] = log_proba[:, leaf_class[~child[is_leaf]]]
            values[:, ~is_leaf] = total[:, child[~is_leaf]]
            sides.append(values)
        out[:, level] = sides[0] - sides[1]
        total[:, level] = np.logaddexp(*sides)
    return out
