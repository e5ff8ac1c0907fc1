"""Boosting small trees at some nodes of a class tree: AdaBoost and gradient boosting."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.encoding import MISSING, Codes
from dichotomies._kernels.boosting.growing import Tree, allocate_tree, grow_tree, mix_bits
from dichotomies._kernels.boosting.node_rows import (
    HASH_FACTOR,
    Bins,
    NodeRows,
    Ranges,
    Sample,
    allocate_rows,
    take_rows,
    write_row_keys,
)
from dichotomies._kernels.boosting.splits import HESSIAN_EPSILON, Growth
from dichotomies._kernels.compile import kernel

#: Kinds of splits, which may be added.
MISSING_LEFT, CATEGORICAL = 1, 2

#: The integer that a total weight of 1 becomes in fixed point, a quarter of the range of int64; and where
#: gradients and Hessians share an integer.
FIXED_POINT_ONE, PACKED_ONE = 2.0**61, 2.0**31 - 1.0

#: Largest weights of a node's rows that are used as they are; others are scaled by a power of two.
LEAST_WEIGHT, MOST_WEIGHT = 2.0**-100, 2.0**100

#: Lower limit of row weights and of leaf probabilities in AdaBoost, as in scikit-learn.
EPSILON = float(np.finfo(np.float64).eps)


class GradientBoosting(NamedTuple):
    """Parameters of gradient boosting at some nodes.

    Attributes
    ----------
    n_estimators, max_depth, max_leaves, min_rows : (n_nodes,)
        `min_rows` is the minimum number of rows in a leaf.
    tree_features : (n_nodes,)
        Share of the features that a tree may use.
    learning_rate, l2_regularization : float
    min_hessian : float
        Minimum Hessian of a leaf.
    subsample, split_features : float
        Shares of rows for a tree, and of its features for a split.
    seed : int
    """

    n_estimators: IntArray
    max_depth: IntArray
    max_leaves: IntArray
    min_rows: IntArray
    tree_features: FloatArray
    learning_rate: float
    l2_regularization: float
    min_hessian: float
    subsample: float
    split_features: float
    seed: int


class AdaBoosting(NamedTuple):
    """Parameters of AdaBoost at some nodes.

    Attributes
    ----------
    n_estimators, max_depth, max_leaves, min_rows : (n_nodes,)
        `min_rows` is the minimum number of rows in a leaf.
    learning_rate : float
    real : bool
        Real instead of discrete AdaBoost.
    """

    n_estimators: IntArray
    max_depth: IntArray
    max_leaves: IntArray
    min_rows: IntArray
    learning_rate: float
    real: bool


class Memory(NamedTuple):
    """Memory for the rows of a node, for a tree, and for values of rows that change while it is boosted.

    Attributes
    ----------
    rows : NodeRows
    tree : Tree
    weight, score : (n_rows,)
    gradients : (2, n_rows)
        Gradients and Hessians in fixed point.
    keys : (n_rows,)
        Hash values of the rows' bins.
    factors : (max_leaves, 2)
        By which AdaBoost multiplies the weights of a leaf's rows of either class.
    """

    rows: NodeRows
    tree: Tree
    weight: FloatArray
    score: FloatArray
    gradients: IntArray
    keys: npt.NDArray[np.uint64]
    factors: FloatArray


def allocate_memory(bins: Bins, ranges: Ranges, boosting: AdaBoosting | GradientBoosting) -> Memory:
    """Allocate memory for the largest of some nodes."""
    n_rows = int((ranges.end - ranges.begin).max(initial=1))
    max_leaves, max_depth = (int(each.max(initial=1)) for each in (boosting.max_leaves, boosting.max_depth))
    n_channels = 2 if isinstance(boosting, AdaBoosting) else 1
    n_channels += 1 if boosting.min_rows.max(initial=1) > 1 else 0
    n_bins = int(np.minimum(np.diff(bins.starts) + 1, n_rows).sum())  # with those of missing values
    n_features = len(bins.is_categorical)
    return Memory(
        rows=allocate_rows(bins, n_rows),
        tree=allocate_tree(n_rows, min(max_leaves, n_rows), max_depth, n_channels, n_features, n_bins),
        weight=np.empty(n_rows),
        score=np.empty(n_rows),
        gradients=np.empty((2, n_rows), dtype=np.int64),
        keys=np.empty(n_rows, dtype=np.uint64),
        factors=np.empty((max_leaves, 2)),
    )


class Ensembles(NamedTuple):
    """The trees of some nodes, one after another: log-odds are ``base + scale * (sum of leaf values)``.

    A tree is a sequence of splits. All rows begin at leaf 0; split s divides the rows at one leaf, and those
    that go right move to the new leaf s + 1.

    Attributes
    ----------
    n_trees, is_trained, base, scale : (n_nodes,)
    n_splits : (n_trees,)
    leaf, feature, limit, kind : (n_splits,)
        The leaf that a split divides; its feature; rows with a higher code go right; `MISSING_LEFT` or
        `CATEGORICAL`.
    bits : (n_splits, 4) or (0, 4)
        Categories that go left.
    value : (n_splits + n_trees,)
        The values of each tree's leaves.
    written : (2,)
        Trees and splits so far.
    """

    n_trees: IntArray
    is_trained: BoolArray
    base: FloatArray
    scale: FloatArray
    n_splits: IntArray
    leaf: Codes
    feature: npt.NDArray[np.int32]
    limit: Codes
    kind: Codes
    bits: npt.NDArray[np.uint64]
    value: FloatArray
    written: IntArray


def allocate_ensembles(bins: Bins, ranges: Ranges, boosting: AdaBoosting | GradientBoosting) -> Ensembles:
    """Allocate arrays for the maximum number of trees and splits."""
    n_nodes, most_trees = len(ranges.begin), boosting.n_estimators
    most_splits = np.minimum(boosting.max_leaves, np.maximum(ranges.end - ranges.begin, 1)) - 1
    n_trees, n_splits = int(most_trees.sum()), int((most_trees * most_splits).sum())
    return Ensembles(
        n_trees=np.zeros(n_nodes, dtype=np.intp),
        is_trained=np.zeros(n_nodes, dtype=np.bool_),
        base=np.zeros(n_nodes),
        scale=np.ones(n_nodes),
        n_splits=np.empty(n_trees, dtype=np.intp),
        leaf=np.empty(n_splits, dtype=np.uint8),
        feature=np.empty(n_splits, dtype=np.int32),
        limit=np.empty(n_splits, dtype=np.uint8),
        kind=np.empty(n_splits, dtype=np.uint8),
        bits=np.empty((n_splits if bins.is_categorical.any() else 0, 4), dtype=np.uint64),
        value=np.empty(n_splits + n_trees),
        written=np.zeros(2, dtype=np.intp),
    )


@kernel
def begin_node(
    bins: Bins, sample: Sample, ranges: Ranges, k: int, merges: bool, memory: Memory, out: Ensembles
) -> Any:
    """Take the rows that a node is trained on, and their weights.

    If only one class has rows, there is nothing to train: the log-odds are those with a row of weight 1 added
    to either class. If the weights are extreme, all are scaled by a power of two, so that no sum overflows.

    Returns
    -------
    rows : NodeRows
    largest : float
        The largest weight.
    """
    rows, total = take_rows(bins, sample, ranges, k, merges, memory.rows)
    out.is_trained[k] = 0 < rows.n_negative < rows.n_rows
    out.scale[k] = 1.0 if ranges.left_is_positive[k] else -1.0
    if not out.is_trained[k]:
        out.base[k] = out.scale[k] * (-np.log(total + 1.0) if rows.n_negative > 0 else np.log(total + 1.0))
        return rows, 0.0
    factor = 1.0
    while rows.largest * factor < LEAST_WEIGHT:
        factor *= 2.0**50
    while rows.largest * factor > MOST_WEIGHT:
        factor *= 2.0**-50
    for i in range(rows.n_rows):
        memory.weight[i] = sample.weight[rows.taken[i]] * factor
        rows.drawn[i] = 1
    return rows, rows.largest * factor


@kernel
def write_splits(bins: Bins, rows: NodeRows, tree: Tree, n_splits: int, out: Ensembles) -> Any:
    """Write the splits of a tree after those of others; return where its leaves' values are to be written."""
    t, s = out.written[0], out.written[1]
    out.n_splits[t] = n_splits
    for i in range(n_splits):
        node = tree.nodes[tree.splits[i]]
        at, left, right = (
            rows.features[node["feature"]],
            tree.nodes[node["child"]],
            tree.nodes[node["child"] + 1],
        )
        left_is_larger = left["end"] - left["begin"] > right["end"] - right["begin"]
        # missing values that training has not seen go with the majority, as in scikit-learn
        missing_left = node["missing_left"] if at["has_missing"] else left_is_larger
        out.leaf[s + i], out.feature[s + i] = node["leaf"], at["number"]
        out.kind[s + i] = MISSING_LEFT if missing_left else 0
        if at["is_categorical"]:
            out.kind[s + i], out.limit[s + i] = CATEGORICAL, 0
            write_categories(rows, at, node, left_is_larger, out.bits[s + i])
        else:
            out.limit[s + i] = limit_between(bins, rows, at, node)
    out.written[0], out.written[1] = t + 1, s + n_splits
    return out.value[s + t : s + t + n_splits + 1]


