"""Gradient boosting of trees with Newton steps, at some nodes of a class tree."""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.boosting.ensembles import Ensembles, write_splits
from dichotomies._kernels.boosting.feature_order import mix_bits
from dichotomies._kernels.boosting.local_rows import HASH_FACTOR, Bins
from dichotomies._kernels.boosting.newton import HESSIAN_EPSILON, CategoricalNewton, Newton
from dichotomies._kernels.boosting.room import Boosted, Ranges, begin_node, take_weights
from dichotomies._kernels.boosting.rows import write_row_keys
from dichotomies._kernels.boosting.sparse_rows import SparseBins
from dichotomies._kernels.boosting.team import DISSOLVE, LEFT, Team, meet, sums, told_now
from dichotomies._kernels.boosting.tree_memory import Growth, Search, Tree
from dichotomies._kernels.boosting.trees import grow_tree
from dichotomies._kernels.compile import kernel

#: The integer that a total weight of 1 becomes in fixed point, a quarter of the range of int64; and where
#: gradients and Hessians share an integer.
FIXED_POINT_ONE, PACKED_ONE = 2.0**61, 2.0**31 - 1.0


class GradientBoosting(NamedTuple):
    """Parameters of gradient boosting at some nodes.

    Attributes
    ----------
    criterion : Newton or CategoricalNewton
    n_estimators, max_depth, max_leaves, min_rows : (n_nodes,)
        `min_rows` is the minimum number of rows in a leaf.
    tree_features : (n_nodes,)
        Share of the features that a tree may use.
    learning_rate : float
    subsample, split_features : float
        Shares of rows for a tree, and of its features for a split.
    seed : int
    """

    criterion: Newton | CategoricalNewton
    n_estimators: IntArray
    max_depth: IntArray
    max_leaves: IntArray
    min_rows: IntArray
    tree_features: FloatArray
    learning_rate: float
    subsample: float
    split_features: float
    seed: int


@kernel(seconds=5, borrows=True)
def boost_gradient_nodes(
    boosting: GradientBoosting,
    bins: Bins | SparseBins,
    weight: FloatArray,
    fold: IntArray,
    left_out: int,
    ranges: Ranges,
    room: Any,
    origin: Any,
    tree: Tree,
    memory: Search,
    boosted: Boosted,
    out: Ensembles,
) -> None:
    """Boost the logistic loss at some nodes: every tree is a Newton step.

    Parameters
    ----------
    weight, fold : (n_rows,)
    left_out : int
        The fold to leave out; -1 for none.
    room, origin, tree, memory, boosted
        See `Room`.
    """
    t, s = 0, 0
    for k in range(len(ranges.begin)):
        rows = begin_node(bins, weight, fold, left_out, ranges, k, False, room, origin, memory.team, out)
        if out.is_trained[k]:
            before = t
            t, s = add_trees(boosting, bins, weight, k, rows, origin, tree, memory, boosted, t, s, out)
            out.n_trees[k] = t - before


@kernel(inline=True)
def add_trees(
    boosting: GradientBoosting,
    bins: Bins | SparseBins,
    all_weights: FloatArray,
    k: int,
    rows: Any,
    origin: Any,
    tree: Tree,
    memory: Search,
    boosted: Boosted,
    t: int,
    s: int,
    out: Ensembles,
) -> tuple[int, int]:
    """Write the trees of node `k` after `t` trees and `s` splits of others; return their numbers then."""
    criterion, score, n_rows, n_negative = boosting.criterion, boosted.score, rows.n_rows, rows.n_negative
    team = memory.team
    weight, gradients, keys = boosted.weight, boosted.gradients, boosted.keys
    most = take_weights(all_weights, rows.most, origin.taken, n_rows, weight)
    exact, packing = FIXED_POINT_ONE / (rows.n_all * most), PACKED_ONE / (rows.n_all * most)
    out.base[k] = prior_log_odds(team, n_rows, n_negative, weight, exact, score)
    out.base[k] *= out.scale[k]
    unit = 1.0 / packing
    least: Any = np.ceil(criterion.min_hessian / unit)
    growth = Growth(
        boosting.max_depth[k],
        boosting.max_leaves[k],
        boosting.min_rows[k],
        int(least if least < 2.0**62 else 2.0**62),
        unit,
        boosting.tree_features[k],
        boosting.split_features,
        boosting.seed,
    )
    draws = boosting.subsample < 1.0 or growth.tree_features < 1.0
    if boosting.subsample < 1.0:
        write_row_keys(rows, keys)
        for i in range(n_rows):
            keys[i] = mix_bits(keys[i])
    for number in range(boosting.n_estimators[k]):
        amounts = rows.amounts
        own = newton_amounts(n_rows, n_negative, weight, score, exact, packing, gradients, amounts)
        hessian, wants_to_leave = sums(team, own, team.board[DISSOLVE])
        if wants_to_leave > 0:
            team.board[LEFT] = 1
            break
        if boosting.subsample < 1.0:
            draw_rows(n_rows, keys, boosting.subsample, boosting.seed, number, rows.amounts)
        n = grow_tree(criterion, rows, growth, number, tree, memory)
        if n > 0:
            write_splits(criterion, rows, origin, bins, tree, n, t, s, out)
            values = out.value[s + t : s + t + n + 1]
            step_leaves(criterion, team, tree, gradients, 1.0 / exact, boosting.learning_rate, values, score)
            t, s = t + 1, s + n
        elif not draws or hessian / exact < 2.0 * criterion.min_hessian:
            break  # no later tree would find a split either
    return t, s


