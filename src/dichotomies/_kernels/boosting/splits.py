"""The best split of a tree node by one feature: by Gini impurity (AdaBoost) or by the gain of Newton steps.

Gini impurity: with weights a and b of the two classes on a side of weight w = a + b, the weighted impurity is
``2ab / w``; the score of a split is the weight minus the impurity of both sides.

Newton steps: the score is ``g^2 / (h + l2)`` summed over both sides, equation 7 of Chen & Guestrin, *XGBoost*
(2016), without its constant factor and the term of the parent. The gradient and the Hessian of a row are one
integer, ``gradient * 2**32 + Hessian``: Hessians are not negative and their sum stays below ``2**32``, so
sums and differences can be taken apart.

Three passes over the bins: cumulative sums, the score of the split after each bin (vectorised), and the best
score. A later candidate must be better by more than rounding, so that ties go to the feature tried first and
to the lowest threshold.
"""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel

#: Keeps a Newton step finite where the Hessian is 0, as in scikit-learn.
HESSIAN_EPSILON = 1e-15

#: Rows that a category needs to be considered, and smoothing of its order, as in scikit-learn.
MIN_CATEGORY_ROWS = 10.0

#: Takes the Hessian out of a sum; whole amounts.
HESSIAN_BITS, ALL_BITS = np.int64(2**32 - 1), np.int64(-1)

#: Relative difference up to which two scores are tied.
TIE_TOLERANCE = 1e-13

#: Impurity, relative to the weight, up to which a node counts as pure, as in scikit-learn.
PURE = float(np.finfo(np.float64).eps)


class Growth(NamedTuple):
    """Parameters of growing a tree.

    Attributes
    ----------
    is_gini : bool
        Splits by Gini impurity, otherwise by Newton steps.
    max_depth, max_leaves : int
    min_rows : int
        Minimum number of rows in a leaf.
    min_hessian : float
        Minimum Hessian of a leaf.
    least_hessian : int
        The same in fixed point.
    penalty : float
        Added to the Hessian of a side.
    unit : float
        Value of the integer 1 in amounts, which are in fixed point.
    tree_features, split_features : float
        Share of the features that a tree may use, and of these, that are tried at a split.
    seed : int
        Of drawing the features of a tree.
    """

    is_gini: bool
    max_depth: int
    max_leaves: int
    min_rows: int
    min_hessian: float
    least_hessian: int
    penalty: float
    unit: float
    tree_features: float
    split_features: float
    seed: int


class Scan(NamedTuple):
    """Scratch for the splits of one feature.

    Attributes
    ----------
    sums : (2, n_bins)
        Cumulative sums of amounts; order of categories.
    scores : (2, n_bins + 1)
        Score of the split after each bin, never negative; ratios that order categories.
    bits : (2, n_bins + 1)
        The same memory as integers: numbers that are not negative are ordered as their bits, and maxima of
        integers are vectorised.
    """

    sums: IntArray
    scores: FloatArray
    bits: IntArray


@kernel
def may_split(growth: Growth, node: Any) -> bool:
    """Return True if a node may be split, and set the score that a split has to beat."""
    n_rows = node["end"] - node["begin"]
    if growth.is_gini:
        node["least"] = node["score"] = -1.0
        a, b = float(node["first"]), float(node["second"])
        is_pure = 2.0 * a * b <= PURE * (a + b) * (a + b)
        return bool(not is_pure and n_rows >= 2 * growth.min_rows)
    gradient = growth.unit * np.float64(node["first"] >> 32)
    hessian = growth.unit * np.float64(node["first"] & HESSIAN_BITS)
    # the value of the root is 0 for any gradient
    node["least"] = node["score"] = (
        gradient * gradient / (hessian + growth.penalty) if node["depth"] > 0 else 0.0
    )
    return bool(n_rows >= 2 * growth.min_rows)


