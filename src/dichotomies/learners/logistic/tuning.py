"""The rule by which nodes choose the strength of their penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

#: A node chooses as if it had this many more rows, with the mean losses of its depth; a depth likewise with
#: those of the whole tree. So nodes with few rows, or none to try on, follow the others.
BORROWED_ROWS = 100.0


def chosen_strength(
    depth: IntArray, grid: FloatArray, nll: FloatArray, n_scored: FloatArray, *, per_depth: bool
) -> FloatArray:
    """The C of each node, the smallest of those with the lowest loss.

    Parameters
    ----------
    depth : (n_nodes,)
        Of each node.
    grid : (n_grid,)
        Ascending.
    nll : (n_nodes, n_grid)
        Sum of out-of-fold losses of each node's rows; NaN where none was scored.
    n_scored : (n_nodes,)
        Sum of the weights of those rows.
    per_depth : bool
        Whether the nodes of a depth choose together.
    """
    nll = np.where(np.isnan(nll), 0.0, nll)
    n_depths = int(depth.max()) + 1
    of_depth = np.zeros((n_depths, len(grid)))
    np.add.at(of_depth, depth, nll)
    scored_of_depth = np.bincount(depth, weights=n_scored, minlength=n_depths)
    overall = of_depth.sum(axis=0) / max(scored_of_depth.sum(), 1e-300)
    of_depth += BORROWED_ROWS * overall
    if per_depth:
        of_nodes: FloatArray = grid[of_depth.argmin(axis=1)][depth]
        return of_nodes
    mean = of_depth / (scored_of_depth + BORROWED_ROWS)[:, None]
    chosen: FloatArray = grid[(nll + BORROWED_ROWS * mean[depth]).argmin(axis=1)]
    return chosen
