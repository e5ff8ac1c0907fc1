"""Icicle layout: nodes as rectangles with a width proportional to their rows; narrow nodes are merged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies.diagnostics import Ledger
from dichotomies.metrics.binning import sums_by_index

#: Share of the rows below which nodes at the same depth are merged with their neighbours.
NARROW = 1 / 250


class Cells(NamedTuple):
    """Rectangles, each one depth high.

    Attributes
    ----------
    left, right : ndarray of shape (n_cells,)
        Edges, as shares of all rows.
    depth : ndarray of shape (n_cells,)
        Depth of the node, or of the merged nodes.
    value : ndarray of shape (n_cells,)
        The displayed amount per row; the mean over merged nodes.
    node : ndarray of shape (n_cells,)
        The node that a rectangle represents, or -1 for merged nodes.
    """

    left: FloatArray
    right: FloatArray
    depth: IntArray
    value: FloatArray
    node: IntArray


def leaf_edges(ledger: Ledger) -> FloatArray:
    """Return the left edge of each leaf, and the right end, as shares of all rows."""
    edges = np.concatenate([[0.0], np.cumsum(ledger.class_rows)])
    edges /= edges[-1]
    return edges


def cells_of(ledger: Ledger, amounts: FloatArray, narrow: float = NARROW) -> Cells:
    """Return the rectangles of the nodes that have rows, with those narrower than `narrow` merged.

    Parameters
    ----------
    ledger : Ledger
    amounts : ndarray of shape (n_nodes,)
        Shares of the mean over all rows, such as ``ledger.nll``.
    narrow : float
        Share of the rows below which a node is merged with other such nodes: those at the same depth whose
        midpoints are in the same interval of that width.
    """
    edges, tree = leaf_edges(ledger), ledger.tree
    left, right = edges[tree.start], edges[tree.stop]
    nodes = np.flatnonzero(right > left)
    is_narrow = right[nodes] - left[nodes] < narrow
    stretch = ((left[nodes] + right[nodes]) / 2 / narrow).astype(np.intp)
    # Wide nodes keep their own cells; ids of merged cells follow.
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