@kernel(inline=True)
def write_categories(rows: NodeRows, at: Any, node: Any, left_is_larger: bool, out: Any) -> None:
    """Write the set of categories that go left."""
    bits = node["bits"]
    out[:] = np.uint64(0)
    if left_is_larger and not at["has_missing"]:
        out[MISSING >> 6] = np.uint64(1) << np.uint64(MISSING & 63)
    for b in range(at["end"] - at["begin"]):
        if (bits[b >> 6] >> np.uint64(b & 63)) & np.uint64(1) == np.uint64(1):
            code = rows.bin_codes[at["begin"] + b]
            out[code >> 6] |= np.uint64(1) << np.uint64(code & 63)


@kernel(inline=True)
def limit_between(bins: Bins, rows: NodeRows, at: Any, node: Any) -> Any:
    """Return the highest code that goes left: bins without rows go to the nearer side."""
    left, right, start = (
        at["begin"] + node["last_bin"],
        at["begin"] + node["next_bin"],
        bins.starts[at["number"]],
    )
    last = rows.bin_codes[left]
    first = rows.bin_codes[right] if right < at["end"] else MISSING
    if first != MISSING:
        middle = bins.highest[start + last] / 2.0 + bins.lowest[start + first] / 2.0
        while last + 1 < first and bins.highest[start + last + 1] <= middle:
            last += 1
    return last


