"""Isotonic regression with probabilities strictly between 0 and 1."""

from __future__ import annotations

from dichotomies._kernels.compile import is_small
from dichotomies._kernels.isotonic import fit_isotonic, fit_smooth_isotonic, fit_venn_abers, pool_ties
from dichotomies._kernels.score_maps import CUBIC, LINEAR, STEPS, Knots
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.rows.segments import Segments


@BINARY.register("isotonic")
class IsotonicCalibration(BinaryCalibrator):
    """Isotonic regression with finite log-odds where scikit-learn's would be infinite.

    Equal scores are pooled; the probability is interpolated between blocks and constant outside the range,
    as in scikit-learn. Blocks of weight n without positive rows get ``1 / (n + 2)``, or the next block's
    value if that is lower; blocks without negative rows get ``(n + 1) / (n + 2)``, or the previous block's
    value if that is higher. With one side absent this is Laplace's rule of succession. All other blocks get
    their share of positive rows.

    References
    ----------
    Zadrozny & Elkan, *Transforming classifier scores into accurate multiclass probability estimates*,
    KDD 2002.

    Examples
    --------
    >>> from dichotomies.calibrators.binary import IsotonicCalibration
    >>> isotonic = IsotonicCalibration().fit([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0], [0, 0, 1, 0, 1, 1])
    >>> isotonic.predict_proba([-9.0, -1.0, 0.5, 2.0])[:, 1].round(3)
    array([0.25 , 0.5  , 0.625, 0.75 ])
    """

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        return ScoreMaps.knots(LINEAR, fit_isotonic(segments.arrays, segments.order), "isotonic")


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


@BINARY.register("venn-abers")
class VennAbers(BinaryCalibrator):
    """Venn-Abers: isotonic regression with the test score added to either side, merged by log-loss regret.

    With p0 and p1 the isotonic values at the score after adding it as a negative and as a positive row, the
    probability is ``p1 / (1 - p0 + p1)``, which is never 0 or 1. It is a non-decreasing step function,
    constant between neighbouring calibration scores.

    References
    ----------
    Vovk, Petej & Fedorova, *Large-scale probabilistic predictors with and without guarantees of
    validity*, NeurIPS 2015.

    Examples
    --------
    >>> from dichotomies.calibrators.binary import VennAbers
    >>> venn = VennAbers().fit([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0], [0, 0, 1, 0, 1, 1])
    >>> venn.predict_proba([-9.0, -1.0, 0.5, 9.0])[:, 1].round(3)
    array([0.25, 0.5 , 0.6 , 0.75])
    """

    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once; see `BinaryCalibrator`."""
        knots = Knots.empty(len(segments), 2 * len(segments.scores) + len(segments))
        small = is_small(segments.longest, 2e-5 * len(segments.scores) + 1e-4 * len(segments))
        fit_venn_abers.when(small)(pool_ties(segments.arrays, segments.order), knots)
        return ScoreMaps.knots(STEPS, knots, "venn-abers")
