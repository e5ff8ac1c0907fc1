"""Base class of binary calibrators: fitted to one scorer, or by one kernel call to all nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dichotomies._common.registry import Registry
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, LabelArray
from dichotomies._common.validation import as_given, row_weights, to_host
from dichotomies._kernels.compile import is_small
from dichotomies._kernels.isotonic import deal_folds
from dichotomies.calibrators.binary.score_maps import ScoreMaps
from dichotomies.persistence import CATALOGUE, Estimator
from dichotomies.persistence.checks import Part, declares
from dichotomies.rows.segments import Segments, segment_nll


@declares(maps_=Part(ScoreMaps, n_maps=1))
class BinaryCalibrator(BaseEstimator, ABC):
    """Base class of binary calibrators; subclasses implement `fit_segments`.

    Attributes
    ----------
    is_monotone : bool
        True for methods whose log-odds do not decrease with the score.
    classes_ : array of shape (2,)
        The negative and the positive label, after `fit`.
    maps_ : ScoreMaps of length 1
        The fitted map, after `fit`.
    """

    is_monotone: ClassVar[bool] = True

    #: True if a node's map depends on the scores of that node alone.
    nodes_are_independent: ClassVar[bool] = True

    @abstractmethod
    def fit_segments(self, segments: Segments) -> ScoreMaps:
        """Calibrate many nodes at once.

        Parameters
        ----------
        segments : Segments
            The scores of m nodes.

        Returns
        -------
        ScoreMaps
            m maps from score to calibrated log-odds; the identity for nodes without rows.
        """

    def fit_without(self, segments: Segments, fold: IntArray, n_folds: int) -> list[ScoreMaps]:
        """Calibrate all nodes without each fold of their rows in turn.

        Parameters
        ----------
        segments : Segments
            The scores of m nodes.
        fold : array of shape (n,)
            Fold of each score, from 0 on.
        n_folds : int
            Number of folds; some may have no scores.

        Returns
        -------
        list of ScoreMaps
            The maps of each fold, fitted to the scores of the others.
        """
        return [self.fit_segments(segments.take(fold != f)) for f in range(n_folds)]

    def fit(
        self, scores: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Calibrate one scorer.

        Parameters
        ----------
        scores : array of shape (n,)
            Finite scores, preferably log-odds of the positive label, of rows held out from its training.
        y : array of shape (n,)
            Two labels; the larger is the positive one. A single label is accepted if it is a boolean, 0 or 1.
        sample_weight : array of shape (n,), optional
            Weights >= 0.

        Returns
        -------
        self
        """
        self.maps_ = self.fit_segments(self._read(scores, y, sample_weight))
        return self

    def _read(self, scores: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> Segments:
        """Validate the arguments of `fit`, set `classes_`, and return the rows as one segment."""
        flat = checked_scores(scores)
        self.classes_, positive = _two_sides(np.asarray(to_host(y)))
        weights = None if sample_weight is None else row_weights(to_host(sample_weight), len(flat))
        return Segments(flat, positive, np.array([0, len(flat)]), weights)

    def predict_log_odds(self, scores: npt.ArrayLike) -> FloatArray:
        """Return the calibrated log-odds (n,) of the positive label, given `scores` (n,)."""
        check_is_fitted(self, "maps_")
        column = checked_scores(scores).reshape(-1, 1).copy()
        self.maps_.apply(column)
        return as_given(column[:, 0], scores)

    def predict_proba(self, scores: npt.ArrayLike) -> FloatArray:
        """Return probabilities (n, 2) of the negative and the positive label, given `scores` (n,)."""
        return both_sides(self.predict_log_odds(scores))


BINARY: Registry[BinaryCalibrator] = Registry("binary calibrator", __package__ or "")
CATALOGUE.add_family("binary-calibrator", BINARY, Estimator())


def both_sides(log_odds: FloatArray) -> FloatArray:
    """Return the probabilities (n, 2) of the negative and the positive label."""
    odds = to_host(log_odds)
    return as_given(np.column_stack([expit(-odds), expit(odds)]), log_odds)


def checked_scores(scores: npt.ArrayLike) -> FloatArray:
    """Return finite scores, one per row, as a contiguous array."""
    flat = np.asarray(to_host(scores), dtype=np.float64)
    if flat.ndim != 1:
        raise ValueError(f"Scores must be one number per row, of shape (n,); got shape {flat.shape}.")
    bad = np.flatnonzero(~np.isfinite(flat))
    if len(bad):
        raise ValueError(f"Scores must be finite; {len(bad)} are not, the first is scores[{bad[0]}].")
    return np.ascontiguousarray(flat)


def _two_sides(y: LabelArray) -> tuple[LabelArray, BoolArray]:
    """Return the labels (negative, positive) and the mask of positive rows."""
    if y.ndim != 1:
        raise ValueError(f"y must be one label per row, of shape (n,); got shape {y.shape}.")
    labels = np.unique(y)
    if len(labels) < 2 and np.isin(labels, [0, 1]).all():
        labels = np.array([0, 1], dtype=y.dtype)
    if len(labels) != 2:
        raise ValueError(
            f"A binary calibrator needs two labels; y has {len(labels)}: {labels[:5].tolist()}. "
            "If only one label occurs, give booleans or 0 and 1, which identify the positive one."
        )
    return labels, y == labels[1]


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
