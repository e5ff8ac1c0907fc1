"""Per-row and per-class summaries of class probabilities, from which metrics are computed."""

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel, vector_kernel


@kernel
def reduce_rows(
    scores: FloatArray,
    proba: FloatArray,
    codes: IntArray,
    predicted: IntArray,
    rank: IntArray,
    brier: FloatArray,
    smallest: FloatArray,
    total: FloatArray,
    complement: FloatArray,
    largest: FloatArray,
) -> None:
    """Reduce each row of class probabilities in one pass.

    Parameters
    ----------
    scores : (n_rows, n_classes)
        Ranking scores of the classes: the probabilities, or their logarithms if those underflow.
    proba : (n_rows, n_classes)
        The probabilities.
    codes : (n_rows,)
        The true class.
    predicted, rank : (n_rows,)
        The class of largest score, and the number of classes ranked before the true one; ties go to the
        smaller code.
    brier : (n_rows,)
        Sum over the classes of the squared difference between probability and truth.
    smallest, total : (n_rows,)
        The smallest probability and the sum of all.
    complement : (n_rows,)
        One minus the probability of `predicted`, computed as the sum of the others: accurate near 0.
    largest : (n_rows, k)
        The k largest probabilities, in decreasing order, padded with zeros.
    """
    for i in range(len(codes)):
        brier[i], smallest[i], total[i] = _moments(proba[i], codes[i])
        predicted[i], rank[i] = _order(scores[i], codes[i])
        complement[i] = _sum_of(proba[i, : predicted[i]]) + _sum_of(proba[i, predicted[i] + 1 :])
        _keep_largest(proba[i], largest[i])


@vector_kernel
def _moments(proba: FloatArray, truth: int) -> tuple[float, float, float]:
    """Brier score, smallest value and sum of one row."""
    squares, smallest, total = 0.0, proba[0], 0.0
    for p in proba:
        total += p
        squares += p * p
        smallest = min(smallest, p)
    own = proba[truth]
    # the true class is subtracted here, where cancellation is harmless to small differences
    others = max(squares - own * own, 0.0)
    return others + (1.0 - own) * (1.0 - own), smallest, total


@vector_kernel
def _sum_of(values: FloatArray) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


@vector_kernel
def _order(scores: FloatArray, truth: int) -> tuple[int, int]:
    """First class of largest score, and number of classes ranked before the true one."""
    own, largest, before = scores[truth], scores[0], 0
    for score in scores:
        largest = max(largest, score)
        before += score > own
    for c in range(truth):
        before += scores[c] == own
    best = 0
    while best < len(scores) - 1 and scores[best] < largest:
        best += 1
    return best, before


@kernel
def _keep_largest(proba: FloatArray, largest: FloatArray) -> None:
    """Write the largest values of one row, in decreasing order."""
    k = len(largest)
    largest[:] = 0.0
    for p in proba:
        if p > largest[k - 1]:
            place = k - 1
            while place > 0 and p > largest[place - 1]:
                largest[place] = largest[place - 1]
                place -= 1
            largest[place] = p


@kernel
def add_to_bins(
    proba: FloatArray,
    codes: IntArray,
    row_weight: FloatArray,
    batch: IntArray,
    inner_edges: FloatArray,
    weight: FloatArray,
    score: FloatArray,
    outcome: FloatArray,
) -> None:
    """Add rows to the equal-width bins of every class.

    Parameters
    ----------
    proba : (n_rows, n_classes)
    codes, row_weight, batch : (n_rows,)
        True class and weight of each row, and the batch of bins that it is added to.
    inner_edges : (n_bins - 1,)
        Edges between the bins; a probability on an edge belongs to the bin below.
    weight, score, outcome : (n_batches, n_bins, n_classes)
        Sums of weights, of weighted probabilities, and of weights of the class's own rows. The class axis is
        last, because nearly all probabilities fall into the first bin.
    """
    for i in range(len(codes)):
        w, g = row_weight[i], batch[i]
        if len(inner_edges) == 0:
            _add_to_first_bin(proba[i], w, np.inf, weight[g, 0], score[g, 0])
        else:
            _add_to_first_bin(proba[i], w, inner_edges[0], weight[g, 0], score[g, 0])
            _add_to_other_bins(proba[i], w, inner_edges, weight[g], score[g])
        outcome[g, np.searchsorted(inner_edges, proba[i, codes[i]]), codes[i]] += w


@vector_kernel
def _add_to_first_bin(
    proba: FloatArray, row_weight: float, edge: float, weight: FloatArray, score: FloatArray
) -> None:
    """Add probabilities at or below the first edge, without branching."""
    for c in range(len(proba)):
        w = row_weight if proba[c] <= edge else 0.0
        weight[c] += w
        score[c] += w * proba[c]


@kernel
def _add_to_other_bins(
    proba: FloatArray, row_weight: float, inner_edges: FloatArray, weight: FloatArray, score: FloatArray
) -> None:
    """Add probabilities above the first edge, which are few because a row sums to 1."""
    for c in range(len(proba)):
        if proba[c] > inner_edges[0]:
            b = np.searchsorted(inner_edges, proba[c])
            weight[b, c] += row_weight
            score[b, c] += row_weight * proba[c]
