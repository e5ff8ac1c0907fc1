"""Bayesian binning into quantiles: histograms of many numbers of bins, averaged."""

from __future__ import annotations

from typing import ClassVar

from dichotomies._kernels.binning import fit_binning
from dichotomies._kernels.score_maps import STEPS
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.rows.segments import Segments


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
        return ScoreMaps.knots(STEPS, fit_binning(segments.arrays, segments.order), "bbq")
