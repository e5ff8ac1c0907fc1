"""The best cut of one feature, by Gini impurity or by a Newton step's gain.

Candidates are compared as fractions, without dividing. A later candidate must be better by more than
rounding, so that among equals the feature looked at first and the lowest cut win.
"""

from dichotomies._kernels.compile import kernel
from dichotomies._typing import IntArray

#: What is within this part of the best is as good.
EQUAL = 1e-13

#: Keeps a Newton step finite where no row has a curvature, as in scikit-learn.
LEAST_HESSIAN = 1e-15


@kernel
def gini_cut(
    negative: IntArray,
    positive: IntArray,
    counts: IntArray,
    total_negative: int,
    total_positive: int,
    n_rows: int,
    min_rows: int,
    best: tuple[float, float, int, int],
) -> tuple[float, float, int, int]:
    """The cut that leaves the least Gini impurity on its two sides.

    With weights a and b of the two classes on a side of weight w = a + b, the weighted impurity is
    ``w - (a^2 + b^2) / w``, so the sum of ``(a^2 + b^2) / w`` over both sides is to be as large as possible.

    Parameters
    ----------
    negative, positive : (n_bins,)
        Weight of either class in each bin, positive where the bin has a row of it.
    counts : (n_bins,)
        Rows in each bin; looked at only where `min_rows` is more than 1.
    total_negative, total_positive, n_rows : int
        Sums over the bins.
    best : tuple
        Numerator and denominator of the best sum so far, the last bin left of the cut (-1: none) and the
        first right of it; what is not empty lies nowhere between.

    Returns
    -------
    tuple
        The same, after these candidates; `best` itself if none is better.
    """
    best_top, best_bottom, best_last, best_next = best
    left_negative = left_positive = left_rows = 0
    last = -1
    for b in range(len(negative)):
        if negative[b] + positive[b] == 0:
            continue
        if last >= 0 and (min_rows == 1 or (left_rows >= min_rows and n_rows - left_rows >= min_rows)):
            a, c = float(left_negative), float(left_positive)
            d, e = float(total_negative - left_negative), float(total_positive - left_positive)
            top = (a * a + c * c) * (d + e) + (d * d + e * e) * (a + c)
            bottom = (a + c) * (d + e)
            if top * best_bottom > best_top * bottom * (1.0 + EQUAL):
                best_top, best_bottom, best_last, best_next = top, bottom, last, b
        left_negative += negative[b]
        left_positive += positive[b]
        if min_rows > 1:
            left_rows += counts[b]
        last = b
    return best_top, best_bottom, best_last, best_next


@kernel
def newton_cut(
    gradients: IntArray,
    hessians: IntArray,
    counts: IntArray,
    total_gradient: int,
    total_hessian: int,
    n_rows: int,
    min_rows: int,
    unit: float,
    l2_regularization: float,
    min_hessian: float,
    best: tuple[float, float, int, int],
) -> tuple[float, float, int, int]:
    """The cut with the largest gain of a Newton step on either side, ``g^2 / (h + l2)`` summed over both.

    Equation 7 of Chen & Guestrin, *XGBoost* (2016), without its constant factor and the term of the parent.
    Parameters as in `gini_cut`; `unit` is what one step of the integers stands for.
    """
    best_top, best_bottom, best_last, best_next = best
    left_gradient = left_hessian = left_rows = 0
    penalty = l2_regularization + LEAST_HESSIAN
    for b in range(len(gradients) - 1):
        left_gradient += gradients[b]
        left_hessian += hessians[b]
        h, k = unit * left_hessian, unit * (total_hessian - left_hessian)
        if min_rows > 1:
            left_rows += counts[b]
            if left_rows < min_rows or n_rows - left_rows < min_rows:
                continue
        if h < min_hessian or k < min_hessian:
            continue
        g, e = unit * left_gradient, unit * (total_gradient - left_gradient)
        top = g * g * (k + penalty) + e * e * (h + penalty)
        bottom = (h + penalty) * (k + penalty)
        if top * best_bottom > best_top * bottom * (1.0 + EQUAL):
            best_top, best_bottom, best_last, best_next = top, bottom, b, b + 1
    return best_top, best_bottom, best_last, best_next
