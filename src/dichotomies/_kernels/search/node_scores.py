"""Score of one row at one node during a search, for each kind of node that has a fast way."""
# ruff: noqa: ARG001 - all ways have the same arguments

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._kernels.compile import compiled_as
from dichotomies._kernels.elementary import dot
from dichotomies._kernels.naive_bayes.gaussian import Quadratic, row_of, score_one

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray


class SparseNodes(NamedTuple):
    """Linear nodes stored feature by feature, so that a search finds the entries below a node at once.

    A feature's entries are in pre-order, and a node has one wherever a node below it does. The entry of a
    node is therefore followed by the entries of its left side, and those by the entries of its right side:
    a search narrows a feature's range of entries at every step, and drops the feature where none is left.

    Attributes
    ----------
    intercept, background : (n_nodes,)
        Intercept, and the weight of features without an entry.
    offsets : (n_features + 1,)
        Start of each feature's entries, and the end.
    entries : (2 * n_entries,)
        Weight minus background, and the number of the feature's entries on the left side of the entry's node,
        in turns: one cache line has both.
    """

    intercept: FloatArray
    background: FloatArray
    offsets: IntArray
    entries: FloatArray


class DenseNodes(NamedTuple):
    """Linear nodes with a weight for each feature."""

    intercept: FloatArray
    weights: FloatArray


class QuadraticNodes(NamedTuple):
    """Nodes whose score is a quadratic function of each feature."""

    constant: FloatArray
    scores: Quadratic


class Room(NamedTuple):
    """Memory of a search among sparse nodes: the entries below every visited node.

    Attributes
    ----------
    begin : (n_nodes + 1,)
        Start of each visit's entries in the arrays below, and the end.
    x : (n,)
        Value of a feature in the row.
    first, last : (n,)
        The feature's entries at and below the visited node.
    total : (1,)
        Sum of the row.
    """

    begin: IntArray
    x: FloatArray
    first: IntArray
    last: IntArray
    total: FloatArray


def empty_room(n_nodes: int, n_entries: int) -> Room:
    """Allocate memory for rows whose features have at most so many entries."""
    begin, first, last = (np.empty(n, np.int64) for n in (n_nodes + 1, n_entries + 1, n_entries + 1))
    begin[0] = 0
    return Room(begin, np.empty(n_entries + 1), first, last, np.zeros(1))


def _score_sparse(rows: Any, nodes: Any, i: Any, k: Any, visit: Any, above: Any, left: Any, room: Any) -> Any:
    begin, x, first, last, total = room
    data, indices, indptr = rows
    entries = nodes.entries
    n = begin[visit]
    if above < 0:
        total[0] = 0.0
        for place in range(indptr[i], indptr[i + 1]):
            j = indices[place]
            total[0] += data[place]
            x[n], first[n], last[n] = data[place], nodes.offsets[j], nodes.offsets[j + 1]
            n += int(first[n] < last[n])  # no branch: it could not be foreseen
    else:
        for place in range(begin[above], begin[above + 1]):
            own = first[place]
            middle = own + 1 + np.int64(entries[2 * own + 1])
            x[n] = x[place]
            first[n] = own + 1 if left else middle
            last[n] = middle if left else last[place]
            n += int(first[n] < last[n])
    begin[visit + 1] = n
    score = nodes.intercept[k] + nodes.background[k] * total[0]
    for place in range(begin[visit], n):
        score += x[place] * entries[2 * first[place]]
    return score


def _score_dense(rows: Any, nodes: Any, i: Any, k: Any, visit: Any, above: Any, left: Any, room: Any) -> Any:
    return dot(rows[0][i], nodes.weights[k]) + nodes.intercept[k]


def _score_quadratic(
    rows: Any, nodes: Any, i: Any, k: Any, visit: Any, above: Any, left: Any, room: Any
) -> Any:
    return nodes.constant[k] + score_one(rows[0][i], row_of(nodes.scores, k))


_WAYS = {SparseNodes: _score_sparse, DenseNodes: _score_dense, QuadraticNodes: _score_quadratic}


def node_score(rows: Any, nodes: Any, i: Any, k: Any, visit: Any, above: Any, left: Any, room: Any) -> Any:
    """Score of row `i` at node `k`, which is visit number `visit` of its search.

    Parameters
    ----------
    rows : tuple
        The arrays of a CSR matrix, or one dense array.
    above, left
        Number of the visit to the parent, -1 at the root, and whether `k` is its left child.
    room : Room
        Filled for `visit`.
    """
    return _WAYS[type(nodes)](rows, nodes, i, k, visit, above, left, room)


@compiled_as(node_score, inline=True)
def _node_score(rows: Any, nodes: Any, i: Any, k: Any, visit: Any, above: Any, left: Any, room: Any) -> Any:
    return _WAYS[nodes.instance_class]
