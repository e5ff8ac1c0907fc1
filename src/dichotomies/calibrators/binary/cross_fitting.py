"""Cross-fitted scores and losses of binary calibrators."""

from __future__ import annotations

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import is_small
from dichotomies._kernels.segments import deal_folds
from dichotomies.calibrators.binary.base import BinaryCalibrator
from dichotomies.rows.segments import Segments, segment_nll


def folds(segments: Segments, n_folds: int) -> IntArray:
    """Return the fold (n,) of every row: shuffled with a fixed seed, stratified by segment and target."""
    if n_folds < 2:
        raise ValueError(f"Cross-fitting needs at least 2 folds; got {n_folds}.")
    fold = np.empty(len(segments.scores), dtype=np.intp)
    small = is_small(segments.longest, 4e-6 * len(fold))
    deal_folds.when(small)(segments.targets, segments.row_weights, segments.offsets, n_folds, fold)
    return fold


def cross_fitted_log_odds(calibrator: BinaryCalibrator, segments: Segments, n_folds: int = 5) -> FloatArray:
    """Return the log-odds (n,) of every score of `segments` by maps of `calibrator`, out of fold.

    Each segment is divided into `n_folds`; a score gets the map that was fitted on the other folds.
    """
    fold = folds(segments, n_folds)
    log_odds = np.empty(len(segments.scores))
    for f in range(n_folds):
        held_out = fold == f
        maps = calibrator.fit_segments(segments.take(~held_out))
        log_odds[held_out] = maps.apply_segments(segments.take(held_out))
    return log_odds


def cross_fitted_nll(calibrator: BinaryCalibrator, segments: Segments, n_folds: int = 5) -> FloatArray:
    """Return the cross-fitted, weighted NLL (m,) of each segment.

    Compare it with ``segment_nll(segments.scores, segments)``, the NLL without calibration.

    Parameters
    ----------
    calibrator : BinaryCalibrator
        The calibration method.
    segments : Segments
        The scores of m nodes.
    n_folds : int
        Number of folds. A segment may have fewer rows; the only row of a segment is left uncalibrated.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.binary import PlattScaling, Segments, cross_fitted_nll, segment_nll
    >>> scores = np.linspace(-9, 9, 40)
    >>> rows = Segments(scores, np.sin(9 * scores) + scores / 9 > 0, [0, 40])  # too sure
    >>> segment_nll(rows.scores, rows).round(1), cross_fitted_nll(PlattScaling(), rows).round(1)
    (array([29.4]), array([19.]))
    """
    return segment_nll(cross_fitted_log_odds(calibrator, segments, n_folds), segments)
