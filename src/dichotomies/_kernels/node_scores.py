"""Score of one row at one node during a search, for each kind of node that has a fast way."""
# ruff: noqa: ARG001 - all ways have the same arguments

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.compile import compiled_as
from dichotomies._kernels.elementary import dot
from dichotomies._kernels.naive_bayes import Quadratic, row_of, score_one


class SparseNodes(NamedTuple):
    """Linear nodes stored feature by feature, so that a search finds the entries below a node at once.

    A feature's entries are in pre-order, and a node has one wherever a node below it does. The entry of a
    node is therefore followed by the entries of its left side, and those by the entries of its right side:
    a search narrows a feature's range of entries at every step, and drops the feature where none is left.
    Places are unsigned, which spares a comparison at every access.

    Attributes
    ----------
    intercept, background : (n_nodes,)
        Intercept, and the weight of features without an entry.
    offsets : (n_features + 1,)
        Start of each feature's entries, and the end.
    weights, n_left : (2 * n_entries,)
        The same memory as floating-point and as unsigned numbers, so that one cache line has both: at even
        places weight minus background, at odd places the number of the feature's entries on the left side of
        the entry's node.
    """

    intercept: FloatArray
    background: FloatArray
    offsets: npt.NDArray[np.uint64]
    weights: FloatArray
    n_left: npt.NDArray[np.uint64]


class DenseNodes(NamedTuple):
    """Linear nodes with a weight for each feature."""

    intercept: FloatArray
    weights: FloatArray


class QuadraticNodes(NamedTuple):
    """Nodes whose score is a quadratic function of each feature."""

    constant: FloatArray
    scores: Quadratic


class Room(NamedTuple):
    """Memory of a search among sparse nodes: the entries at and below every node that was reached.

    Attributes
    ----------
    begin : (2 * n_nodes + 2,)
        Start of the entries of each node or class reached, in the order of reaching, and the end.
    x : (n,)
        Value of a feature in the row.
    first, last : (n,)
        The feature's entries at and below the node.
    total : (1,)
        Sum of the row.
    """

    begin: npt.NDArray[np.uint64]
    x: FloatArray
    first: npt.NDArray[np.uint64]
    last: npt.NDArray[np.uint64]
    total: FloatArray


def empty_room(n_nodes: int, n_entries: int) -> Room:
    """Allocate memory for rows whose features have at most so many entries."""
    begin, first, last = (np.empty(n, np.uint64) for n in (2 * n_nodes + 2, n_entries + 1, n_entries + 1))
    begin[0] = 0
    return Room(begin, np.empty(n_entries + 1), first, last, np.zeros(1))


def _score_sparse(
    rows: Any, nodes: Any, i: Any, k: Any, number: Any, visit: Any, inner: Any, room: Any
) -> Any:
    begin, x, first, last, total = room
    weights, n_left, one = nodes.weights, nodes.n_left, np.uint64(1)
    if number == 0:
        data, indices, indptr = rows
        n = begin[0]
        total[0] = 0.0
        for place in range(indptr[i], indptr[i + 1]):
            j = np.uint64(indices[place])
            total[0] += data[place]
            x[n], first[n], last[n] = data[place], nodes.offsets[j], nodes.offsets[j + one]
            n += np.uint64(first[n] < last[n])  # no branch: it could not be foreseen
        begin[1] = n
    start, stop = begin[number], begin[number + 1]
    score = nodes.intercept[k]
    for at in range(start, stop):
        score += x[at] * weights[first[at] + first[at]]
    # the entries of the children; those on the left follow the node's own, those on the right are asked for
    m = begin[2 * visit + 1]
    for at in range(start, stop if inner[0] else start):
        after = first[at] + one
        x[m], first[m], last[m] = x[at], after, after + n_left[after + after - one]
        m += np.uint64(first[m] < last[m])
    begin[2 * visit + 2] = m
    for at in range(start, stop if inner[1] else start):
        after = first[at] + one
        middle = after + n_left[after + after - one]
        x[m], first[m], last[m] = x[at], middle, last[at]
        m += np.uint64(middle < last[m])
    begin[2 * visit + 3] = m
    # numba takes writes to the arrays of a tuple for useless where it inlines code that does not read any of
    # them later; so the sum of the row comes last
    return score + nodes.background[k] * total[0]


def _score_dense(
    rows: Any, nodes: Any, i: Any, k: Any, number: Any, visit: Any, inner: Any, room: Any
) -> Any:
    return dot(rows[0][i], nodes.weights[k]) + nodes.intercept[k]


def _score_quadratic(
    rows: Any, nodes: Any, i: Any, k: Any, number: Any, visit: Any, inner: Any, room: Any
) -> Any:
    return nodes.constant[k] + score_one(rows[0][i], row_of(nodes.scores, k))


_WAYS = {SparseNodes: _score_sparse, DenseNodes: _score_dense, QuadraticNodes: _score_quadratic}


def node_score(rows: Any, nodes: Any, i: Any, k: Any, number: Any, visit: Any, inner: Any, room: Any) -> Any:
    """Score of row `i` at node `k`, which is visit number `visit` of its search.

    Parameters
    ----------
    rows : tuple
        The arrays of a CSR matrix, or one dense array.
    number
        Number of `k` among what was reached: 0 for the root; the children of visit v are 2 v + 1 and 2 v + 2.
    inner : pair of bool
        True if the left, the right child is a node.
    room : Room
        Filled for the children.
    """
    return _WAYS[type(nodes)](rows, nodes, i, k, number, visit, inner, room)


@compiled_as(node_score, inline=True)
def _node_score(rows: Any, nodes: Any, i: Any, k: Any, number: Any, visit: Any, inner: Any, room: Any) -> Any:
    return _WAYS[nodes.instance_class]
