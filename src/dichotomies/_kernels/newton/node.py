"""The rows, the objective and the results of nodes that are trained together, whichever way.

*Member* 0 is trained on all rows of a node, member ``f + 1`` on those outside fold ``f``. Rows are sorted by
leaf, so that a node's rows are those from ``first`` to ``last``, the left side first.
"""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel


class Nodes(NamedTuple):
    """The rows of every node.

    Attributes
    ----------
    first, split, last : (n_nodes,)
        Start of a node's rows, start of those of its right side, and end.
    weight : (n_rows,)
        Weight of each row; those of weight 0 are only scored.
    fold : (n_rows,)
        Fold of each row, 0 to ``n_members - 2``.
    n_members : int
        1 without folds.
    """

    first: IntArray
    split: IntArray
    last: IntArray
    weight: FloatArray
    fold: IntArray
    n_members: int


class Objective(NamedTuple):
    """The loss and penalty to minimise.

    Attributes
    ----------
    C : (n_nodes, n_grid)
        Inverse strengths of the penalty to try at each node, one after the other.
    left_factor, right_factor : (n_nodes,)
        Class weights.
    balanced : bool
        Give both sides the same weight, in place of the factors.
    free_intercept : bool
        Fit an intercept without penalty.
    intercept_scale : float
        The constant feature of an intercept with penalty; 0 without one.
    tol : float
        Largest derivative of the mean loss.
    max_iter : int
        Newton steps.
    """

    C: FloatArray
    left_factor: FloatArray
    right_factor: FloatArray
    balanced: bool
    free_intercept: bool
    intercept_scale: float
    tol: float
    max_iter: int


class Results(NamedTuple):
    """Per-member results other than the weights.

    Attributes
    ----------
    intercept, is_trained, n_steps : (n_members, n_nodes)
        Of the last C; a node with one side only is not trained, and its intercept the smoothed log-odds.
        Steps that did not lead to the optimum are counted negative, or 0.
    scores : (n_pairs,)
        Out-of-fold log-odds of every node's rows by the last C; NaN where the member was not trained.
    pair_offsets : (n_nodes,)
        Start of each node's scores.
    nll : (n_nodes, n_grid)
        Out-of-fold loss of the node's rows, their weights taken into account; NaN where none was scored.
    """

    intercept: FloatArray
    is_trained: BoolArray
    n_steps: IntArray
    scores: FloatArray
    pair_offsets: IntArray
    nll: FloatArray


@kernel
def costs(k: int, member: int, C: float, nodes: Nodes, objective: Objective, out: FloatArray) -> float:
    """Write the cost of each row for a member, 0 of rows it must not see; return the sum."""
    first, split = nodes.first[k], nodes.split[k]
    left = right = 0.0
    for i in range(first, nodes.last[k]):
        seen = nodes.fold[i] != member - 1
        out[i - first] = nodes.weight[i] if seen else 0.0
        if i < split:
            left += out[i - first]
        else:
            right += out[i - first]
    of_left, of_right = objective.left_factor[k], objective.right_factor[k]
    if objective.balanced:
        of_left, of_right = (left + right) / (2.0 * left), (left + right) / (2.0 * right)
    for i in range(first, nodes.last[k]):
        out[i - first] *= C * (of_left if i < split else of_right)
    return float(C * (left * of_left + right * of_right))


@kernel
def sides(k: int, nodes: Nodes) -> FloatArray:
    """+1 for each row of the left side, -1 of the right."""
    n_left = nodes.split[k] - nodes.first[k]
    y = np.empty(nodes.last[k] - nodes.first[k])
    for i in range(len(y)):
        y[i] = 1.0 if i < n_left else -1.0
    return y


@kernel
def keep_scores(k: int, grid: int, member: int, z: Any, nodes: Nodes, results: Results) -> None:
    """Keep the scores of the rows that a member has not seen, and their loss."""
    if member == 0:
        return
    loss, n_scored = 0.0, 0
    for i in range(len(z)):
        place = nodes.first[k] + i
        if nodes.fold[place] == member - 1:
            score = float(z[i])
            results.scores[results.pair_offsets[k] + i] = score
            wrong = -score if place < nodes.split[k] else score
            loss += nodes.weight[place] * (max(wrong, 0.0) + np.log1p(np.exp(-abs(score))))
            n_scored += 1
    if n_scored > 0:
        before = results.nll[k, grid]
        results.nll[k, grid] = loss + (0.0 if np.isnan(before) else before)
