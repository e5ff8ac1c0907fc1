"""Beta calibration: a three-parameter family that contains the identity."""

from __future__ import annotations

import numpy as np

from dichotomies._kernels.compile import is_small
from dichotomies._kernels.platt import fit_beta, plain_seconds
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.rows.segments import Segments


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
