"""Quadratic scaling: Platt scaling with a slope that changes along the scores."""

from __future__ import annotations

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.compile import is_small
from dichotomies._kernels.platt import fit_quadratic, plain_seconds
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.rows.segments import Segments


@BINARY.register("quadratic")
class QuadraticScaling(BinaryCalibrator):
    """Quadratic scaling: log-odds that are an increasing parabola of the score, by maximum likelihood.

    Platt scaling with a quadratic term, ``a s^2 + b s + c``, whose slope is kept >= 0 at the lowest and at
    the highest calibration score, and therefore between them. A slope that would be negative at one end is
    set to 0 there and the rest refitted, as in `BetaCalibration`. Beyond the two scores the parabola
    continues along its tangents, so that it never turns. Platt's targets, as in `PlattScaling`, keep the
    parameters finite. Platt scaling with a slope >= 0, and so the identity, is a special case.

    References
    ----------
    Berta, Holzmüller, Jordan & Bach, *Structured matrix scaling for multi-class calibration*, 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.binary import QuadraticScaling
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(-2.0, 2.0, size=20_000)
    >>> y = rng.random(20_000) < 1 / (1 + np.exp(-scores - scores**2 / 4))
    >>> QuadraticScaling().fit(scores, y).predict_log_odds([-2.0, 0.0, 2.0]).round(1)
    array([-1. ,  0. ,  3.1])
    """

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        parameters, ends = np.empty((len(segments), 3)), _ends(segments)
        small = is_small(segments.longest, plain_seconds(len(segments.scores), len(segments)))
        fit_quadratic.when(small)(segments.arrays, ends, parameters)
        return ScoreMaps.quadratic(parameters, ends, "quadratic").identity_where_empty(segments)


def _ends(segments: Segments) -> FloatArray:
    """Return the lowest and the highest score (2 m,) of each segment's rows with a weight; 0 without any."""
    weighted = segments.take(segments.row_weights > 0)
    ends = np.zeros((len(segments), 2))
    has_rows = weighted.n_rows > 0
    starts = weighted.offsets[:-1][has_rows]
    if len(starts):
        ends[has_rows, 0] = np.minimum.reduceat(weighted.scores, starts)
        ends[has_rows, 1] = np.maximum.reduceat(weighted.scores, starts)
    return ends.ravel()
