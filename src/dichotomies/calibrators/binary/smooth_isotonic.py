"""Isotonic regression smoothed by increasing cubics."""

from __future__ import annotations

from dichotomies._kernels.isotonic import fit_smooth_isotonic
from dichotomies._kernels.score_maps import CUBIC
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.rows.segments import Segments


@BINARY.register("smooth-isotonic")
class SmoothIsotonic(BinaryCalibrator):
    """Isotonic regression smoothed by increasing cubics through the centres of its blocks.

    Every block of `IsotonicCalibration` is replaced by one point, the log-odds of the mean uncalibrated
    probability in it and its calibrated probability, and the points are joined by monotone cubic
    interpolation (PCHIP). The result is continuously differentiable
    and strictly increasing, so that it keeps the order of the scores, where isotonic regression ties all
    scores of a block. Outside the first and the last point it is constant.

    This is the method of Jiang et al., interpolated over log-odds. Zhong & Kwok (IJCAI 2013) reach
    the same aim by a quadratic program with a smoothness parameter to be tuned; the interpolation has no
    parameter and takes linear time.

    References
    ----------
    Jiang, Osl, Kim & Ohno-Machado, *Smooth isotonic regression: a new method to calibrate predictive models*,
    AMIA Summits on Translational Science 2011; Fritsch & Butland, *A method for constructing local monotone
    piecewise cubic interpolants*, SIAM Journal on Scientific and Statistical Computing 1984.

    Examples
    --------
    >>> from dichotomies.calibrators.binary import SmoothIsotonic
    >>> smooth = SmoothIsotonic().fit([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0], [0, 0, 1, 0, 1, 1])
    >>> smooth.predict_proba([-9.0, -1.0, 0.5, 2.0])[:, 1].round(3)
    array([0.25 , 0.431, 0.628, 0.75 ])
    """

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        return ScoreMaps.knots(CUBIC, fit_smooth_isotonic(segments.arrays, segments.order), "smooth-isotonic")