@kernel
def boost_gradient_nodes(
    boosting: GradientBoosting, bins: Bins, sample: Sample, ranges: Ranges, memory: Memory, out: Ensembles
) -> None:
    """Boost the logistic loss at some nodes: every tree is a Newton step."""
    for k in range(len(ranges.begin)):
        rows, largest = begin_node(bins, sample, ranges, k, False, memory, out)
        if out.is_trained[k]:
            before = out.written[0]
            add_newton_trees(boosting, bins, k, rows, largest, memory, out)
            out.n_trees[k] = out.written[0] - before


@kernel(inline=True)
def add_newton_trees(
    boosting: GradientBoosting,
    bins: Bins,
    k: int,
    rows: NodeRows,
    largest: float,
    memory: Memory,
    out: Ensembles,
) -> None:
    """Write the trees of node `k`."""
    n_rows = rows.n_rows
    exact, packing = FIXED_POINT_ONE / (n_rows * largest), PACKED_ONE / (n_rows * largest)
    out.base[k] = out.scale[k] * prior_log_odds(rows, memory, exact)
    unit, penalty = 1.0 / packing, boosting.l2_regularization + HESSIAN_EPSILON
    least: Any = np.ceil(boosting.min_hessian / unit)
    growth = Growth(
        False,
        boosting.max_depth[k],
        boosting.max_leaves[k],
        boosting.min_rows[k],
        boosting.min_hessian,
        int(least if least < 2.0**62 else 2.0**62),
        penalty,
        unit,
        boosting.tree_features[k],
        boosting.split_features,
        boosting.seed,
    )
    draws = boosting.subsample < 1.0 or growth.tree_features < 1.0
    if boosting.subsample < 1.0:
        write_row_keys(rows, memory.keys)
        for i in range(n_rows):
            memory.keys[i] = mix_bits(memory.keys[i])
    for number in range(boosting.n_estimators[k]):
        hessian = newton_amounts(rows, memory, exact, packing)
        if boosting.subsample < 1.0:
            draw_rows(rows, memory.keys, boosting.subsample, boosting.seed, number)
        n = grow_tree(rows, growth, number, memory.tree)
        if n > 0:
            values = write_splits(bins, rows, memory.tree, n, out)
            step_leaves(memory, penalty, 1.0 / exact, boosting.learning_rate, values)
        elif not draws or hessian / exact < 2.0 * boosting.min_hessian:
            break  # no later tree would find a split either


