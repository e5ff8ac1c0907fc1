"""Bayesian binning into quantiles: histograms of many numbers of bins, averaged."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy.special import expit, gammaln

from dichotomies._common.typing import BoolArray, FloatArray
from dichotomies._kernels.score_maps import LARGEST, STEPS, Knots
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.rows.segments import Segments

_PRIOR_ROWS = 2.0  # N' in the paper, shared by the bins


@BINARY.register("bbq")
class BayesianBinning(BinaryCalibrator):
    """Bayesian binning into quantiles (BBQ): the average of equal-frequency histograms of many sizes.

    Histograms have ``n^(1/3) / 10`` to ``10 n^(1/3)`` bins, but no more than one per five rows. A bin has a
    beta prior whose mean is the middle of its interval of probabilities and whose strength is 2 rows,
    divided among the bins. Histograms are weighted by their marginal likelihood. Equal scores
    are in the same bin, so that the result does not depend on the order of rows; bins that become empty are
    left out. The middle of a bin is kept ``1 / (n + 2)`` away from 0 and 1, so that neither is an answer.

    Scores must be log-odds, since the prior means are probabilities. The result is a step function that need
    not increase.

    References
    ----------
    Naeini, Cooper & Hauskrecht, *Obtaining well calibrated probabilities using Bayesian binning*, AAAI 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.binary import BayesianBinning
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(scale=3.0, size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-scores / 3))    # three times too sure
    >>> BayesianBinning().fit(scores, y).predict_proba([-6.0, 0.0, 6.0])[:, 1].round(2)
    array([0.22, 0.61, 0.77])
    """

    is_monotone: ClassVar[bool] = False

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        scores, targets, weights, offsets = segments.arrays
        parts = [_steps(scores[a:b], targets[a:b], weights[a:b]) for a, b in pairwise(offsets.tolist())]
        offsets = np.cumsum([0, *(len(part[0]) for part in parts)])
        starts, values = (np.concatenate([np.empty(0), *(part[i] for part in parts)]) for i in (0, 1))
        return ScoreMaps.knots(STEPS, Knots(offsets, starts, values), "bbq")


def _steps(scores: FloatArray, targets: BoolArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where each step of one segment's histogram begins, and its probability."""
    counted = weights > 0
    distinct, place = np.unique(scores[counted], return_inverse=True)
    if len(distinct) == 0:
        return np.empty(0), np.empty(0)
    sides = weights[counted] * targets[counted], weights[counted] * ~targets[counted]
    above, below = (np.append(0.0, np.cumsum(np.bincount(place, side))) for side in sides)
    middle = 0.5 * distinct[:-1] + 0.5 * distinct[1:]
    middle = np.where(middle > distinct[:-1], middle, distinct[1:])
    p = _average(above, below, np.concatenate([[0.0], expit(middle), [1.0]]))
    is_step = np.append(True, p[1:] != p[:-1])
    return np.append(-LARGEST, middle)[is_step], p[is_step]


def _average(positive: FloatArray, negative: FloatArray, edges: FloatArray) -> FloatArray:
    """Probability at each of n scores: the mean of all histograms by their marginal likelihood.

    Parameters
    ----------
    positive, negative : (n + 1,)
        Weight of the rows of either side below each score, and of all.
    edges : (n + 1,)
        Boundaries between the scores, as probabilities.
    """
    n, total = len(edges) - 1, positive + negative
    weight = total[-1]
    most = max(int(min(np.ceil(10 * np.cbrt(weight)), np.ceil(weight / 5), n)), 1)
    sizes = np.arange(max(min(int(np.cbrt(weight) / 10), most), 1), most + 1)
    histogram = np.repeat(np.arange(len(sizes)), sizes)
    number = np.arange(len(histogram)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = np.searchsorted(0.5 * (total[1:] + total[:-1]), number * weight / sizes[histogram])
    is_last = np.append(histogram[1:] != histogram[:-1], True)
    end = np.where(is_last, n, np.append(first[1:], n))
    histogram, first, end = (each[end > first] for each in (histogram, first, end))  # bins that are not empty
    n_bins = np.bincount(histogram)[histogram]
    middle = np.clip(0.5 * (edges[first] + edges[end]), 1 / (weight + 2), 1 - 1 / (weight + 2))
    prior = _PRIOR_ROWS / n_bins
    a, b = prior * middle, prior * (1 - middle)
    above, below = positive[end] - positive[first], negative[end] - negative[first]
    terms = gammaln(a + b) - gammaln(a + b + above + below) + gammaln(a + above) - gammaln(a)
    evidence = np.bincount(histogram, terms + gammaln(b + below) - gammaln(b))
    share = np.exp(evidence - evidence.max())
    answer = (share / share.sum())[histogram] * (a + above) / (a + b + above + below)
    change = np.bincount(first, answer, n + 1) - np.bincount(end, answer, n + 1)
    return np.asarray(np.cumsum(change[:-1]))
