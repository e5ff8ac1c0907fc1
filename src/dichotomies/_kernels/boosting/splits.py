"""The best cut of one feature, by Gini impurity or by a Newton step's gain.

Three passes over the bins: sums up to each bin, the score of the cut behind each, which vector instructions
work out for several bins at once, and the best of these. A later candidate must be better by more than
rounding, so that among equals the first feature tried and the lowest cut win.
"""

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel

#: What is within this part of the best is as good.
EQUAL = 1e-13

#: Keeps a Newton step finite where no row has a curvature, as in scikit-learn.
LEAST_HESSIAN = 1e-15

#: The most bins a feature can have.
MAX_BINS = 256


class Room(NamedTuple):
    """Room for the cuts of one feature.

    Attributes
    ----------
    first, second : (MAX_BINS,)
        The two amounts, summed up to each bin.
    score : (MAX_BINS,)
        How good the cut behind each bin is; never negative.
    """

    first: IntArray
    second: IntArray
    score: FloatArray


def room_for_cuts() -> Room:
    """Room, to be used again and again."""
    first, second = np.empty(MAX_BINS, dtype=np.int64), np.empty(MAX_BINS, dtype=np.int64)
    return Room(first, second, np.empty(MAX_BINS))


@kernel
def gini_cut(
    negative: IntArray,
    positive: IntArray,
    counts: IntArray,
    totals: IntArray,
    min_rows: int,
    best: float,
    room: Room,
) -> int:
    """The cut that leaves the least Gini impurity on its two sides.

    With weights a and b of the two classes on a side of weight w = a + b, the weighted impurity is
    ``2ab / w``. The score is the weight less the impurity of both sides.

    Parameters
    ----------
    negative, positive : (n_bins,)
        Weight of either class in each bin, positive where the bin has a row of it.
    counts : (n_bins,)
        Rows in each bin; used only where `min_rows` is more than 1.
    totals : (2,)
        Weight of either class.
    best : float
        The score to beat.
    room : Room
        Overwritten; the score of the cut can be read from it.

    Returns
    -------
    int
        The last bin left of the cut, which has rows; -1 if no cut is better than `best`.
    """
    begin, end = cuts_between_rows(negative, positive)
    if min_rows > 1:
        begin, end = cuts_leaving(counts, min_rows, 1.0)
    if begin >= end:
        return -1
    sum_up(negative, positive, end, room)
    left_negative, left_positive = room.first[begin:end], room.second[begin:end]
    score = room.score[begin:end]
    all_negative, all_positive = float(totals[0]), float(totals[1])
    for i in range(end - begin):
        a, b = float(left_negative[i]), float(left_positive[i])
        c, d = all_negative - a, all_positive - b
        left, right = a + b, c + d
        score[i] = (left + right) - 2.0 * ((a * b) * right + (c * d) * left) / (left * right)
    return first_of_best(score, begin, best)


@kernel
def newton_cut(
    gradients: IntArray,
    hessians: IntArray,
    counts: IntArray,
    totals: IntArray,
    min_rows: int,
    unit: float,
    l2_regularization: float,
    min_hessian: float,
    best: float,
    room: Room,
) -> int:
    """The cut with the largest gain of a Newton step on either side, ``g^2 / (h + l2)`` summed over both.

    Equation 7 of Chen & Guestrin, *XGBoost* (2016), without its constant factor and the term of the parent.
    Parameters as in `gini_cut`; `unit` is what one step of the integers stands for.
    """
    begin, end = cuts_leaving(hessians, min_hessian, unit)
    if min_rows > 1:
        begin_by_rows, end_by_rows = cuts_leaving(counts, min_rows, 1.0)
        begin, end = max(begin, begin_by_rows), min(end, end_by_rows)
    if begin >= end:
        return -1
    sum_up(gradients, hessians, end, room)
    gradient, hessian, score = room.first[begin:end], room.second[begin:end], room.score[begin:end]
    penalty = l2_regularization + LEAST_HESSIAN
    all_gradients, all_hessians = totals[0], totals[1]
    for i in range(end - begin):
        # integers are subtracted without rounding, which counts where one side has nearly all
        g, e = unit * gradient[i], unit * (all_gradients - gradient[i])
        h, k = unit * hessian[i] + penalty, unit * (all_hessians - hessian[i]) + penalty
        score[i] = (g * g * k + e * e * h) / (h * k)
    return first_of_best(score, begin, best)


@kernel
def cuts_between_rows(negative: IntArray, positive: IntArray) -> tuple[int, int]:
    """The range of cuts, each named by the bin before it, with rows on both sides."""
    begin, end = 0, len(negative) - 1
    while begin < end and negative[begin] + positive[begin] == 0:
        begin += 1
    while begin < end and negative[end] + positive[end] == 0:
        end -= 1
    return begin, end


@kernel
def cuts_leaving(amounts: IntArray, least: float, unit: float) -> tuple[int, int]:
    """The range of cuts with at least so much on both sides."""
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
def sum_up(first: IntArray, second: IntArray, end: int, room: Room) -> None:
    """Write the sums of both amounts up to each of the first bins."""
    first_sum, second_sum = np.int64(0), np.int64(0)
    for b in range(end):
        first_sum += first[b]
        second_sum += second[b]
        room.first[b] = first_sum
        room.second[b] = second_sum


@kernel
def first_of_best(score: FloatArray, begin: int, best: float) -> int:
    """The first cut that is as good as the best, or -1 if that is not better than what was found before."""
    # numbers that are not negative are ordered as their bits are, and integers are compared many at a time
    bits = score.view(np.int64)
    highest = np.float64(best * (1.0 + EQUAL)).view(np.int64)
    limit = highest
    for i in range(len(bits)):
        highest = max(highest, bits[i])
    if highest == limit:
        return -1
    found = np.int64(highest)
    least = found.view(np.float64) / (1.0 + EQUAL)
    i = 0
    while score[i] < least:
        i += 1
    return begin + i
