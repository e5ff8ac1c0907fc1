"""Splits by Gini impurity, for AdaBoost."""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies._kernels.boosting.local_rows import LocalRows
from dichotomies._kernels.boosting.rows import add_amounts
from dichotomies._kernels.boosting.scan import ALL_BITS, Scan, first_best, splits_with
from dichotomies._kernels.boosting.tree_memory import Growth
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
def gini_of_root(
    _: Gini, amounts: IntArray, n_rows: int, n_negative: int, order: IntArray, spare: IntArray, root: Any
) -> int:
    """Sum the weights of either class at the root; return the start of the positive rows."""
    first, second = np.int64(0), np.int64(0)
    for i in range(n_rows):
        order[i] = spare[i] = i
    for i in range(n_negative):
        first += amounts[0, i]
    for i in range(n_negative, n_rows):
        second += amounts[1, i]
    root["first"], root["second"] = first, second
    return n_negative


@kernel
def gini_is_open(criterion: Gini, growth: Growth, node: Any) -> bool:
    """Return True if a node may be split, and set the score that a split has to beat."""
    node["least"] = node["score"] = -1.0
    a, b = float(node["first"]), float(node["second"])
    is_pure = 2.0 * a * b <= criterion.pure * (a + b) * (a + b)
    return bool(not is_pure and node["n_rows"] >= 2 * growth.min_rows)


@kernel
def gini_histograms(
    _: Gini, rows: LocalRows, node: Any, order: IntArray, block: IntArray, n: int, out: IntArray
) -> None:
    """Add a node's rows to the histograms of the `n` features of a block."""
    for channel in range(len(out)):  # negative rows, positive rows, the number of all
        begin = node["middle"] if channel == 1 else node["begin"]
        end = node["middle"] if channel == 0 else node["end"]
        add_amounts(rows, rows.amounts[channel], order[begin:end], block, n, out[channel])


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
        begin, end = splits_with(histogram[2, place : place + n_bins], ALL_BITS, growth.min_rows, 0)
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
    last = first_best(room, begin, end, node["score"])
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
