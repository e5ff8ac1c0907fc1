"""AdaBoost of small trees, discrete (SAMME) and real (SAMME.R), at some nodes of a class tree."""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.boosting.ensembles import Ensembles, write_splits
from dichotomies._kernels.boosting.gini import Gini
from dichotomies._kernels.boosting.gradient import FIXED_POINT_ONE
from dichotomies._kernels.boosting.local_rows import Bins
from dichotomies._kernels.boosting.room import Boosted, Ranges, begin_node, take_weights
from dichotomies._kernels.boosting.sparse_rows import SparseBins
from dichotomies._kernels.boosting.tree_memory import Growth, Search, Tree
from dichotomies._kernels.boosting.trees import grow_tree
from dichotomies._kernels.compile import kernel

#: Lower limit of row weights and of leaf probabilities, as in scikit-learn.
EPSILON = float(np.finfo(np.float64).eps)


class AdaBoosting(NamedTuple):
    """Parameters of AdaBoost at some nodes.

    Attributes
    ----------
    criterion : Gini
    n_estimators, max_depth, max_leaves, min_rows : (n_nodes,)
        `min_rows` is the minimum number of rows in a leaf.
    learning_rate : float
    real : bool
        Real instead of discrete AdaBoost.
    """

    criterion: Gini
    n_estimators: IntArray
    max_depth: IntArray
    max_leaves: IntArray
    min_rows: IntArray
    learning_rate: float
    real: bool


@kernel(seconds=5, borrows=True)
def boost_ada_nodes(
    boosting: AdaBoosting,
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
    """Run AdaBoost at some nodes; parameters as in `boost_gradient_nodes`.

    SAMME and SAMME.R of Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost* (2009), for two classes: every tree
    is grown on weights that emphasise the errors of those before it.
    """
    t, s = 0, 0
    for k in range(len(ranges.begin)):
        # with a minimum leaf size the best split may be forbidden, so the others must be available
        merge = boosting.min_rows[k] == 1
        rows = begin_node(bins, weight, fold, left_out, ranges, k, merge, room, origin, memory.team, out)
        if out.is_trained[k]:
            before = t
            t, s = add_trees(boosting, bins, weight, k, rows, origin, tree, memory, boosted, t, s, out)
            out.n_trees[k] = t - before


@kernel(inline=True)
def add_trees(
    boosting: AdaBoosting,
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
    weight, rate, real = boosted.weight, boosting.learning_rate, boosting.real
    most = take_weights(all_weights, rows.most, origin.taken, rows.n_rows, weight)
    normalise(weight, rows.n_rows, most)
    growth = Growth(boosting.max_depth[k], boosting.max_leaves[k], boosting.min_rows[k], 0, 1.0, 1.0, 1.0, 0)
    votes = 0.0
    for number in range(boosting.n_estimators[k]):
        for i in range(rows.n_rows):
            weight[i] = max(weight[i], EPSILON)
            rows.amounts[0, i] = rows.amounts[1, i] = np.int64(weight[i] * FIXED_POINT_ONE + 0.5)
        n = grow_tree(boosting.criterion, rows, growth, number, tree, memory)
        error = error_rate(tree, n)
        if error >= 0.5 and not real:
            break
        vote = 1.0 if real or error <= 0.0 else rate * np.log((1.0 - error) / error)
        write_splits(boosting.criterion, rows, origin, bins, tree, n, t, s, out)
        values = out.value[s + t : s + t + n + 1]
        ada_values(tree, vote, real, values)
        votes += vote
        t, s = t + 1, s + n
        if error <= 0.0 or not update_weights(
            rows.n_negative, tree, values, real, rate, boosted.factors, weight
        ):
            break
    out.scale[k] *= (1.0 if real else 2.0) / max(votes, EPSILON)
    return t, s


@kernel
def normalise(weight: FloatArray, n_rows: int, most: float) -> None:
    """Scale the weights to sum to 1, independently of their order."""
    scale = FIXED_POINT_ONE / (n_rows * most)
    total = np.int64(0)
    for i in range(n_rows):
        total += np.int64(weight[i] * scale + 0.5)
    for i in range(n_rows):
        weight[i] = weight[i] * scale / total


@kernel
def error_rate(tree: Tree, n_splits: int) -> float:
    """Share of the weight that is misclassified."""
    wrong = np.int64(0)
    for number in range(2 * n_splits + 1):
        node = tree.nodes[number]
        if node["child"] < 0:
            wrong += min(node["first"], node["second"])
    return float(wrong) / float(tree.nodes[0]["first"] + tree.nodes[0]["second"])


@kernel
def ada_values(tree: Tree, vote: float, real: bool, values: FloatArray) -> None:
    """Write the vote, or the log-odds, of every leaf."""
    for number in range(2 * len(values) - 1):
        node = tree.nodes[number]
        if node["child"] >= 0:
            continue
        negative, positive = float(node["first"]), float(node["second"])
        value = vote if positive > negative else -vote
        if real:
            total = negative + positive
            value = np.log(max(positive / total, EPSILON)) - np.log(max(negative / total, EPSILON))
        values[node["leaf"]] = value


@kernel
def update_weights(
    n_negative: int,
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
    for number in range(2 * len(values) - 1):
        node = tree.nodes[number]
        if node["child"] >= 0:
            continue
        leaf = node["leaf"]
        if real:
            step = 0.5 * learning_rate * values[leaf]
            factors[leaf, 0], factors[leaf, 1] = np.exp(step), np.exp(-step)
        else:
            factors[leaf, 0] = np.exp(max(values[leaf], 0.0))
            factors[leaf, 1] = np.exp(max(-values[leaf], 0.0))
        new_total += factors[leaf, 0] * node["first"] + factors[leaf, 1] * node["second"]
    new_total /= FIXED_POINT_ONE
    if not (np.isfinite(new_total) and new_total > 0.0):
        return False
    for number in range(2 * len(values) - 1):
        node = tree.nodes[number]
        if node["child"] < 0:
            for place in range(node["begin"], node["end"]):
                row = tree.order[place]
                side = 1 if row >= n_negative else 0
                weight[row] *= factors[node["leaf"], side] / new_total
    return True
