"""From the log-odds at every node to the log-probability of every class."""

from typing import Protocol

import numpy as np

from dichotomies._common.chunks import row_slices, rows_within
from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import canonical, is_small, kernel

#: Bytes of intermediate results of a block of rows: few, to stay in a core's cache; and for plain code, which
#: would spend its time on calls if blocks were small.
_CACHED_BYTES, _PLAIN_BYTES = 2**18, 2**22


class Tree(Protocol):
    """Arrays of a `dichotomies.ClassTree`: children of the nodes, their depths, and the classes of leaves."""

    @property
    def left(self) -> IntArray: ...
    @property
    def right(self) -> IntArray: ...
    @property
    def depth(self) -> IntArray: ...
    @property
    def leaf_order(self) -> IntArray: ...


def class_log_proba(
    tree: Tree, log_odds: FloatArray, out: FloatArray | None = None, n_rows: int | None = None
) -> FloatArray:
    """Log-probability of every class from the log-odds at every node.

    The log-probability of a class is the sum of the log-probabilities of the turns on its path
    (Proposition 1 of the paper, before the sign is changed).

    Parameters
    ----------
    tree : ClassTree
    log_odds : ndarray of shape (n_rows, n_nodes)
        Log-odds of going left.
    out : ndarray of shape (n_rows, n_classes), optional
        Output array.
    n_rows : int, optional
        Number of rows that these are a block of. It decides if compiled code is used.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Columns in the order of ``tree.classes``.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies import ClassTree
    >>> tree = ClassTree.from_nested([["a", "b"], "c"])
    >>> np.exp(class_log_proba(tree, np.log([[3.0, 1.0]]))).round(3)  # 3 : 1, then 1 : 1
    array([[0.375, 0.375, 0.25 ]])
    """
    out = np.empty((len(log_odds), len(tree.leaf_order))) if out is None else out
    arrays = canonical(tree.left), canonical(tree.right), canonical(tree.leaf_order)  # once for all blocks
    n_nodes, n_rows = len(tree.left), len(log_odds) if n_rows is None else n_rows
    block_rows = min(rows_within(_PLAIN_BYTES, n_nodes), max(1, len(log_odds)))
    seconds = _plain_seconds(n_rows * n_nodes, n_rows / block_rows, tree.depth)
    small = is_small(n_rows, seconds, is_answer=True)
    sums = path_sums.when(small)
    for rows in row_slices(len(log_odds), block_rows if small else rows_within(_CACHED_BYTES, n_nodes)):
        block = log_odds[rows]
        sums(block, _log_excess(block), *arrays, out[rows])
    return out


def _log_excess(log_odds: FloatArray) -> FloatArray:
    """Minus log-probability of the likelier side, to 1e-16; numpy's exp and log beat a kernel's."""
    result = np.abs(log_odds)
    np.negative(result, out=result)
    np.exp(result, out=result)
    result += 1.0
    return np.log(result, out=result)


@kernel
def path_sums(
    log_odds: FloatArray,
    log_excess: FloatArray,
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
    log_excess : (n_rows, n_nodes)
        Minus the log-probability of the likelier side, ``log(1 + exp(-|log_odds|))``; the other side's
        log-probability is ``|log_odds|`` below it.
    left, right : (n_nodes,)
        Child node, or ``~position`` of a leaf.
    leaf_class : (n_classes,)
        Column of `out` for each leaf position.
    out : (n_rows, n_classes)
        Log-probabilities, written in full.
    """
    n_rows, n_nodes = log_odds.shape
    reach = np.empty(n_nodes + len(leaf_class))  # classes follow the nodes, so that no leaf is a branch
    place = np.empty((n_nodes, 2), dtype=np.uintp)  # of the children
    for k in range(n_nodes):
        place[k, 0] = left[k] if left[k] >= 0 else n_nodes + leaf_class[~left[k]]
        place[k, 1] = right[k] if right[k] >= 0 else n_nodes + leaf_class[~right[k]]
    reach[0] = 0.0
    for i in range(n_rows):
        for k in range(n_nodes):
            likelier = reach[k] - log_excess[i, k]
            reach[place[k, 0]] = likelier + min(log_odds[i, k], 0.0)
            reach[place[k, 1]] = likelier - max(log_odds[i, k], 0.0)
        for c in range(len(leaf_class)):
            out[i, c] = reach[n_nodes + c]


@path_sums.plainly
def _path_sums(
    log_odds: FloatArray,
    log_excess: FloatArray,
    left: IntArray,
    right: IntArray,
    leaf_class: IntArray,
    out: FloatArray,
) -> None:
    """A level of the tree at a time; nodes and classes as rows, which are quick to pick."""
    odds, excess, result = log_odds.T.copy(), log_excess.T.copy(), np.empty(out.shape[::-1])
    reach = np.zeros(odds.shape)
    for level in levels(left, right):
        reached = reach[level] - excess[level]
        sides = reached + np.minimum(odds[level], 0.0), reached - np.maximum(odds[level], 0.0)
        for child, values in zip((left[level], right[level]), sides, strict=True):
            is_leaf = child < 0
            result[leaf_class[~child[is_leaf]]] = values[is_leaf]
            reach[child[~is_leaf]] = values[~is_leaf]
    out[:] = result.T


def _plain_seconds(size: int, n_blocks: float, depth: IntArray) -> float:
    """Estimate how long plain code takes for so many log-odds in blocks, at nodes of these depths."""
    return 2e-8 * size + 3e-5 * n_blocks * (1 + int(depth.max(initial=0)))


def levels(left: IntArray, right: IntArray) -> list[slice]:
    """Nodes of the same depth, which are next to one another."""
    found, start, stop = [], 0, min(1, len(left))
    while start < stop:
        found.append(slice(start, stop))
        n_children = (left[start:stop] >= 0).sum() + (right[start:stop] >= 0).sum()
        start, stop = stop, stop + int(n_children)
    return found


def implied_log_odds(tree: Tree, log_proba: FloatArray) -> FloatArray:
    """Log-odds at every node that would compose to these class log-probabilities: `class_log_proba` undone.

    Parameters
    ----------
    tree : ClassTree
    log_proba : (n_rows, n_classes)

    Returns
    -------
    (n_rows, n_nodes)
        Log-odds of going left.
    """
    left, right, n_nodes = tree.left, tree.right, len(tree.left)
    log_odds = np.empty((n_nodes, len(log_proba)))
    total = np.empty((2 * n_nodes + 1, len(log_proba)))  # of the classes below each node, then of each leaf
    total[n_nodes:] = log_proba.T[tree.leaf_order]
    for level in reversed(levels(left, right)):
        one, other = (
            total[np.where(child < 0, n_nodes + ~child, child)] for child in (left[level], right[level])
        )
        np.subtract(one, other, out=log_odds[level])
        np.maximum(one, other, out=one)
        one += np.log(1.0 + np.exp(-np.abs(log_odds[level])))
        total[level] = one
    return log_odds.T
