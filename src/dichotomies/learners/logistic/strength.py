"""Choice of the regularisation strength of each node from out-of-fold losses."""

from __future__ import annotations

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray

#: Number of pseudo-rows that shrink the losses of a node towards the mean losses of its depth, and those of a
#: depth towards the whole tree's. Nodes with few or no scored rows thus follow the others.
PSEUDO_ROWS = 100.0


def choose_strength(
    depth: IntArray, grid: FloatArray, nll: FloatArray, n_scored: FloatArray, *, per_depth: bool
) -> FloatArray:
    """Choose the C of each node: the one of lowest loss, the smallest among ties.

    Parameters
    ----------
    depth : (n_nodes,)
        Depth of each node.
    grid : (n_grid,)
        Candidates, ascending.
    nll : (n_nodes, n_grid)
        Sum of out-of-fold losses of each node's rows; NaN where none was scored.
    n_scored : (n_nodes,)
        Sum of the weights of those rows.
    per_depth : bool
        Choose one C for all nodes of a depth.
    """
    nll = np.where(np.isnan(nll), 0.0, nll)
    n_depths = int(depth.max()) + 1
    of_depth = np.zeros((n_depths, len(grid)))
    np.add.at(of_depth, depth, nll)
    scored_of_depth = np.bincount(depth, weights=n_scored, minlength=n_depths)
    overall = of_depth.sum(axis=0) / max(scored_of_depth.sum(), 1e-300)
    of_depth += PSEUDO_ROWS * overall
    if per_depth:
        of_nodes: FloatArray = grid[of_depth.argmin(axis=1)][depth]
        return of_nodes
    mean = of_depth / (scored_of_depth + PSEUDO_ROWS)[:, None]
    chosen: FloatArray = grid[(nll + PSEUDO_ROWS * mean[depth]).argmin(axis=1)]
    return chosen
