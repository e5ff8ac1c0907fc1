"""Bayesian binning into quantiles: an average over numbers of bins, for all segments."""

import math

import numpy as np
from scipy.special import expit, gammaln

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.isotonic import pool_ties
from dichotomies._kernels.score_maps import Knots
from dichotomies._kernels.segments import SegmentArrays

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
    """Midpoints between neighbouring scores, above the lower one; the least number before the first."""
    middle = np.empty(len(distinct))
    middle[0] = -np.finfo(np.float64).max
    for i in range(1, len(distinct)):
        between = 0.5 * distinct[i - 1] + 0.5 * distinct[i]
        middle[i] = between if between > distinct[i - 1] else distinct[i]
    return middle


@kernel
def bin_edge(middle: FloatArray, i: int) -> float:
    """Boundary before the i-th score as a probability: 0 before the first score, 1 after the last."""
    if i == len(middle):
        return 1.0
    return float(1.0 / (1.0 + np.exp(-middle[i]))) if i > 0 else 0.0


@kernel
def bin_prior(low: float, high: float, n_bins: int, total: float) -> tuple[float, float]:
    """Prior rows of either side, positive first, of a bin between two probabilities.

    Their share is the middle of the bin, kept from 0 and 1 by one row in n + 2.
    """
    p = min(max(0.5 * (low + high), 1.0 / (total + 2.0)), 1.0 - 1.0 / (total + 2.0))
    return PRIOR_ROWS / n_bins * p, PRIOR_ROWS / n_bins * (1.0 - p)


@kernel
def equal_bins(rank: FloatArray, n_bins: int, first: IntArray) -> int:
    """Write the first index of each bin that is not empty, and the end; return the number of such bins.

    Scores are divided by their `rank`, which increases between 0 and 1.
    """
    n = 0
    for b in range(n_bins):
        low, high = 0, len(rank)
        while low < high:
            middle = (low + high) // 2
            if rank[middle] * n_bins < b:
                low = middle + 1
            else:
                high = middle
        if n == 0 or low > first[n - 1]:
            first[n] = low
            n += low < len(rank)
    first[n] = len(rank)
    return n


@kernel
def log_evidence(first: IntArray, above: FloatArray, below: FloatArray, middle: FloatArray) -> float:
    """Log marginal likelihood of a binning (equation 2 of the paper); above and below are cumulative."""
    n_bins, total = len(first) - 1, above[-1] + below[-1]
    evidence = 0.0
    for j in range(n_bins):
        i, end = first[j], first[j + 1]
        a, b = bin_prior(bin_edge(middle, i), bin_edge(middle, end), n_bins, total)
        positive, negative = above[end] - above[i], below[end] - below[i]
        evidence += math.lgamma(a + b) - math.lgamma(a + b + positive + negative)
        evidence += math.lgamma(a + positive) - math.lgamma(a)
        evidence += math.lgamma(b + negative) - math.lgamma(b)
    return evidence


@kernel
def add_answers(
    first: IntArray, above: FloatArray, below: FloatArray, middle: FloatArray, share: float, p: FloatArray
) -> None:
    """Add `share` times the posterior mean of each bin to the probability of its scores."""
    n_bins, total = len(first) - 1, above[-1] + below[-1]
    for j in range(n_bins):
        i, end = first[j], first[j + 1]
        a, b = bin_prior(bin_edge(middle, i), bin_edge(middle, end), n_bins, total)
        positive, negative = above[end] - above[i] + a, below[end] - below[i] + b
        for score in range(i, end):
            p[score] += share * positive / (positive + negative)


@kernel
def average_over_bins(positive: FloatArray, negative: FloatArray, middle: FloatArray) -> FloatArray:
    """Probability at each distinct score: the mean over binnings, weighted by their marginal likelihood."""
    n = len(positive)
    above, below, rank = np.zeros(n + 1), np.zeros(n + 1), np.empty(n)
    for i in range(n):
        above[i + 1], below[i + 1] = above[i] + positive[i], below[i] + negative[i]
    for i in range(n):
        rank[i] = (above[i] + below[i] + 0.5 * (positive[i] + negative[i])) / (above[n] + below[n])
    least, most = numbers_of_bins(above[n] + below[n], n)
    first, evidence, best = np.empty(most + 1, np.intp), np.empty(most - least + 1), -np.inf
    for i in range(len(evidence)):
        n_bins = equal_bins(rank, least + i, first)
        evidence[i] = log_evidence(first[: n_bins + 1], above, below, middle)
        best = max(best, evidence[i])
    total = 0.0
    for i in range(len(evidence)):
        evidence[i] = np.exp(evidence[i] - best)
        total += evidence[i]
    p = np.zeros(n)
    for i in range(len(evidence)):
        if evidence[i] > NEGLIGIBLE:
            n_bins = equal_bins(rank, least + i, first)
            add_answers(first[: n_bins + 1], above, below, middle, evidence[i] / total, p)
    return p


@average_over_bins.plainly
def _average_over_bins(positive: FloatArray, negative: FloatArray, middle: FloatArray) -> FloatArray:
    above, below = np.append(0.0, np.cumsum(positive)), np.append(0.0, np.cumsum(negative))
    total = above[-1] + below[-1]
    rank = (above[:-1] + below[:-1] + 0.5 * (positive + negative)) / total
    edges = np.concatenate([[0.0], expit(middle[1:]), [1.0]])
    least, most = numbers_of_bins(total, len(positive))
    evidence, answers = np.empty(most - least + 1), np.empty((most - least + 1, len(positive)))
    for i in range(len(evidence)):
        place = np.floor(rank * (least + i))
        first = np.append(np.flatnonzero(np.diff(place, prepend=-1.0)), len(rank))
        n_bins = len(first) - 1
        low = 1.0 / (total + 2.0)
        prior = np.clip(0.5 * (edges[first[1:]] + edges[first[:-1]]), low, 1.0 - low)
        a, b = PRIOR_ROWS / n_bins * prior, PRIOR_ROWS / n_bins * (1.0 - prior)
        own, other = np.diff(above[first]), np.diff(below[first])
        evidence[i] = np.sum(
            gammaln(a + b) - gammaln(a + b + own + other)
            + gammaln(a + own) - gammaln(a) + gammaln(b + other) - gammaln(b)
        )  # fmt: skip
        answers[i] = np.repeat((a + own) / (a + b + own + other), np.diff(first))
    share = np.exp(evidence - evidence.max())
    p: FloatArray = share / share.sum() @ answers
    return p


@kernel
def fit_binning(segments: SegmentArrays, order: IntArray, knots: Knots) -> None:
    """Write the steps of the averaged binnings, segment after segment, at most one per distinct score."""
    scores, targets, weights, offsets = segments
    knot_offsets, knot_scores, knot_values = knots
    knot_offsets[0] = end = 0
    for k in range(len(offsets) - 1):
        rows = slice(offsets[k], offsets[k + 1])
        distinct, positive, negative = pool_ties(scores, targets, weights, order[rows])
        if len(distinct) > 0:
            middle = boundaries(distinct)
            p = average_over_bins(positive, negative, middle)
            for i in range(len(p)):
                if i == 0 or p[i] != p[i - 1]:
                    knot_scores[end], knot_values[end] = middle[i], p[i]
                    end += 1
        knot_offsets[k + 1] = end
