"""Bayesian binning into quantiles: an average over numbers of bins, for all segments."""

import math

import numpy as np
from scipy.special import gammaln

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.isotonic import pool_ties

PRIOR_ROWS = 2.0  # N' in the paper, shared by the bins
NEGLIGIBLE = 1e-17  # weight of a binning, relative to the best one


@kernel
def numbers_of_bins(total: float, n_distinct: int) -> tuple[int, int]:
    """Least and largest number of bins: from ``n^(1/3) / 10`` to ``10 n^(1/3)``, with 5 rows in each."""
    root = total ** (1.0 / 3.0)
    most = int(min(np.ceil(10.0 * root), np.ceil(total / 5.0), float(n_distinct)))
    return max(int(min(np.floor(root / 10.0), float(most))), 1), max(most, 1)


@kernel
def boundaries(distinct: FloatArray) -> FloatArray:
    """Midpoints between neighbouring scores, always above the lower one; the least number before the first."""
    middle = np.empty(len(distinct))
    middle[0] = -np.finfo(np.float64).max
    for i in range(1, len(distinct)):
        between = 0.5 * distinct[i - 1] + 0.5 * distinct[i]
        middle[i] = between if between > distinct[i - 1] else distinct[i]
    return middle


@kernel
def prior_edges(middle: FloatArray) -> FloatArray:
    """Boundaries (n + 1,) as probabilities: 0 before the first score, 1 after the last."""
    edges = np.ones(len(middle) + 1)
    edges[:-1] = 1.0 / (1.0 + np.exp(-middle))
    edges[0] = 0.0
    return edges


@kernel
def equal_bins(rank: FloatArray, n_bins: int) -> IntArray:
    """First index of each bin that is not empty, and the end, of scores by their `rank` between 0 and 1."""
    return np.append(np.unique(np.searchsorted(rank, np.arange(n_bins) / n_bins)), len(rank))


@kernel
def prior_counts(bins: IntArray, edges: FloatArray, total: float) -> FloatArray:
    """Prior rows (2, n_bins) of either side, positive first.

    Their share is the middle of the bin, kept from 0 and 1 by one row in n + 2.
    """
    n_bins = len(bins) - 1
    least = 1.0 / (total + 2.0)
    counts = np.empty((2, n_bins))
    for j in range(n_bins):
        p = min(max(0.5 * (edges[bins[j]] + edges[bins[j + 1]]), least), 1.0 - least)
        counts[0, j], counts[1, j] = PRIOR_ROWS / n_bins * p, PRIOR_ROWS / n_bins * (1.0 - p)
    return counts


@kernel
def log_evidence(positive: FloatArray, negative: FloatArray, prior: FloatArray) -> float:
    """Log marginal likelihood of a binning with these rows in its bins (equation 2 of the paper)."""
    total = 0.0
    for j in range(len(positive)):
        a, b = prior[0, j], prior[1, j]
        total += math.lgamma(a + b) - math.lgamma(a + b + positive[j] + negative[j])
        total += math.lgamma(a + positive[j]) - math.lgamma(a)
        total += math.lgamma(b + negative[j]) - math.lgamma(b)
    return total


@log_evidence.plainly
def _log_evidence(positive: FloatArray, negative: FloatArray, prior: FloatArray) -> float:
    a, b = prior
    total = gammaln(a + b) - gammaln(a + b + positive + negative)
    return float((total + gammaln(a + positive) - gammaln(a) + gammaln(b + negative) - gammaln(b)).sum())


@kernel
def average_over_bins(positive: FloatArray, negative: FloatArray, middle: FloatArray) -> FloatArray:
    """Probability at each distinct score: the mean over binnings, weighted by their marginal likelihood."""
    above, below = np.append(0.0, np.cumsum(positive)), np.append(0.0, np.cumsum(negative))
    total = above[-1] + below[-1]
    rank = (above[:-1] + below[:-1] + 0.5 * (positive + negative)) / total
    edges = prior_edges(middle)
    least, most = numbers_of_bins(total, len(positive))
    evidence = np.empty(most - least + 1)
    for i in range(len(evidence)):
        bins = equal_bins(rank, least + i)
        prior = prior_counts(bins, edges, total)
        evidence[i] = log_evidence(np.diff(above[bins]), np.diff(below[bins]), prior)
    share = np.exp(evidence - evidence.max())
    share /= share.sum()
    p = np.zeros(len(positive))
    for i in range(len(share)):
        if share[i] < NEGLIGIBLE:
            continue
        bins = equal_bins(rank, least + i)
        prior = prior_counts(bins, edges, total)
        n_positive, n_negative = np.diff(above[bins]) + prior[0], np.diff(below[bins]) + prior[1]
        p += np.repeat(share[i] * n_positive / (n_positive + n_negative), np.diff(bins))
    return p


@kernel(seconds=10)
def fit_binning(
    scores: FloatArray,
    targets: BoolArray,
    weights: FloatArray,
    offsets: IntArray,
    order: IntArray,
    knot_offsets: IntArray,
    knot_scores: FloatArray,
    knot_probabilities: FloatArray,
) -> None:
    """Write the steps of the averaged binnings, segment after segment, at most one per distinct score."""
    end = 0
    knot_offsets[0] = 0
    for k in range(len(offsets) - 1):
        rows = slice(offsets[k], offsets[k + 1])
        distinct, positive, negative = pool_ties(scores, targets, weights, order[rows])
        if len(distinct) > 0:
            middle = boundaries(distinct)
            p = average_over_bins(positive, negative, middle)
            for i in range(len(p)):
                if i == 0 or p[i] != p[i - 1]:
                    knot_scores[end], knot_probabilities[end] = middle[i], p[i]
                    end += 1
        knot_offsets[k + 1] = end
