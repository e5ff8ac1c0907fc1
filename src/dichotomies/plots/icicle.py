"""The tree as rectangles: a node is as wide as its rows; nodes too narrow to be seen are merged."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dichotomies.metrics.binning import sums_by_index

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.diagnostics import Ledger

#: Nodes narrower than this share of the rows are merged with their neighbours at the same depth.
NARROW = 1 / 250


class Cells(NamedTuple):
    """Rectangles, one depth high.

    Attributes
    ----------
    left, right : ndarray of shape (n_cells,)
        Edges, as shares of all rows.
    depth : ndarray of shape (n_cells,)
        Depth of the node or nodes.
    value : ndarray of shape (n_cells,)
        The amount shown, per row; the mean over merged nodes.
    node : ndarray of shape (n_cells,)
        The node that a rectangle stands for, or -1 where it stands for several.
    """

    left: FloatArray
    right: FloatArray
    depth: IntArray
    value: FloatArray
    node: IntArray


def leaf_edges(ledger: Ledger) -> FloatArray:
    """Where each leaf begins, and the end, as shares of all rows."""
    edges = np.concatenate([[0.0], np.cumsum(ledger.class_rows)])
    edges /= edges[-1]
    return edges


def cells_of(ledger: Ledger, amounts: FloatArray, narrow: float = NARROW) -> Cells:
    """Rectangles of the nodes that have rows, those narrower than `narrow` merged.

    Parameters
    ----------
    ledger : Ledger
    amounts : ndarray of shape (n_nodes,)
        Shares of the mean over all rows, such as ``ledger.nll``.
    narrow : float
        Share of the rows below which a node is merged with other such nodes: all that have their middle
        in the same stretch of that width, at the same depth.
    """
    edges, tree = leaf_edges(ledger), ledger.tree
    left, right = edges[tree.start], edges[tree.stop]
    nodes = np.flatnonzero(right > left)
    is_narrow = right[nodes] - left[nodes] < narrow
    stretch = ((left[nodes] + right[nodes]) / 2 / narrow).astype(np.intp)
    # Wide nodes keep a cell of their own; ids of merged ones begin after them.
    n_stretches = int(1 / narrow) + 2
    key = np.where(is_narrow, tree.n_nodes + tree.depth[nodes] * n_stretches + stretch, nodes)
    _, first, cell, size = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    starts, stops = np.full(len(first), np.inf), np.full(len(first), -np.inf)
    np.minimum.at(starts, cell, left[nodes])
    np.maximum.at(stops, cell, right[nodes])
    width = sums_by_index(cell, right[nodes] - left[nodes], len(first))
    return Cells(
        left=starts,
        right=stops,
        depth=tree.depth[nodes[first]],
        value=sums_by_index(cell, amounts[nodes], len(first)) / width,
        node=np.where(size == 1, nodes[first], -1),
    )