@kernel(inline=True)
def prior_log_odds(rows: NodeRows, memory: Memory, scale: float) -> Any:
    """Log-odds of the positive rows' weight, independently of their order: the first score of every row."""
    negative, positive = np.int64(0), np.int64(0)
    for i in range(rows.n_negative):
        negative += np.int64(memory.weight[i] * scale + 0.5)
    for i in range(rows.n_negative, rows.n_rows):
        positive += np.int64(memory.weight[i] * scale + 0.5)
    prior = np.log(max(np.float64(positive), 1.0) / max(np.float64(negative), 1.0))
    memory.score[: rows.n_rows] = prior
    return prior


@kernel(inline=True)
def newton_amounts(rows: NodeRows, memory: Memory, exact: float, packing: float) -> Any:
    """Write the gradient and Hessian of each row, apart and in one integer; return the sum of the Hessians.

    They are rounded to single precision, as in scikit-learn.
    """
    weight, score, gradients, hessians = memory.weight, memory.score, memory.gradients[0], memory.gradients[1]
    amounts, total = rows.amounts, np.int64(0)
    for i in range(rows.n_rows):
        tail = np.exp(-abs(score[i]))
        likelier = 1.0 / (1.0 + tail)
        p = likelier if score[i] >= 0.0 else tail * likelier
        q = tail * likelier if score[i] >= 0.0 else likelier
        gradient = np.float32(weight[i] * (-q if i >= rows.n_negative else p))
        hessian = np.float32(weight[i] * p * q)
        gradients[i] = np.int64(np.rint(gradient * exact))
        hessians[i] = np.int64(np.rint(hessian * exact))
        total += hessians[i]
        packed = np.int64(np.rint(gradient * packing)) << 32
        amounts[i] = packed + np.int64(np.rint(hessian * packing))
    return total


@kernel(inline=True)
def draw_rows(rows: NodeRows, keys: Any, share: float, seed: int, number: int) -> None:
    """Draw a share of the rows for a tree.

    Rows are drawn by their bins, so that their order does not matter, and a row twice is one of weight 2.
    """
    limit = np.uint64(share * 2.0**53)
    key = mix_bits(mix_bits(np.uint64(seed)) + np.uint64(number))
    for i in range(rows.n_rows):
        rows.drawn[i] = ((key ^ keys[i]) * HASH_FACTOR) >> np.uint64(11) < limit


