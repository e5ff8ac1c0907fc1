"""Splits by Gini impurity, for AdaBoost."""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies._kernels.boosting.local_rows import LocalRows
from dichotomies._kernels.boosting.rows import add_amounts
from dichotomies._kernels.boosting.scan import Scan, first_best, splits_with_rows
from dichotomies._kernels.boosting.tree_memory import Growth, Tree
from dichotomies._kernels.compile import kernel


class Gini(NamedTuple):
    """Splits that minimise the Gini impurity of their two sides.

    With weights a and b of the two classes on a side of weight w = a + b, the weighted impurity is
    ``2ab / w``. The score of a split is the weight minus the impurity of both sides.

    Attributes
    ----------
    pure : float
        Impurity, relative to the weight, up to which a node counts as pure.
    """

    pure: float


@kernel
def gini_of_root(_: Gini, rows: LocalRows, tree: Tree) -> int:
    """Sum the weights of either class at the root; return the start of the positive rows."""
    first, second = np.int64(0), np.int64(0)
    for i in range(rows.n_rows):
        tree.order[i] = i
    for i in range(rows.n_negative):
        first += rows.amounts[0, i]
    for i in range(rows.n_negative, rows.n_rows):
        second += rows.amounts[1, i]
    root = tree.nodes[0]
    root["first"], root["second"] = first, second
    return rows.n_negative


@kernel
def gini_is_open(criterion: Gini, growth: Growth, tree: Tree, number: int) -> bool:
    """Return True if a node may be split, and set the score that a split has to beat."""
    node = tree.nodes[number]
    node["least"] = node["score"] = -1.0
    a, b = float(node["first"]), float(node["second"])
    is_pure = 2.0 * a * b <= criterion.pure * (a + b) * (a + b)
    return bool(not is_pure and node["end"] - node["begin"] >= 2 * growth.min_rows)


@kernel
def gini_histograms(
    _: Gini, growth: Growth, rows: LocalRows, tree: Tree, number: int, n: int, out: IntArray
) -> None:
    """Add a node's rows to the histograms of the `n` features of a block."""
    node = tree.nodes[number]
    begin, middle, end = node["begin"], node["middle"], node["end"]
    add_amounts(rows, rows.amounts[0], tree.order[begin:middle], tree.block, n, out[0])
    add_amounts(rows, rows.amounts[1], tree.order[middle:end], tree.block, n, out[1])
    if growth.min_rows > 1:
        add_amounts(rows, rows.amounts[2], tree.order[begin:end], tree.block, n, out[2])


@kernel
def gini_split(
    _: Gini, growth: Growth, at: Any, node: Any, feature: int, place: int, histogram: IntArray, room: Scan
) -> None:
    """Find the best split of a node by one feature; record it if it is better than the best so far.

    Parameters
    ----------
    at : FEATURE
    node : NODE
    histogram : (n_channels, n_bins)
        The bins of the feature begin at `place`.
    """
    n_bins = at["end"] - at["begin"]
    negative, positive = histogram[0, place : place + n_bins], histogram[1, place : place + n_bins]
    begin, end = nonempty_splits(negative, positive)
    if growth.min_rows > 1:
        begin, end = splits_with_rows(histogram[2, place : place + n_bins], growth.min_rows, 0)
    if begin >= end:
        return
    first, second = np.int64(0), np.int64(0)
    for b in range(end):
        first += negative[b]
        second += positive[b]
        room.sums[0, b], room.sums[1, b] = first, second
    left_negative, left_positive = room.sums[0, begin:end], room.sums[1, begin:end]
    score = room.scores[0, begin:end]
    all_negative, all_positive = float(node["first"]), float(node["second"])
    for i in range(end - begin):
        a, c = float(left_negative[i]), float(left_positive[i])
        e, d = all_negative - a, all_positive - c
        left, right = a + c, e + d
        score[i] = (left + right) - 2.0 * ((a * c) * right + (e * d) * left) / (left * right)
    last = first_best(score, begin, node["score"])
    if last < 0:
        return
    following = last + 1
    while negative[following] + positive[following] == 0:
        following += 1
    node["feature"], node["last_bin"], node["next_bin"] = feature, last, following
    node["missing_left"] = False
    node["score"] = room.scores[0, last]
    node["first_left"], node["second_left"] = room.sums[0, last], room.sums[1, last]


@kernel(inline=True)
def nonempty_splits(negative: IntArray, positive: IntArray) -> tuple[int, int]:
    """Range of splits with rows on both sides; a split is identified by the bin before it."""
    begin, end = 0, len(negative) - 1
    while begin < end and negative[begin] + positive[begin] == 0:
        begin += 1
    while begin < end and negative[end] + positive[end] == 0:
        end -= 1
    return begin, end
