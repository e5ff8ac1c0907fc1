"""Bayesian binning into quantiles: an average over numbers of bins, for all segments."""

import numpy as np
from scipy.special import expit, gammaln

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.isotonic import pool_ties
from dichotomies._kernels.score_maps import LARGEST, Knots
from dichotomies._kernels.segments import SegmentArrays

PRIOR_ROWS = 2.0  # N' in the paper, shared by the bins
NEGLIGIBLE = 1e-17  # weight of a binning, relative to the best one


def numbers_of_bins(total: float, n_distinct: int) -> range:
    """From ``n^(1/3) / 10`` to ``10 n^(1/3)`` bins, with 5 rows in each."""
    root = total ** (1.0 / 3.0)
    most = int(min(np.ceil(10.0 * root), np.ceil(total / 5.0), n_distinct))
    return range(max(min(int(root / 10.0), most), 1), max(most, 1) + 1)


def boundaries(distinct: FloatArray) -> FloatArray:
    """Midpoints between neighbouring scores, above the lower one; the least number before the first."""
    between = 0.5 * distinct[:-1] + 0.5 * distinct[1:]
    return np.append(-LARGEST, np.where(between > distinct[:-1], between, distinct[1:]))


def average_over_bins(positive: FloatArray, negative: FloatArray, middle: FloatArray) -> FloatArray:
    """Probability at each distinct score: the mean over binnings, weighted by their marginal likelihood.

    The evidence of a binning is equation 2 of the paper. A bin's prior share is the middle of its interval of
    probabilities, kept from 0 and 1 by one row in n + 2. Bins that are empty are left out.
    """
    above, below = np.append(0.0, np.cumsum(positive)), np.append(0.0, np.cumsum(negative))
    total = above[-1] + below[-1]
    rank = (above[:-1] + below[:-1] + 0.5 * (positive + negative)) / total
    edges = np.concatenate([[0.0], expit(middle[1:]), [1.0]])
    evidence, answers = [], []
    for n_bins in numbers_of_bins(total, len(positive)):
        first = np.append(np.flatnonzero(np.diff(np.floor(rank * n_bins), prepend=-1.0)), len(rank))
        prior = np.clip(
            0.5 * (edges[first[1:]] + edges[first[:-1]]), 1.0 / (total + 2.0), 1.0 - 1.0 / (total + 2.0)
        )
        strength = PRIOR_ROWS / (len(first) - 1)
        a, b = strength * prior, strength * (1.0 - prior)
        own, other = np.diff(above[first]), np.diff(below[first])
        evidence.append(
            np.sum(
                gammaln(a + b) - gammaln(a + b + own + other)
                + gammaln(a + own) - gammaln(a) + gammaln(b + other) - gammaln(b)
            )
        )  # fmt: skip
        answers.append(((a + own) / (a + b + own + other), np.diff(first)))
    weights = np.exp(np.array(evidence) - max(evidence))
    p = np.zeros(len(rank))
    for weight, (answer, size) in zip(weights / weights.sum(), answers, strict=True):
        if weight > NEGLIGIBLE:
            p += np.repeat(weight * answer, size)
    return p


@np.errstate(all="ignore")  # extreme scores
def fit_binning(segments: SegmentArrays, order: IntArray) -> Knots:
    """The steps of the averaged binnings, at most one per distinct score."""
    ties = pool_ties(segments, order)
    offsets, scores, values = [0], [np.empty(0)], [np.empty(0)]
    for begin, end in zip(ties.offsets[:-1], ties.offsets[1:], strict=True):
        if begin < end:
            middle = boundaries(ties.scores[begin:end])
            p = average_over_bins(ties.positive[begin:end], ties.negative[begin:end], middle)
            steps = np.flatnonzero(np.diff(p, prepend=np.nan))
            scores.append(middle[steps])
            values.append(p[steps])
        offsets.append(offsets[-1] + (len(scores[-1]) if begin < end else 0))
    return Knots(np.array(offsets), np.concatenate(scores), np.concatenate(values))