@kernel(inline=True)
def step_leaves(memory: Memory, penalty: float, unit: float, rate: float, values: FloatArray) -> None:
    """Write the Newton step of every leaf, and add it to the scores of its rows."""
    gradients, hessians, score = memory.gradients[0], memory.gradients[1], memory.score
    for number in range(2 * len(values) - 1):
        node = memory.tree.nodes[number]
        if node["child"] >= 0:
            continue
        gradient, hessian = np.int64(0), np.int64(0)
        rows = memory.tree.order[node["begin"] : node["end"]]
        for i in range(len(rows)):
            gradient += gradients[rows[i]]
            hessian += hessians[rows[i]]
        step = rate * (-unit * gradient / (unit * hessian + penalty))
        values[node["leaf"]] = step
        for i in range(len(rows)):
            score[rows[i]] += step


@kernel
def boost_ada_nodes(
    boosting: AdaBoosting, bins: Bins, sample: Sample, ranges: Ranges, memory: Memory, out: Ensembles
) -> None:
    """Run AdaBoost at some nodes.

    SAMME and SAMME.R of Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost* (2009), for two classes: every tree
    is grown on weights that emphasise the errors of those before it.
    """
    for k in range(len(ranges.begin)):
        rows, largest = begin_node(bins, sample, ranges, k, boosting.min_rows[k] == 1, memory, out)
        if out.is_trained[k]:
            before = out.written[0]
            normalise(memory.weight, rows.n_rows, largest)
            add_ada_trees(boosting, bins, k, rows, memory, out)
            out.n_trees[k] = out.written[0] - before


@kernel(inline=True)
def add_ada_trees(
    boosting: AdaBoosting, bins: Bins, k: int, rows: NodeRows, memory: Memory, out: Ensembles
) -> None:
    """Write the trees of node `k`."""
    weight, rate, real, tree = memory.weight, boosting.learning_rate, boosting.real, memory.tree
    max_depth, max_leaves, min_rows = boosting.max_depth[k], boosting.max_leaves[k], boosting.min_rows[k]
    growth = Growth(True, max_depth, max_leaves, min_rows, 0.0, 0, 0.0, 1.0, 1.0, 1.0, 0)
    votes = 0.0
    for number in range(boosting.n_estimators[k]):
        for i in range(rows.n_rows):
            weight[i] = max(weight[i], EPSILON)
            rows.amounts[i] = np.int64(weight[i] * FIXED_POINT_ONE + 0.5)
        n = grow_tree(rows, growth, number, tree)
        error = error_rate(tree, n)
        if error >= 0.5 and not real:
            break
        vote = 1.0 if real or error <= 0.0 else rate * np.log((1.0 - error) / error)
        values = write_splits(bins, rows, tree, n, out)
        ada_values(tree, vote, real, values)
        votes += vote
        if error <= 0.0 or not update_weights(rows.n_negative, memory, values, real, rate):
            break
    out.scale[k] *= (1.0 if real else 2.0) / max(votes, EPSILON)


@kernel(inline=True)
def normalise(weight: FloatArray, n_rows: int, most: float) -> None:
    """Scale the weights to sum to 1, independently of their order."""
    scale = FIXED_POINT_ONE / (n_rows * most)
    total = np.int64(0)
    for i in range(n_rows):
        total += np.int64(weight[i] * scale + 0.5)
    for i in range(n_rows):
        weight[i] = weight[i] * scale / total


@kernel(inline=True)
def error_rate(tree: Tree, n_splits: int) -> float:
    """Share of the weight that is misclassified."""
    wrong = np.int64(0)
    for number in range(2 * n_splits + 1):
        node = tree.nodes[number]
        if node["child"] < 0:
            wrong += min(node["first"], node["second"])
    return float(wrong) / float(tree.nodes[0]["first"] + tree.nodes[0]["second"])


@kernel(inline=True)
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


@kernel(inline=True)
def update_weights(
    n_negative: int, memory: Memory, values: FloatArray, real: bool, learning_rate: float
) -> bool:
    """Apply the AdaBoost weight update leaf by leaf, and normalise.

    The new sum is taken over leaves rather than rows, so that the order of rows does not matter.

    Returns
    -------
    bool
        False if the weights overflow.
    """
    tree, factors, weight, new_total = memory.tree, memory.factors, memory.weight, 0.0
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
