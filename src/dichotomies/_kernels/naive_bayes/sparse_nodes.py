"""Naive Bayes at the nodes of a tree, where each node has seen few of the features.

The weight of a feature at a node follows from its counts on the two sides. All features that a node has not
seen have the same weight there, the background; what is computed here is how far the weights of the others
are from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import take_logs

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

MULTINOMIAL = 0  # also ComplementNB: the complement of one side is the other side
NORMALISED = 1  # ComplementNB(norm=True)
BERNOULLI = 2

ROUNDING = 1e-9  # a count may exceed the rows it was counted in by this part of them


@kernel
def above_background(
    rule: int, left: float, right: float, alpha: float, of_left: float, of_right: float
) -> float:
    """Difference of a feature's weight from that of a feature that neither side has seen.

    Parameters
    ----------
    left, right : float
        The feature's counts.
    of_left, of_right : float
        What the rule must know of the sides: for Bernoulli their numbers of rows, for the normalised
        complement the sum of all logarithms of each; see `tally`.
    """
    if rule == MULTINOMIAL:
        return float(np.log((left + alpha) / (right + alpha)))
    if rule == NORMALISED:
        return float(np.log1p(right / alpha) / of_right - np.log1p(left / alpha) / of_left)
    absent_left, absent_right = absent(left, of_left), absent(right, of_right)
    seen = (left + alpha) / (right + alpha)
    unseen = (absent_right + alpha) / (absent_left + alpha)
    return float(np.log(seen * unseen * ((of_left + alpha) / (of_right + alpha))))


@kernel
def absent(count: float, rows: float) -> float:
    """Rows without the feature; sums of weights in another order may differ by a rounding error."""
    rest = rows - count
    return 0.0 if -ROUNDING * rows < rest < 0.0 else rest


@kernel
def tally(rule: int, count: float, alpha: float, of_side: float) -> float:
    """Amount that an active feature adds to a side's sum over all features, beyond an inactive one.

    Of ``log P(feature)`` for the normalised complement, of ``log P(no feature)`` for Bernoulli.
    """
    if rule == NORMALISED:
        return float(np.log1p(count / alpha))
    return float(np.log((absent(count, of_side) + alpha) / (of_side + alpha)))


@kernel
def make_weights(
    rule: int,
    alpha: FloatArray,
    left: FloatArray,
    right: FloatArray,
    n_features: int,
    of_side: FloatArray,
    out: FloatArray,
) -> tuple[float, float]:
    """Write how far the weights of a node's active features are from the background, given their counts.

    Returns
    -------
    float, float
        What else to add to the intercept and to the background.
    """
    if rule == MULTINOMIAL:
        for s in range(len(out)):
            out[s] = (left[s] + alpha[s]) / (right[s] + alpha[s])
        take_logs(out)
        return 0.0, 0.0
    of_left, of_right = of_side[0], of_side[1]
    tally_left = tally_right = intercept = background = 0.0
    for s in range(len(out)):
        tally_left += tally(rule, left[s], alpha[s], of_left)
        tally_right += tally(rule, right[s], alpha[s], of_right)
    if rule == BERNOULLI:
        intercept = tally_left - tally_right
    else:
        unseen_left, unseen_right = of_left / n_features, of_right / n_features
        of_left, of_right = of_left + tally_left, of_right + tally_right
        background = unseen_right / of_right - unseen_left / of_left
    for s in range(len(out)):
        out[s] = above_background(rule, left[s], right[s], alpha[s], of_left, of_right)
    return intercept, background


@kernel
def by_feature(
    begin: IntArray,
    sizes: IntArray,
    feature: IntArray,
    value: FloatArray,
    offsets: IntArray,
    node: IntArray,
    node_value: FloatArray,
) -> None:
    """Sort the active features of nodes by feature, and by node within a feature.

    Parameters
    ----------
    begin, sizes : (n_nodes,)
        Where those of each node begin, and how many there are.
    feature, value : (n_entries,)
        A feature, and how far its weight is from the background.
    offsets, node, node_value : (n_features + 1,), (n_entries,), (n_entries,)
        Written: where the entries of each feature begin, and the end; the entries.
    """
    cursor = np.zeros(len(offsets), np.intp)
    for entry in range(len(feature)):
        cursor[np.uintp(feature[entry])] += 1
    offsets[0] = 0
    for j in range(len(offsets) - 1):
        offsets[j + 1] = offsets[j] + cursor[j]
        cursor[j] = offsets[j]
    for k in range(len(begin)):
        for entry in range(begin[k], begin[k] + sizes[k]):
            place = np.uintp(cursor[np.uintp(feature[entry])])
            node[place], node_value[place] = k, value[entry]
            cursor[np.uintp(feature[entry])] += 1
