"""How strong a penalty each node wants: folds to try it on, and the rule by which nodes choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import check_cv

if TYPE_CHECKING:
    from dichotomies._typing import FloatArray, IntArray
    from dichotomies.tree import ClassTree

#: A node chooses as if it had this many more rows, with the mean losses of its depth; a depth likewise with
#: those of the whole tree. So nodes with few rows, or none to try on, follow the others.
BORROWED_ROWS = 100.0


def inner_folds(codes: IntArray, cv: Any, random_state: Any) -> IntArray:
    """The fold of each row.

    A number of folds deals the shuffled rows of one class after the other; the test parts of a splitter must
    hold every row once.
    """
    folds = np.full(len(codes), -1, dtype=np.intp)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds, got {cv}.")
        order = random_state.permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        folds[order] = np.arange(len(codes)) % min(int(cv), len(codes))
        return folds
    for number, (_, test) in enumerate(check_cv(cv, codes, classifier=True).split(codes, codes)):
        if (folds[test] >= 0).any():
            raise ValueError("The test parts of cv must not overlap.")
        folds[test] = number
    if (folds < 0).any():
        raise ValueError("The test parts of cv must hold every row.")
    return folds


def chosen_strength(
    tree: ClassTree, grid: FloatArray, nll: FloatArray, n_scored: FloatArray, *, per_depth: bool
) -> FloatArray:
    """The C of each node, the smallest of those with the lowest loss.

    Parameters
    ----------
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
    n_depths = int(tree.depth.max()) + 1
    of_depth = np.zeros((n_depths, len(grid)))
    np.add.at(of_depth, tree.depth, nll)
    scored_of_depth = np.bincount(tree.depth, weights=n_scored, minlength=n_depths)
    overall = of_depth.sum(axis=0) / max(scored_of_depth.sum(), 1e-300)
    of_depth += BORROWED_ROWS * overall
    if per_depth:
        of_nodes: FloatArray = grid[of_depth.argmin(axis=1)][tree.depth]
        return of_nodes
    mean = of_depth / (scored_of_depth + BORROWED_ROWS)[:, None]
    chosen: FloatArray = grid[(nll + BORROWED_ROWS * mean[tree.depth]).argmin(axis=1)]
    return chosen
