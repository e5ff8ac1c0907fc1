"""Gradient boosting of trees with Newton steps, at many nodes of a class tree, one after another.

Rows are sorted by leaf of the class tree: the rows of every node are contiguous, its left side first.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.ensembles import (
    FIXED_POINT_ONE,
    Bins,
    Boosting,
    Ensembles,
    chosen_rows,
    columns,
    local_problem,
    place_rows,
    usual_weights,
    write_splits,
)
from dichotomies._kernels.boosting.feature_order import mix_bits
from dichotomies._kernels.boosting.splits import HESSIAN_EPSILON, Limits
from dichotomies._kernels.boosting.tree_memory import BinnedRows, Growth, Tree, allocate_tree
from dichotomies._kernels.boosting.trees import grow_tree
from dichotomies._kernels.compile import kernel

#: The integer that a total weight of 1 becomes where gradients and Hessians share an integer.
PACKED_ONE = 2.0**31 - 1.0

#: An odd number without structure: the golden ratio in 64 bits.
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@kernel(seconds=25)
def boost_gradient_nodes(
    bins: Bins,
    weight: FloatArray,
    fold: IntArray,
    left_out: int,
    begin: IntArray,
    split: IntArray,
    end: IntArray,
    left_is_positive: BoolArray,
    boosting: Boosting,
    out: Ensembles,
) -> None:
    """Train the ensembles of some nodes, each on its rows of positive weight outside the fold left out.

    Parameters
    ----------
    weight, fold : (n_rows,)
    left_out : int
        The fold to leave out, whose rows are scored; -1 for none.
    begin, split, end : (n_nodes,)
        Each node's range of rows, and the start of its right side.
    left_is_positive : (n_nodes,)
    """
    t, s, pair = 0, 0, 0
    for k in range(len(begin)):
        left = chosen_rows(weight, fold, left_out, begin[k], split[k])
        right = chosen_rows(weight, fold, left_out, split[k], end[k])
        n_before = t
        out.is_trained[k] = len(left) > 0 and len(right) > 0
        out.scale[k] = 1.0 if left_is_positive[k] else -1.0
        if out.is_trained[k]:
            negative, positive = (right, left) if left_is_positive[k] else (left, right)
            taken = np.concatenate((negative, positive))
            held = np.flatnonzero(fold[begin[k] : end[k]] == left_out)
            score = np.zeros(len(held))
            t, s = fit_node(
                bins, taken, len(negative), weight, begin[k] + held, split[k], boosting, k, t, s, out, score
            )
            for i in range(len(held)):
                out.held_score[pair + held[i]] = out.scale[k] * score[i]
        else:
            out.base[k] = np.log((weight[left].sum() + 1.0) / (weight[right].sum() + 1.0))
        out.n_trees[k] = t - n_before
        out.base[k] *= out.scale[k] if out.is_trained[k] else 1.0
        if left_out >= 0:
            pair += end[k] - begin[k]


@kernel
def fit_node(
    bins: Bins,
    taken: IntArray,
    n_negative: int,
    all_weights: FloatArray,
    held: IntArray,
    split: int,
    boosting: Boosting,
    k: int,
    t: int,
    s: int,
    out: Ensembles,
    held_score: FloatArray,
) -> tuple[int, int]:
    """Fit gradient boosting of the logistic loss at one node: every tree is a Newton step.

    Returns
    -------
    (int, int)
        Numbers of trees and splits written so far.
    """
    merge = n_negative < 0  # a variable: no bins are merged by class
    rows, to_global = local_problem(bins, taken, n_negative, merge)
    weight = usual_weights(all_weights[taken])
    n_rows = len(taken)
    exact, packing = FIXED_POINT_ONE / (n_rows * weight.max()), PACKED_ONE / (n_rows * weight.max())
    out.base[k] = prior_log_odds(weight, n_negative, exact)
    score = np.full(n_rows, out.base[k])
    held_score[:] = out.base[k]
    out.held_loss[k] = held_out_loss(held_score, held, split, out.scale[k], all_weights)
    held_codes, place = columns(bins.codes, held), np.empty(len(held), dtype=np.uint8)
    limits = Limits(boosting.min_rows[k], 1.0 / packing, boosting.l2_regularization, boosting.min_hessian)
    growth = Growth(
        boosting.max_depth[k],
        boosting.max_leaves[k],
        True,
        boosting.tree_features[k],
        boosting.split_features,
        boosting.seed,
        limits,
    )
    tree = allocate_tree(growth, n_rows, len(rows.offsets) - 1, rows.offsets[-1])
    gradients, keys = np.empty((2, n_rows), dtype=np.int64), row_keys(rows)
    for number in range(boosting.n_estimators[k]):
        newton_amounts(rows, weight, score, exact, packing, gradients)
        draw_rows(rows, keys, boosting.subsample, boosting.seed, number)
        grow_tree(rows, growth, number, tree)
        n = tree.n_splits[0]
        if n == 0:
            draws = boosting.subsample < 1.0 or growth.tree_features < 1.0
            if draws and gradients[1].sum() / exact >= 2.0 * boosting.min_hessian:
                continue
            break  # no later tree would find a split either
        write_splits(rows, tree, to_global, t, s, True, out)
        values = out.value[s + t : s + t + n + 1]
        step_leaves(tree, gradients, 1.0 / exact, boosting.learning_rate, limits, values, score)
        place_rows(held_codes, out, s, s + n, place)
        for i in range(len(held)):
            held_score[i] += values[place[i]]
        t, s = t + 1, s + n
        out.held_loss[k, number + 1 :] = held_out_loss(held_score, held, split, out.scale[k], all_weights)
    return t, s


@kernel
def prior_log_odds(weight: FloatArray, n_negative: int, scale: float) -> Any:
    """Log-odds of the positive rows' weight, independently of the order of the rows."""
    sums = np.zeros(2, dtype=np.int64)
    for i in range(len(weight)):
        sums[1 if i >= n_negative else 0] += np.int64(weight[i] * scale + 0.5)
    return np.log(max(sums[1], 1) / max(sums[0], 1))


