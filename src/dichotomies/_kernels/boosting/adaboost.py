"""AdaBoost of small trees, discrete (SAMME) and real (SAMME.R), at many nodes of a class tree."""

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.ensembles import (
    EPSILON,
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
from dichotomies._kernels.boosting.splits import Limits
from dichotomies._kernels.boosting.tree_memory import BinnedRows, Growth, Tree, allocate_tree
from dichotomies._kernels.boosting.trees import grow_tree
from dichotomies._kernels.compile import kernel


@kernel(seconds=25)
def boost_ada_nodes(
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
    """Train the ensembles of some nodes; parameters as in `boost_gradient_nodes`."""
    t, s, pair = 0, 0, 0
    for k in range(len(begin)):
        left = chosen_rows(weight, fold, left_out, begin[k], split[k])
        right = chosen_rows(weight, fold, left_out, split[k], end[k])
        n_before = t
        out.is_trained[k] = len(left) > 0 and len(right) > 0
        out.scale[k], out.base[k] = 1.0, 0.0
        if out.is_trained[k]:
            negative, positive = (right, left) if left_is_positive[k] else (left, right)
            taken = np.concatenate((negative, positive))
            held = np.flatnonzero(fold[begin[k] : end[k]] == left_out)
            score = np.zeros(len(held))
            t, s = fit_node(
                bins, taken, len(negative), weight, begin[k] + held, boosting, k, t, s, out, score
            )
            out.scale[k] *= 1.0 if left_is_positive[k] else -1.0
            for i in range(len(held)):
                out.held_score[pair + held[i]] = out.scale[k] * score[i]
        else:
            out.base[k] = np.log((weight[left].sum() + 1.0) / (weight[right].sum() + 1.0))
        out.n_trees[k] = t - n_before
        if left_out >= 0:
            pair += end[k] - begin[k]


@kernel
def fit_node(
    bins: Bins,
    taken: IntArray,
    n_negative: int,
    all_weights: FloatArray,
    held: IntArray,
    boosting: Boosting,
    k: int,
    t: int,
    s: int,
    out: Ensembles,
    held_score: FloatArray,
) -> tuple[int, int]:
    """Fit AdaBoost at one node: every tree is grown on weights that emphasise the errors of those before it.

    SAMME and SAMME.R of Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost* (2009), for two classes.

    Returns
    -------
    (int, int)
        Numbers of trees and splits written so far.
    """
    # with a minimum leaf size the best split may be forbidden, so the others must be available
    merge = boosting.min_rows[k] == 1
    rows, to_global = local_problem(bins, taken, n_negative, merge)
    weight = usual_weights(all_weights[taken])
    held_codes, place = columns(bins.codes, held), np.empty(len(held), dtype=np.uint8)
    limits = Limits(boosting.min_rows[k], 1.0, 0.0, 0.0)
    growth = Growth(boosting.max_depth[k], boosting.max_leaves[k], False, 1.0, 1.0, 0, limits)
    tree = allocate_tree(growth, len(taken), len(rows.offsets) - 1, rows.offsets[-1])
    factors = np.empty((len(tree.splits), 2))
    votes = 0.0
    normalise(weight)
    for number in range(boosting.n_estimators[k]):
        for i in range(len(weight)):
            weight[i] = max(weight[i], EPSILON)
            rows.amounts[0, i] = rows.amounts[1, i] = np.int64(weight[i] * FIXED_POINT_ONE + 0.5)
        grow_tree(rows, growth, number, tree)
        wrong, total = error_weight(tree)
        error = wrong / total
        if error >= 0.5 and not boosting.real:
            break
        rate = boosting.learning_rate
        vote = 1.0 if boosting.real or error <= 0.0 else rate * np.log((1.0 - error) / error)
        n = tree.n_splits[0]
        write_splits(rows, tree, to_global, t, s, False, out)
        values = out.value[s + t : s + t + n + 1]
        ada_values(tree, vote, boosting.real, values)
        place_rows(held_codes, out, s, s + n, place)
        for i in range(len(held)):
            held_score[i] += values[place[i]]
        votes += vote
        t, s = t + 1, s + n
        if error <= 0.0 or not update_weights(rows, tree, values, boosting.real, rate, factors, weight):
            break
    out.scale[k] = (1.0 if boosting.real else 2.0) / max(votes, EPSILON)
    return t, s


@kernel
def normalise(weight: FloatArray) -> None:
    """Scale the weights to sum to 1, independently of their order."""
    scale = FIXED_POINT_ONE / (len(weight) * weight.max())
    total = np.int64(0)
    for i in range(len(weight)):
        total += np.int64(weight[i] * scale + 0.5)
    for i in range(len(weight)):
        weight[i] = weight[i] * scale / total


@kernel
def error_weight(tree: Tree) -> tuple[float, float]:
    """Weight of the misclassified rows, and of all rows."""
    wrong = np.int64(0)
    for node in range(2 * tree.n_splits[0] + 1):
        if tree.child[node] < 0:
            wrong += min(tree.sums[node, 0], tree.sums[node, 1])
    return float(wrong), float(tree.sums[0, 0] + tree.sums[0, 1])


@kernel
def ada_values(tree: Tree, vote: float, real: bool, values: FloatArray) -> None:
    """Write the vote, or the log-odds, of every leaf."""
    for node in range(2 * len(values) - 1):
        if tree.child[node] >= 0:
            continue
        negative, positive = float(tree.sums[node, 0]), float(tree.sums[node, 1])
        value = vote if positive > negative else -vote
        if real:
            total = negative + positive
            value = np.log(max(positive / total, EPSILON)) - np.log(max(negative / total, EPSILON))
        values[tree.leaf[node]] = value


@kernel
def update_weights(
    rows: BinnedRows,
    tree: Tree,
    values: FloatArray,
    real: bool,
    learning_rate: float,
    factors: FloatArray,
    weight: FloatArray,
) -> bool:
    """Apply the AdaBoost weight update leaf by leaf, and normalise.

    The new sum is taken over leaves rather than rows, so that the order of rows does not matter.

    Returns
    -------
    bool
        False if the weights overflow.
    """
    new_total = 0.0
    for node in range(2 * len(values) - 1):
        if tree.child[node] >= 0:
            continue
        leaf = tree.leaf[node]
        if real:
            step = 0.5 * learning_rate * values[leaf]
            factors[leaf, 0], factors[leaf, 1] = np.exp(step), np.exp(-step)
        else:
            factors[leaf, 0] = np.exp(max(values[leaf], 0.0))
            factors[leaf, 1] = np.exp(max(-values[leaf], 0.0))
        new_total += factors[leaf, 0] * tree.sums[node, 0] + factors[leaf, 1] * tree.sums[node, 1]
    new_total /= FIXED_POINT_ONE
    if not (np.isfinite(new_total) and new_total > 0.0):
        return False
    for node in range(2 * len(values) - 1):
        if tree.child[node] < 0:
            for place in range(tree.begin[node], tree.end[node]):
                row = tree.order[place]
                side = 1 if row >= rows.n_negative else 0
                weight[row] *= factors[tree.leaf[node], side] / new_total
    return True
