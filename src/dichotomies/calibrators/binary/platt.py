"""Platt scaling: a logistic function of the score."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dichotomies._kernels.compile import is_small
from dichotomies._kernels.platt import fit_affine, fit_beta, plain_seconds
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.persistence import CATALOGUE, Estimator
from dichotomies.rows.segments import Segments


@BINARY.register("temperature")
class BinaryTemperature(BinaryCalibrator):
    """Temperature scaling: one factor >= 0 for all log-odds, by maximum likelihood.

    It suits scores that are only over- or under-confident. Platt's targets, as in `PlattScaling`, keep the
    factor finite if all scores have the right sign. A factor that would be negative is set to 0; if all
    scores are 0, it is 1.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger, *On calibration of modern neural networks*, ICML 2017.

    Examples
    --------
    >>> from dichotomies.calibrators.binary import BinaryTemperature
    >>> sure = BinaryTemperature().fit([9.0, 8.0, -7.0, -9.0, -8.0], [1, 0, 0, 0, 1])
    >>> sure.predict_log_odds([9.0]).round(2)
    array([0.28])
    """

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        parameters = np.empty((len(segments), 3))
        small = is_small(segments.longest, plain_seconds(len(segments.scores), len(segments)))
        fit_affine.when(small)(segments.arrays, False, parameters)
        return ScoreMaps.affine(parameters, "temperature").identity_where_empty(segments)


@BINARY.register("beta")
class BetaCalibration(BinaryCalibrator):
    """Beta calibration: log-odds ``a log p - b log(1 - p) + c`` with a, b >= 0, by maximum likelihood.

    Scores are log-odds: ``p = 1 / (1 + exp(-score))``. A negative a or b is set to 0 and the others are
    refitted, as in the paper. Platt's targets, as in `PlattScaling`, keep the parameters finite. With a = b
    this is Platt scaling.

    References
    ----------
    Kull, Silva Filho & Flach, *Beta calibration: a well-founded and easily implemented improvement on
    logistic calibration for binary classifiers*, AISTATS 2017.

    Examples
    --------
    >>> from dichotomies.calibrators.binary import BetaCalibration
    >>> beta = BetaCalibration().fit([3.0, 2.0, 1.0, -1.0, -2.0, -3.0], [1, 0, 1, 0, 1, 0])
    >>> beta.predict_proba([0.0]).round(2)
    array([[0.5, 0.5]])
    """

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        parameters = np.empty((len(segments), 3))
        small = is_small(segments.longest, plain_seconds(len(segments.scores), len(segments)))
        fit_beta.when(small)(segments.arrays, parameters)
        return ScoreMaps.beta(parameters, "beta").identity_where_empty(segments)


@BINARY.register("platt")
class PlattScaling(BinaryCalibrator):
    """Platt scaling: slope and intercept by maximum likelihood with Platt's prior-corrected targets.

    The targets are ``(N+ + 1) / (N+ + 2)`` on the positive side and ``1 / (N- + 2)`` on the other, which
    keeps the parameters finite under perfect separation and with one side absent. If all scores are equal,
    the slope is 0. It is negative if positive rows have lower scores.

    References
    ----------
    Platt, *Probabilistic outputs for support vector machines*, 1999; Lin, Lin & Weng, *A note on Platt's
    probabilistic outputs for support vector machines*, 2007.

    Examples
    --------
    >>> from dichotomies.calibrators.binary import PlattScaling
    >>> platt = PlattScaling().fit([5.0, -4.0, 1.0], [1, 0, 0])
    >>> platt.maps_.parameters.round(5).tolist()
    [[0.20261, -0.65237, 0.0]]
    >>> platt.predict_proba([2.0]).round(3)
    array([[0.561, 0.439]])
    """

    is_monotone: ClassVar[bool] = False

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        parameters = np.empty((len(segments), 3))
        small = is_small(segments.longest, plain_seconds(len(segments.scores), len(segments)))
        fit_affine.when(small)(segments.arrays, True, parameters)
        return ScoreMaps.affine(parameters, "platt").identity_where_empty(segments)


# quadratic scaling of earlier versions: what it was fitted to is in its maps
CATALOGUE.retire("binary-calibrator/quadratic", PlattScaling, Estimator())