@kernel
def try_feature(growth: Growth, at: Any, node: Any, feature: int, histogram: IntArray, scan: Scan) -> None:
    """Find the best split of a node by one feature; record it if it is better than the best so far.

    Parameters
    ----------
    at : FEATURE
    node : NODE
    histogram : (n_channels, n_bins)
        Amounts; for Gini impurity those of negative rows, then of positive rows; numbers of rows, if needed.
    """
    if growth.is_gini:
        try_gini(growth, at, node, feature, histogram, scan)
        return
    counts, begin, end = histogram[len(histogram) - 1], at["begin"], at["end"]
    if at["is_categorical"]:
        if split_categories(growth, histogram[0, begin:end], counts[begin:end], node, scan):
            record(node, feature, 0, 1, False)
        return
    carried = carried_rows = 0 * counts[begin]
    for missing_left in range(2 if at["has_missing"] else 1):  # missing values are in the last bin
        packed = histogram[0, begin:end]
        last = scan_bins(growth, packed, counts[begin:end], carried, carried_rows, node, scan)
        while missing_left and last >= 0 and last < len(packed) - 2 and packed[last + 1] == 0:
            last += 1  # of tied splits, scikit-learn takes the last where missing values go left
        if last >= 0:
            record(node, feature, last, last + 1, missing_left == 1)
        end -= 1
        carried, carried_rows = histogram[0, end], counts[end]


@kernel
def record(node: Any, feature: int, last: int, following: int, missing_left: bool) -> None:
    """Record the split of a node by this feature, between these bins."""
    node["feature"], node["last_bin"], node["next_bin"] = feature, last, following
    node["missing_left"] = missing_left


@kernel
def splits_with(amounts: IntArray, mask: Any, least: Any, carried: Any) -> tuple[int, int]:
    """Range of splits with at least `least` on both sides, of which `carried` is on the left already.

    Only the bits of the amounts that the mask has are counted. A split is identified by the bin before it.
    """
    begin, end = 0, len(amounts) - 1
    left, right = (amounts[begin] + carried) & mask, amounts[end] & mask
    while begin < end and left < least:
        begin += 1
        left += amounts[begin] & mask
    while begin < end and right < least:
        end -= 1
        right += amounts[end] & mask
    return begin, end


@kernel
def first_best(scan: Scan, begin: int, end: int, best: float) -> int:
    """Return the first split that is tied with the best, or -1 if that does not beat `best`."""
    bits, scores, last = scan.bits[0, begin:end], scan.scores[0], scan.scores.shape[1] - 1
    scores[last] = best * (1.0 + TIE_TOLERANCE)
    limit = highest = scan.bits[0, last]
    for i in range(len(bits)):
        highest = bits[i] if bits[i] > highest else highest
    if highest == limit:
        return -1
    scan.bits[0, last] = highest
    least = scores[last] / (1.0 + TIE_TOLERANCE)
    while scores[begin] < least:
        begin += 1
    return begin


@kernel(inline=True)
def try_gini(growth: Growth, at: Any, node: Any, feature: int, histogram: IntArray, scan: Scan) -> None:
    """The same by Gini impurity."""
    negative, positive = histogram[0, at["begin"] : at["end"]], histogram[1, at["begin"] : at["end"]]
    begin, end = 0, len(negative) - 1
    while begin < end and negative[begin] + positive[begin] == 0:
        begin += 1
    while begin < end and negative[end] + positive[end] == 0:
        end -= 1
    if growth.min_rows > 1:
        begin, end = splits_with(histogram[2, at["begin"] : at["end"]], ALL_BITS, growth.min_rows, 0)
    if begin >= end:
        return
    first, second = np.int64(0), np.int64(0)
    for b in range(end):
        first += negative[b]
        second += positive[b]
        scan.sums[0, b], scan.sums[1, b] = first, second
    left_negative, left_positive = scan.sums[0, begin:end], scan.sums[1, begin:end]
    score = scan.scores[0, begin:end]
    all_negative, all_positive = float(node["first"]), float(node["second"])
    for i in range(end - begin):
        a, c = float(left_negative[i]), float(left_positive[i])
        e, d = all_negative - a, all_positive - c
        left, right = a + c, e + d
        score[i] = (left + right) - 2.0 * ((a * c) * right + (e * d) * left) / (left * right)
    last = first_best(scan, begin, end, node["score"])
    if last < 0:
        return
    following = last + 1
    while negative[following] + positive[following] == 0:
        following += 1
    record(node, feature, last, following, False)
    node["score"] = scan.scores[0, last]
    node["first_left"], node["second_left"] = scan.sums[0, last], scan.sums[1, last]


