"""The best split of one feature, by Gini impurity or by the gain of a Newton step.

Three passes over the bins: cumulative sums, the score of the split after each bin (vectorised), and the best
score. A later candidate must be better by more than rounding, so that ties go to the feature tried first and
to the lowest threshold.
"""

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel

#: Relative difference up to which two scores are tied.
TIE_TOLERANCE = 1e-13

#: Keeps a Newton step finite where the Hessian is 0, as in scikit-learn.
HESSIAN_EPSILON = 1e-15

#: Largest number of bins of a feature.
MAX_BINS = 256


class SplitWorkspace(NamedTuple):
    """Scratch memory for the splits of one feature.

    Attributes
    ----------
    first, second : (MAX_BINS,)
        Cumulative sums of the two amounts.
    score : (MAX_BINS,)
        Score of the split after each bin; never negative.
    """

    first: IntArray
    second: IntArray
    score: FloatArray


@kernel
def allocate_workspace() -> SplitWorkspace:
    """Allocate a workspace, which is reused for all features and trees."""
    first, second = np.empty(MAX_BINS, dtype=np.int64), np.empty(MAX_BINS, dtype=np.int64)
    return SplitWorkspace(first, second, np.empty(MAX_BINS))


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
        Overwritten; holds the score of the split afterwards.

    Returns
    -------
    int
        The last nonempty bin left of the split; -1 if no split is better than `best`.
    """
    begin, end = nonempty_splits(negative, positive)
    if min_rows > 1:
        begin, end = splits_with_at_least(counts, min_rows, 1.0)
    if begin >= end:
        return -1
    cumulate(negative, positive, end, workspace)
    left_negative, left_positive = workspace.first[begin:end], workspace.second[begin:end]
    score = workspace.score[begin:end]
    all_negative, all_positive = float(totals[0]), float(totals[1])
    for i in range(end - begin):
        a, b = float(left_negative[i]), float(left_positive[i])
        c, d = all_negative - a, all_positive - b
        left, right = a + b, c + d
        score[i] = (left + right) - 2.0 * ((a * b) * right + (c * d) * left) / (left * right)
    return first_best(score, begin, best)


@kernel
def newton_split(
    gradients: IntArray,
    hessians: IntArray,
    counts: IntArray,
    totals: IntArray,
    min_rows: int,
    unit: float,
    l2_regularization: float,
    min_hessian: float,
    best: float,
    workspace: SplitWorkspace,
) -> int:
    """Find the split with the largest gain of Newton steps, ``g^2 / (h + l2)`` summed over both sides.

    Equation 7 of Chen & Guestrin, *XGBoost* (2016), without its constant factor and the term of the parent.
    Parameters as in `gini_split`; `unit` is the value of the integer 1 in fixed point.
    """
    begin, end = splits_with_at_least(hessians, min_hessian, unit)
    if min_rows > 1:
        begin_by_rows, end_by_rows = splits_with_at_least(counts, min_rows, 1.0)
        begin, end = max(begin, begin_by_rows), min(end, end_by_rows)
    if begin >= end:
        return -1
    cumulate(gradients, hessians, end, workspace)
    gradient, hessian, score = (
        workspace.first[begin:end],
        workspace.second[begin:end],
        workspace.score[begin:end],
    )
    penalty = l2_regularization + HESSIAN_EPSILON
    all_gradients, all_hessians = totals[0], totals[1]
    for i in range(end - begin):
        # subtracting integers avoids rounding errors if one side has nearly all of the weight
        g, e = unit * gradient[i], unit * (all_gradients - gradient[i])
        h, k = unit * hessian[i] + penalty, unit * (all_hessians - hessian[i]) + penalty
        score[i] = (g * g * k + e * e * h) / (h * k)
    return first_best(score, begin, best)


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
def splits_with_at_least(amounts: IntArray, least: float, unit: float) -> tuple[int, int]:
    """Range of splits with at least `least` on both sides."""
    begin, end = 0, len(amounts) - 1
    left, right = amounts[begin], amounts[end]
    while begin < end and unit * left < least:
        begin += 1
        left += amounts[begin]
    while begin < end and unit * right < least:
        end -= 1
        right += amounts[end]
    return begin, end


@kernel
def cumulate(first: IntArray, second: IntArray, end: int, workspace: SplitWorkspace) -> None:
    """Write the cumulative sums of both amounts over the first bins."""
    first_sum, second_sum = np.int64(0), np.int64(0)
    for b in range(end):
        first_sum += first[b]
        second_sum += second[b]
        workspace.first[b] = first_sum
        workspace.second[b] = second_sum


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
