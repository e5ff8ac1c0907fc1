"""Temperature scaling of log-odds: one positive factor."""

from __future__ import annotations

import numpy as np

from dichotomies._kernels.compile import is_small
from dichotomies._kernels.platt import fit_affine, plain_seconds
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
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
