"""The best split of one feature, by Gini impurity or by the gain of a Newton step.

Three passes over the bins: cumulative sums, the score of the split after each bin (vectorised), and the best
score. A later candidate must be better by more than rounding, so that ties go to the feature tried first and
to the lowest threshold.

For a Newton step, the gradient and the Hessian of a row are one integer, ``gradient * 2**32 + Hessian``:
Hessians are not negative and their sum stays below ``2**32``, so sums and differences can be taken apart.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel

#: Relative difference up to which two scores are tied.
TIE_TOLERANCE = 1e-13

#: Keeps a Newton step finite where the Hessian is 0, as in scikit-learn.
HESSIAN_EPSILON = 1e-15

#: Largest number of bins of a feature, missing values included.
MAX_BINS = 256

#: Rows that a category needs to be considered, and smoothing of its order, as in scikit-learn.
MIN_CATEGORY_ROWS = 10.0

#: Takes the Hessian out of a sum.
HESSIAN_BITS = np.int64(2**32 - 1)


class Limits(NamedTuple):
    """Conditions on both sides of a split.

    Attributes
    ----------
    min_rows : int
    unit : float
        Value of the integer 1 in fixed-point gradients and Hessians.
    l2_regularization : float
        Added to the Hessian of a side.
    min_hessian : float
    """

    min_rows: int
    unit: float
    l2_regularization: float
    min_hessian: float


class SplitWorkspace(NamedTuple):
    """Scratch memory for the splits of one feature, and the best split found.

    Attributes
    ----------
    first, second : (MAX_BINS,)
        Cumulative sums of the two amounts; of a Newton step, `first` has both.
    score : (MAX_BINS,)
        Score of the split after each bin; never negative.
    rank : (MAX_BINS,)
        Order of categories: ascending ratio of gradient to Hessian.
    best : (1,)
        Score of the best split of the feature.
    left : (2,)
        Sums of the amounts on its left side.
    bits : (4,)
        Set of the categories on its left side.
    """

    first: IntArray
    second: IntArray
    score: FloatArray
    rank: FloatArray
    best: FloatArray
    left: IntArray
    bits: npt.NDArray[np.uint64]


@kernel
def allocate_workspace() -> SplitWorkspace:
    """Allocate a workspace, which is reused for all features and trees."""
    return SplitWorkspace(
        np.empty(MAX_BINS, dtype=np.int64),
        np.empty(MAX_BINS, dtype=np.int64),
        np.empty(MAX_BINS),
        np.empty(MAX_BINS),
        np.empty(1),
        np.empty(2, dtype=np.int64),
        np.empty(4, dtype=np.uint64),
    )


@kernel
def gini_split(
    negative: IntArray,
    positive: IntArray,
    counts: IntArray,
    totals: IntArray,
    min_rows: int,
    best: float,
    workspace: SplitWorkspace,
) -> int:
    """Find the split that minimises the Gini impurity of its two sides.

    With weights a and b of the two classes on a side of weight w = a + b, the weighted impurity is
    ``2ab / w``. The score is the weight minus the impurity of both sides.

    Parameters
    ----------
    negative, positive : (n_bins,)
        Weight of either class in each bin, positive where the bin has a row of it.
    counts : (n_bins,)
        Rows in each bin; read only if `min_rows` is more than 1.
    totals : (2,)
        Weight of either class.
    best : float
        The score to beat.
    workspace : SplitWorkspace
        Overwritten; holds the score and the sums of the split afterwards.

    Returns
    -------
    int
        The last nonempty bin left of the split; -1 if no split is better than `best`.
    """
    begin, end = nonempty_splits(negative, positive)
    if min_rows > 1:
        begin, end = splits_with_rows(counts, min_rows, 0)
    if begin >= end:
        return -1
    first_sum, second_sum = np.int64(0), np.int64(0)
    for place in range(end):
        first_sum += negative[place]
        second_sum += positive[place]
        workspace.first[place] = first_sum
        workspace.second[place] = second_sum
    left_negative, left_positive = workspace.first[begin:end], workspace.second[begin:end]
    score = workspace.score[begin:end]
    all_negative, all_positive = float(totals[0]), float(totals[1])
    for i in range(end - begin):
        a, c = float(left_negative[i]), float(left_positive[i])
        b, d = all_negative - a, all_positive - c
        left, right = a + c, b + d
        score[i] = (left + right) - 2.0 * ((a * c) * right + (b * d) * left) / (left * right)
    last = first_best(score, begin, best)
    if last >= 0:
        workspace.best[0] = workspace.score[last]
        workspace.left[0], workspace.left[1] = workspace.first[last], workspace.second[last]
    return last


@kernel
def newton_split(
    packed: IntArray,
    counts: IntArray,
    has_missing: bool,
    total: Any,
    limits: Limits,
    best: float,
    workspace: SplitWorkspace,
) -> tuple[Any, bool]:
    """Find the split with the largest gain of Newton steps, ``g^2 / (h + l2)`` summed over both sides.

    Equation 7 of Chen & Guestrin, *XGBoost* (2016), without its constant factor and the term of the parent.
    Parameters as in `gini_split`. Missing values, in the last bin, are tried on the right, then on the left.

    Returns
    -------
    last : int
        The last bin left of the split; -1 if no split is better than `best`.
    missing_left : bool
    """
    nothing = total - total  # a variable, because a literal would be another type
    last = scan_bins(packed, counts, nothing, nothing, total, limits, best, workspace)
    missing_left = False
    if has_missing:
        n = len(packed) - 1
        best = max(best, workspace.best[0]) if last >= 0 else best
        count = counts[n] if limits.min_rows > 1 else nothing
        other = scan_bins(packed[:n], counts[:n], packed[n], count, total, limits, best, workspace)
        while other >= 0 and other < n - 2 and packed[other + 1] == 0:
            other += 1  # of tied splits, scikit-learn takes the last where missing values go left
        if other >= 0:
            last, missing_left = other, True
    return last, missing_left


@kernel
def scan_bins(
    packed: IntArray,
    counts: IntArray,
    carried: Any,
    carried_rows: Any,
    total: Any,
    limits: Limits,
    best: float,
    workspace: SplitWorkspace,
) -> int:
    """Find the best split between neighbouring bins, with some amount on the left already."""
    begin, end = splits_with_hessian(packed, carried, limits)
    if limits.min_rows > 1:
        begin_by_rows, end_by_rows = splits_with_rows(counts, limits.min_rows, carried_rows)
        begin, end = max(begin, begin_by_rows), min(end, end_by_rows)
    if begin >= end:
        return -1
    cumulated = carried
    for b in range(end):
        cumulated += packed[b]
        workspace.first[b] = cumulated
    left, score = workspace.first[begin:end], workspace.score[begin:end]
    unit, penalty = limits.unit, limits.l2_regularization + HESSIAN_EPSILON
    for i in range(end - begin):
        # subtracting integers avoids rounding errors if one side has nearly all of the weight
        right = total - left[i]
        g, e = unit * np.float64(left[i] >> 32), unit * np.float64(right >> 32)
        h = unit * np.float64(left[i] & HESSIAN_BITS) + penalty
        k = unit * np.float64(right & HESSIAN_BITS) + penalty
        score[i] = (g * g * k + e * e * h) / (h * k)
    last = first_best(score, begin, best)
    if last >= 0:
        workspace.best[0] = workspace.score[last]
        workspace.left[0] = workspace.first[last]
    return last


@kernel
def category_split(
    packed: IntArray,
    counts: IntArray,
    n_rows: int,
    total: Any,
    limits: Limits,
    best: float,
    workspace: SplitWorkspace,
) -> bool:
    """Find the best set of categories for the left side: some that come first, or last, by their gradient.

    Fisher, *On grouping for maximum homogeneity*, JASA 53 (1958). As in scikit-learn, categories with fewer
    rows than `MIN_CATEGORY_ROWS`, estimated from their Hessian, stay on the right. Parameters as in
    `newton_split`; missing values are a category.

    Returns
    -------
    bool
        True if a split is better than `best`; `workspace` then has its score, sums and categories.
    """
    unit, penalty = limits.unit, limits.l2_regularization + HESSIAN_EPSILON
    all_hessians = np.float64(total & HESSIAN_BITS)
    n_used = 0
    for b in range(len(packed)):
        hessian = np.float64(packed[b] & HESSIAN_BITS)
        if hessian * n_rows >= MIN_CATEGORY_ROWS * all_hessians and hessian > 0.0:
            value = unit * np.float64(packed[b] >> 32) / (unit * hessian + MIN_CATEGORY_ROWS)
            at = n_used  # insertion into the sorted ones
            while at > 0 and workspace.rank[at - 1] > value:
                workspace.rank[at], workspace.second[at] = workspace.rank[at - 1], workspace.second[at - 1]
                at -= 1
            workspace.rank[at], workspace.second[at] = value, b
            n_used += 1
    if n_used <= 1:
        return False
    best, n_best, from_end = best * (1.0 + TIE_TOLERANCE), 0, False
    for backwards in range(2):
        left, rows_left = total - total, total - total
        for i in range((n_used + 1) // 2 - backwards):
            b = workspace.second[n_used - 1 - i if backwards else i]
            left += packed[b]
            rows_left += counts[b] if limits.min_rows > 1 else 0
            right = total - left
            h, k = unit * np.float64(left & HESSIAN_BITS), unit * np.float64(right & HESSIAN_BITS)
            if min(h, k) < limits.min_hessian or (
                limits.min_rows > 1 and min(rows_left, n_rows - rows_left) < limits.min_rows
            ):
                continue
            g, e = unit * np.float64(left >> 32), unit * np.float64(right >> 32)
            score = g * g / (h + penalty) + e * e / (k + penalty)
            if score > best:
                best, n_best, from_end = score, i + 1, backwards == 1
                workspace.left[0] = left
    workspace.best[0] = best
    workspace.bits[:] = 0
    for i in range(n_best):
        b = workspace.second[n_used - 1 - i if from_end else i]
        workspace.bits[b >> 6] |= np.uint64(1) << np.uint64(b & 63)
    return n_best > 0


@kernel
def nonempty_splits(negative: IntArray, positive: IntArray) -> tuple[int, int]:
    """Range of splits with rows on both sides; a split is identified by the bin before it."""
    begin, end = 0, len(negative) - 1
    while begin < end and negative[begin] + positive[begin] == 0:
        begin += 1
    while begin < end and negative[end] + positive[end] == 0:
        end -= 1
    return begin, end


@kernel
def splits_with_rows(counts: IntArray, least: int, carried: Any) -> tuple[int, int]:
    """Range of splits with at least `least` rows on both sides; `carried` are on the left already."""
    begin, end = 0, len(counts) - 1
    left, right = counts[begin] + carried, counts[end]
    while begin < end and left < least:
        begin += 1
        left += counts[begin]
    while begin < end and right < least:
        end -= 1
        right += counts[end]
    return begin, end


@kernel
def splits_with_hessian(packed: IntArray, carried: Any, limits: Limits) -> tuple[int, int]:
    """Range of splits with the minimum Hessian on both sides."""
    least = limits.min_hessian / limits.unit
    begin, end = 0, len(packed) - 1
    left, right = (packed[begin] + carried) & HESSIAN_BITS, packed[end] & HESSIAN_BITS
    while begin < end and left < least:
        begin += 1
        left += packed[begin] & HESSIAN_BITS
    while begin < end and right < least:
        end -= 1
        right += packed[end] & HESSIAN_BITS
    return begin, end


@kernel
def first_best(score: FloatArray, begin: int, best: float) -> int:
    """Return the first split that is tied with the best, or -1 if that does not beat `best`."""
    # nonnegative floats are ordered as their bits, and integer maxima are vectorised
    bits = score.view(np.int64)
    highest = np.float64(best * (1.0 + TIE_TOLERANCE)).view(np.int64)
    limit = highest
    for i in range(len(bits)):
        highest = max(highest, bits[i])
    if highest == limit:
        return -1
    found = np.int64(highest)
    least = found.view(np.float64) / (1.0 + TIE_TOLERANCE)
    i = 0
    while score[i] < least:
        i += 1
    return begin + i
