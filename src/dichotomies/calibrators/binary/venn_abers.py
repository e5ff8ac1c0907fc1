"""Venn-Abers calibration: isotonic regression with the test score included."""

from __future__ import annotations

from dichotomies._kernels.compile import is_small
from dichotomies._kernels.isotonic import pool_ties
from dichotomies._kernels.score_maps import STEPS, Knots
from dichotomies._kernels.venn_abers import fit_venn_abers
from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.rows.segments import Segments


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