@kernel
def newton_amounts(
    rows: BinnedRows,
    weight: FloatArray,
    score: FloatArray,
    exact: float,
    packing: float,
    gradients: IntArray,
) -> None:
    """Write the gradient and Hessian of each row, apart and in one integer.

    They are rounded to single precision, as in scikit-learn.
    """
    for i in range(len(weight)):
        tail = np.exp(-abs(score[i]))
        likelier = 1.0 / (1.0 + tail)
        p = likelier if score[i] >= 0.0 else tail * likelier
        q = tail * likelier if score[i] >= 0.0 else likelier
        gradient = np.float32(weight[i] * (-q if i >= rows.n_negative else p))
        hessian = np.float32(weight[i] * p * q)
        gradients[0, i] = np.int64(np.rint(gradient * exact))
        gradients[1, i] = np.int64(np.rint(hessian * exact))
        packed = np.int64(np.rint(gradient * packing)) << 32
        rows.amounts[0, i] = packed + np.int64(np.rint(hessian * packing))


@kernel
def row_keys(rows: BinnedRows) -> npt.NDArray[np.uint64]:
    """Hash values of the rows' bins."""
    keys = np.zeros(rows.codes.shape[1], dtype=np.uint64)
    for f in range(len(rows.codes)):
        codes = rows.codes[f]
        for i in range(len(keys)):
            keys[i] = keys[i] * HASH_FACTOR + np.uint64(codes[i])
    return keys


@kernel
def draw_rows(rows: BinnedRows, keys: npt.NDArray[np.uint64], share: float, seed: int, number: int) -> None:
    """Draw a share of the rows for a tree: the amounts of the others are 0.

    Rows are drawn by their bins, so that their order does not matter, and a row twice is one of weight 2.
    """
    if share >= 1.0:
        return
    limit = np.uint64(share * 2.0**53)
    key = mix_bits(mix_bits(np.uint64(seed)) + np.uint64(number))
    for i in range(len(keys)):
        is_drawn = mix_bits(key + keys[i]) >> np.uint64(11) < limit
        rows.amounts[2, i] = 1 if is_drawn else 0
        rows.amounts[0, i] = rows.amounts[0, i] if is_drawn else 0


@kernel
def step_leaves(
    tree: Tree,
    gradients: IntArray,
    unit: float,
    learning_rate: float,
    limits: Limits,
    values: FloatArray,
    score: FloatArray,
) -> None:
    """Write the Newton step of every leaf, and add it to the scores of its rows."""
    for node in range(2 * len(values) - 1):
        if tree.child[node] >= 0:
            continue
        gradient, hessian = np.int64(0), np.int64(0)
        for place in range(tree.begin[node], tree.end[node]):
            gradient += gradients[0, tree.order[place]]
            hessian += gradients[1, tree.order[place]]
        penalty = limits.l2_regularization + HESSIAN_EPSILON
        step = -unit * gradient / (unit * hessian + penalty)
        values[tree.leaf[node]] = learning_rate * step
        for place in range(tree.begin[node], tree.end[node]):
            score[tree.order[place]] += learning_rate * step


@kernel
def held_out_loss(score: FloatArray, held: IntArray, split: int, scale: float, weight: FloatArray) -> float:
    """Sum of the weighted logistic losses of rows that were held out."""
    total = 0.0
    for i in range(len(held)):
        is_positive = (held[i] < split) == (scale > 0.0)
        margin = score[i] if is_positive else -score[i]
        total += weight[held[i]] * (np.log1p(np.exp(-abs(margin))) + max(-margin, 0.0))
    return total
