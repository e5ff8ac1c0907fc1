"""Isotonic regression with probabilities strictly between 0 and 1."""

from __future__ import annotations

from dichotomies._kernels.isotonic import fit_isotonic
from dichotomies._kernels.score_maps import LINEAR
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