@kernel
def scan_bins(
    growth: Growth,
    packed: IntArray,
    counts: IntArray,
    carried: Any,
    carried_rows: Any,
    node: Any,
    scan: Scan,
) -> int:
    """Find the best Newton split between neighbouring bins, with some amount on the left already.

    Returns
    -------
    int
        The last bin left of the split; -1 if none is better than the node's, which it replaces otherwise.
    """
    begin, end = splits_with(packed, HESSIAN_BITS, growth.least_hessian, carried)
    if growth.min_rows > 1:
        begin_by_rows, end_by_rows = splits_with(counts, ALL_BITS, growth.min_rows, carried_rows)
        begin, end = max(begin, begin_by_rows), min(end, end_by_rows)
    if begin >= end:
        return -1
    cumulated = np.int64(carried)
    for b in range(end):
        cumulated += packed[b]
        scan.sums[0, b] = cumulated
    left, score = scan.sums[0, begin:end], scan.scores[0, begin:end]
    total, unit, penalty = node["first"], growth.unit, growth.penalty
    for i in range(end - begin):
        # subtracting integers avoids rounding errors if one side has nearly all of the weight
        right = total - left[i]
        g, e = unit * np.float64(left[i] >> 32), unit * np.float64(right >> 32)
        h = unit * np.float64(left[i] & HESSIAN_BITS) + penalty
        k = unit * np.float64(right & HESSIAN_BITS) + penalty
        score[i] = (g * g * k + e * e * h) / (h * k)
    last = first_best(scan, begin, end, node["score"])
    if last >= 0:
        node["score"], node["first_left"] = scan.scores[0, last], scan.sums[0, last]
    return last


@kernel(inline=True)
def split_categories(growth: Growth, packed: IntArray, counts: IntArray, node: Any, scan: Scan) -> bool:
    """Find the best set of categories for the left side: some that come first, or last, by their gradient.

    Fisher, *On grouping for maximum homogeneity*, JASA 53 (1958). Missing values are a category.

    Returns
    -------
    bool
        True if a split is better than the node's, which it then replaces.
    """
    n_used = sort_categories(growth, packed, node, scan)
    total, unit, n_rows = node["first"], growth.unit, node["end"] - node["begin"]
    best, n_best, from_end = node["score"] * (1.0 + TIE_TOLERANCE), 0, False
    for backwards in range(2):
        left, rows_left = total - total, total - total
        for i in range((n_used + 1) // 2 - backwards if n_used > 1 else 0):
            b = scan.sums[1, n_used - 1 - i if backwards else i]
            left += packed[b]
            rows_left += counts[b] if growth.min_rows > 1 else 0
            right = total - left
            h, k = unit * np.float64(left & HESSIAN_BITS), unit * np.float64(right & HESSIAN_BITS)
            if min(h, k) < growth.min_hessian or (
                growth.min_rows > 1 and min(rows_left, n_rows - rows_left) < growth.min_rows
            ):
                continue
            g, e = unit * np.float64(left >> 32), unit * np.float64(right >> 32)
            score = g * g / (h + growth.penalty) + e * e / (k + growth.penalty)
            if score > best:
                best, n_best, from_end = score, i + 1, backwards == 1
                node["score"], node["first_left"] = score, left
    if n_best > 0:
        bits = node["bits"]
        bits[0] = bits[1] = bits[2] = bits[3] = np.uint64(0)
        for i in range(n_best):
            b = scan.sums[1, n_used - 1 - i if from_end else i]
            bits[b >> 6] |= np.uint64(1) << np.uint64(b & 63)
    return n_best > 0


@kernel(inline=True)
def sort_categories(growth: Growth, packed: IntArray, node: Any, scan: Scan) -> int:
    """Sort categories by the ratio of gradient to Hessian; return their number.

    As in scikit-learn, categories with fewer rows than `MIN_CATEGORY_ROWS`, estimated from their Hessian, are
    left out: they stay on the right.
    """
    value_of, category = scan.scores[1], scan.sums[1]
    all_hessians, n_rows = np.float64(node["first"] & HESSIAN_BITS), node["end"] - node["begin"]
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
