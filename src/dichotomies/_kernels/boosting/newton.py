"""Splits by the gain of a Newton step, for gradient boosting.

The gradient and the Hessian of a row are one integer, ``gradient * 2**32 + Hessian``: Hessians are not
negative and their sum stays below ``2**32``, so sums and differences can be taken apart.
"""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies._kernels.boosting.local_rows import LocalRows
from dichotomies._kernels.boosting.rows import add_amounts
from dichotomies._kernels.boosting.scan import ALL_BITS, TIE_TOLERANCE, Scan, first_best, splits_with
from dichotomies._kernels.boosting.tree_memory import Growth
from dichotomies._kernels.compile import kernel

#: Keeps a Newton step finite where the Hessian is 0, as in scikit-learn.
HESSIAN_EPSILON = 1e-15

#: Rows that a category needs to be considered, and smoothing of its order, as in scikit-learn.
MIN_CATEGORY_ROWS = 10.0

#: Takes the Hessian out of a sum.
HESSIAN_BITS = np.int64(2**32 - 1)


class Newton(NamedTuple):
    """Splits with the largest gain of Newton steps, ``g^2 / (h + l2)`` summed over both sides.

    Equation 7 of Chen & Guestrin, *XGBoost* (2016), without its constant factor and the term of the parent.

    Attributes
    ----------
    l2_regularization : float
        Added to the Hessian of a side.
    min_hessian : float
        Minimum Hessian of a side.
    """

    l2_regularization: float
    min_hessian: float


class CategoricalNewton(NamedTuple):
    """The same where some features are categorical."""

    l2_regularization: float
    min_hessian: float


@kernel
def newton_of_root(
    _: Any, amounts: IntArray, n_rows: int, n_negative: int, order: IntArray, spare: IntArray, root: Any
) -> int:
    """Sum gradients and Hessians of the rows drawn, which come first; return the start of the others."""
    total, n_drawn, n_others = np.int64(0), 0, 0 * n_negative
    for i in range(n_rows):
        is_drawn = amounts[2, i]
        order[n_drawn] = spare[n_others] = i
        total += is_drawn * amounts[0, i]
        n_drawn += is_drawn
        n_others += 1 - is_drawn
    for i in range(n_others):
        order[n_drawn + i] = spare[i]
    root["first"], root["second"] = total, 0
    return n_drawn


@kernel
def newton_is_open(criterion: Any, growth: Growth, node: Any) -> bool:
    """Return True if a node may be split, and set the score that a split has to beat."""
    gradient = growth.unit * np.float64(node["first"] >> 32)
    hessian = growth.unit * np.float64(node["first"] & HESSIAN_BITS)
    penalty = criterion.l2_regularization + HESSIAN_EPSILON
    # the value of the root is 0 for any gradient
    node["least"] = node["score"] = gradient * gradient / (hessian + penalty) if node["depth"] > 0 else 0.0
    return bool(node["n_rows"] >= 2 * growth.min_rows)


@kernel
def newton_histograms(
    _: Any, rows: LocalRows, node: Any, order: IntArray, block: IntArray, n: int, out: IntArray
) -> None:
    """Add those of a node's rows that are drawn to the histograms of the `n` features of a block."""
    for channel in range(len(out)):
        drawn = order[node["begin"] : node["middle"]]
        add_amounts(rows, rows.amounts[2 * channel], drawn, block, n, out[channel])


@kernel
def newton_split(
    criterion: Any,
    growth: Growth,
    at: Any,
    node: Any,
    feature: int,
    place: int,
    histogram: IntArray,
    room: Scan,
) -> None:
    """Find the best split of a node by one number; record it if it is better than the best so far.

    Missing values, in the last bin, are tried on the right, then on the left.

    Parameters
    ----------
    at : FEATURE
    node : NODE
    histogram : (n_channels, n_bins)
        The bins of the feature begin at `place`; the counts of rows are last.
    """
    end = place + at["end"] - at["begin"]
    carried = carried_rows = 0 * histogram[0, place]
    for missing_left in range(2 if at["has_missing"] else 1):
        packed, counts = histogram[0, place:end], histogram[len(histogram) - 1, place:end]
        last = scan_bins(criterion, growth, packed, counts, carried, carried_rows, node, room)
        while missing_left and last >= 0 and last < len(packed) - 2 and packed[last + 1] == 0:
            last += 1  # of tied splits, scikit-learn takes the last where missing values go left
        if last >= 0:
            record(node, feature, last, missing_left == 1)
        end -= 1
        carried, carried_rows = histogram[0, end], histogram[len(histogram) - 1, end]


@kernel
def categorical_newton_split(
    criterion: CategoricalNewton,
    growth: Growth,
    at: Any,
    node: Any,
    feature: int,
    place: int,
    histogram: IntArray,
    room: Scan,
) -> None:
    """Find the best split of a node by one number or category; parameters as in `newton_split`."""
    if not at["is_categorical"]:
        newton_split(criterion, growth, at, node, feature, place, histogram, room)
        return
    end = place + at["end"] - at["begin"]
    packed, counts = histogram[0, place:end], histogram[len(histogram) - 1, place:end]
    if split_categories(criterion, growth, packed, counts, node, room):
        record(node, feature, 0, False)