@kernel
def prior_log_odds(
    team: Team, n_rows: int, n_negative: int, weight: FloatArray, scale: float, score: FloatArray
) -> Any:
    """Log-odds of the positive rows' weight, independently of their order: the first score of every row."""
    negative, positive = np.int64(0), np.int64(0)
    for i in range(n_negative):
        negative += np.int64(weight[i] * scale + 0.5)
    for i in range(n_negative, n_rows):
        positive += np.int64(weight[i] * scale + 0.5)
    negative, positive = sums(team, negative, positive)
    prior = np.log(max(np.float64(positive), 1.0) / max(np.float64(negative), 1.0))
    for i in range(n_rows):
        score[i] = prior
    return prior


@kernel
def newton_amounts(
    n_rows: int,
    n_negative: int,
    weight: FloatArray,
    score: FloatArray,
    exact: float,
    packing: float,
    gradients: IntArray,
    amounts: IntArray,
) -> Any:
    """Write the gradient and Hessian of each row, apart and in one integer; return the sum of the Hessians.

    They are rounded to single precision, as in scikit-learn.
    """
    total = np.int64(0)
    for i in range(n_rows):
        tail = np.exp(-abs(score[i]))
        likelier = 1.0 / (1.0 + tail)
        p = likelier if score[i] >= 0.0 else tail * likelier
        q = tail * likelier if score[i] >= 0.0 else likelier
        gradient = np.float32(weight[i] * (-q if i >= n_negative else p))
        hessian = np.float32(weight[i] * p * q)
        gradients[0, i] = np.int64(np.rint(gradient * exact))
        gradients[1, i] = np.int64(np.rint(hessian * exact))
        total += gradients[1, i]
        packed = np.int64(np.rint(gradient * packing)) << 32
        amounts[0, i] = packed + np.int64(np.rint(hessian * packing))
    return total


@newton_amounts.plainly
def _newton_amounts(
    n_rows: int,
    n_negative: int,
    weight: FloatArray,
    score: FloatArray,
    exact: float,
    packing: float,
    gradients: IntArray,
    amounts: IntArray,
) -> Any:
    weight, score = weight[:n_rows], score[:n_rows]
    tail = np.exp(-np.abs(score))
    likelier, other = 1.0 / (1.0 + tail), tail * (1.0 / (1.0 + tail))
    p, q = np.where(score >= 0.0, (likelier, other), (other, likelier))
    slope = np.where(np.arange(n_rows) >= n_negative, -q, p)
    both = np.stack([weight * slope, weight * p * q]).astype(np.float32).astype(np.float64)
    gradients[:, :n_rows] = np.rint(both * exact)
    packed = np.rint(both * packing).astype(np.int64)
    amounts[0, :n_rows] = (packed[0] << 32) + packed[1]
    return gradients[1, :n_rows].sum()


@kernel
def draw_rows(n_rows: int, keys: Any, share: float, seed: int, number: int, amounts: IntArray) -> None:
    """Draw a share of the rows for a tree; see `LocalRows.amounts`.

    Rows are drawn by their bins, so that their order does not matter, and a row twice is one of weight 2.
    """
    limit = np.uint64(share * 2.0**53)
    key = mix_bits(mix_bits(np.uint64(seed)) + np.uint64(number))
    for i in range(n_rows):
        amounts[2, i] = ((key ^ keys[i]) * HASH_FACTOR) >> np.uint64(11) < limit


@kernel
def step_leaves(
    criterion: Any,
    team: Team,
    tree: Tree,
    gradients: IntArray,
    unit: float,
    learning_rate: float,
    values: FloatArray,
    score: FloatArray,
) -> None:
    """Write the Newton step of every leaf, and add it to the scores of its rows."""
    told = told_now(team)
    for number in range(2 * len(values) - 1):
        node = tree.nodes[number]
        if node["child"] >= 0:
            continue
        gradient, hessian = np.int64(0), np.int64(0)
        rows = tree.order[node["begin"] : node["end"]]
        for i in range(len(rows)):
            gradient += gradients[0, rows[i]]
            hessian += gradients[1, rows[i]]
        told[team.rank, 2 * node["leaf"]], told[team.rank, 2 * node["leaf"] + 1] = gradient, hessian
    meet(team)
    for number in range(2 * len(values) - 1):
        node = tree.nodes[number]
        if node["child"] >= 0:
            continue
        gradient, hessian = np.int64(0), np.int64(0)
        for r in range(team.size):
            gradient += told[r, 2 * node["leaf"]]
            hessian += told[r, 2 * node["leaf"] + 1]
        penalty = criterion.l2_regularization + HESSIAN_EPSILON
        step = learning_rate * (-unit * gradient / (unit * hessian + penalty))
        values[node["leaf"]] = step
        rows = tree.order[node["begin"] : node["end"]]
        for i in range(len(rows)):
            score[rows[i]] += step
