"""Weights of naive Bayes at nodes where few of the features are active.

The weight of a feature at a node follows from its counts on the two sides. All inactive features of a node
have the same weight, the background; active features are stored as their weight minus the background.
"""

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import take_logs

MULTINOMIAL = 0  # also ComplementNB: the complement of one side is the other side
NORMALISED = 1  # ComplementNB(norm=True)
BERNOULLI = 2

ROUNDING = 1e-9  # relative rounding error by which a count may exceed its number of rows


@kernel
def above_background(
    rule: int, left: float, right: float, alpha: float, of_left: float, of_right: float
) -> float:
    """Compute a feature's weight minus the background.

    Parameters
    ----------
    left, right : float
        The feature's counts.
    of_left, of_right : float
        Totals of the sides that the rule needs: for Bernoulli their numbers of rows, for the normalised
        complement the sum of all log-probabilities; see `log_increment`.
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
    """Weight of the rows without the feature; a negative rounding error is raised to 0."""
    rest = rows - count
    return 0.0 if -ROUNDING * rows < rest < 0.0 else rest


@kernel
def log_increment(rule: int, count: float, alpha: float, of_side: float) -> float:
    """Compute by how much an active feature raises a side's sum over features, relative to an inactive one.

    The sum is of ``log P(feature)`` for the normalised complement, of ``log P(no feature)`` for Bernoulli.
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
    """Write the weights of a node's active features minus the background, given their counts.

    Returns
    -------
    float, float
        Corrections to be added to the intercept and to the background.
    """
    if rule == MULTINOMIAL:
        for s in range(len(out)):
            out[s] = (left[s] + alpha[s]) / (right[s] + alpha[s])
        take_logs(out)
        return 0.0, 0.0
    of_left, of_right = of_side[0], of_side[1]
    increment_left = increment_right = intercept = background = 0.0
    for s in range(len(out)):
        increment_left += log_increment(rule, left[s], alpha[s], of_left)
        increment_right += log_increment(rule, right[s], alpha[s], of_right)
    if rule == BERNOULLI:
        intercept = increment_left - increment_right
    else:
        unseen_left, unseen_right = of_left / n_features, of_right / n_features
        of_left, of_right = of_left + increment_left, of_right + increment_right
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
        Start and number of each node's entries.
    feature, value : (n_entries,)
        A feature, and its weight minus the background.
    offsets, node, node_value : (n_features + 1,), (n_entries,), (n_entries,)
        Written: the start of each feature's entries, and the end; the entries.
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