@kernel(inline=True)
def record(node: Any, feature: int, last: int, missing_left: bool) -> None:
    """Record the split of a node by this feature, after this bin."""
    node["feature"], node["last_bin"], node["next_bin"] = feature, last, last + 1
    node["missing_left"] = missing_left


@kernel
def scan_bins(
    criterion: Any,
    growth: Growth,
    packed: IntArray,
    counts: IntArray,
    carried: Any,
    carried_rows: Any,
    node: Any,
    room: Scan,
) -> int:
    """Find the best split between neighbouring bins, with some amount on the left already.

    Returns
    -------
    int
        The last bin left of the split; -1 if none is better than the node's, which it replaces otherwise.
    """
    begin, end = splits_with(packed, HESSIAN_BITS, growth.min_hessian, carried)
    if growth.min_rows > 1:
        begin_by_rows, end_by_rows = splits_with(counts, ALL_BITS, growth.min_rows, carried_rows)
        begin, end = max(begin, begin_by_rows), min(end, end_by_rows)
    if begin >= end:
        return -1
    cumulated = np.int64(carried)
    for b in range(end):
        cumulated += packed[b]
        room.sums[0, b] = cumulated
    left, score = room.sums[0, begin:end], room.scores[0, begin:end]
    total, unit = node["first"], growth.unit
    penalty = criterion.l2_regularization + HESSIAN_EPSILON
    for i in range(end - begin):
        # subtracting integers avoids rounding errors if one side has nearly all of the weight
        right = total - left[i]
        g, e = unit * np.float64(left[i] >> 32), unit * np.float64(right >> 32)
        h = unit * np.float64(left[i] & HESSIAN_BITS) + penalty
        k = unit * np.float64(right & HESSIAN_BITS) + penalty
        score[i] = (g * g * k + e * e * h) / (h * k)
    last = first_best(room, begin, end, node["score"])
    if last >= 0:
        node["score"], node["first_left"] = room.scores[0, last], room.sums[0, last]
    return last


@kernel
def split_categories(
    criterion: CategoricalNewton, growth: Growth, packed: IntArray, counts: IntArray, node: Any, room: Scan
) -> bool:
    """Find the best set of categories for the left side: some that come first, or last, by their gradient.

    Fisher, *On grouping for maximum homogeneity*, JASA 53 (1958). Missing values are a category.

    Returns
    -------
    bool
        True if a split is better than the node's, which it then replaces.
    """
    n_used = sort_categories(growth, packed, node, room)
    total, unit = node["first"], growth.unit
    penalty, n_rows = criterion.l2_regularization + HESSIAN_EPSILON, node["n_rows"]
    best, n_best, from_end = node["score"] * (1.0 + TIE_TOLERANCE), 0, False
    for backwards in range(2):
        left, rows_left = total - total, total - total
        for i in range((n_used + 1) // 2 - backwards if n_used > 1 else 0):
            b = room.sums[1, n_used - 1 - i if backwards else i]
            left += packed[b]
            rows_left += counts[b] if growth.min_rows > 1 else 0
            right = total - left
            h, k = unit * np.float64(left & HESSIAN_BITS), unit * np.float64(right & HESSIAN_BITS)
            if min(h, k) < criterion.min_hessian or (
                growth.min_rows > 1 and min(rows_left, n_rows - rows_left) < growth.min_rows
            ):
                continue
            g, e = unit * np.float64(left >> 32), unit * np.float64(right >> 32)
            score = g * g / (h + penalty) + e * e / (k + penalty)
            if score > best:
                best, n_best, from_end = score, i + 1, backwards == 1
                node["score"], node["first_left"] = score, left
    if n_best > 0:
        bits = node["bits"]
        bits[0] = bits[1] = bits[2] = bits[3] = np.uint64(0)
        for i in range(n_best):
            b = room.sums[1, n_used - 1 - i if from_end else i]
            bits[b >> 6] |= np.uint64(1) << np.uint64(b & 63)
    return n_best > 0


@kernel
def sort_categories(growth: Growth, packed: IntArray, node: Any, room: Scan) -> int:
    """Sort categories by the ratio of gradient to Hessian; return their number.

    As in scikit-learn, categories with fewer rows than `MIN_CATEGORY_ROWS`, estimated from their Hessian, are
    left out: they stay on the right.
    """
    value_of, category = room.scores[1], room.sums[1]
    all_hessians, n_rows = np.float64(node["first"] & HESSIAN_BITS), node["n_rows"]
    n_used = 0
    for b in range(len(packed)):
        hessian = np.float64(packed[b] & HESSIAN_BITS)
        if hessian * n_rows >= MIN_CATEGORY_ROWS * all_hessians and hessian > 0.0:
            gradient = growth.unit * np.float64(packed[b] >> 32)
            value = gradient / (growth.unit * hessian + MIN_CATEGORY_ROWS)
            at = n_used  # insertion into the sorted ones
            while at > 0 and value_of[at - 1] > value:
                value_of[at], category[at] = value_of[at - 1], category[at - 1]
                at -= 1
            value_of[at], category[at] = value, b
            n_used += 1
    return n_used
