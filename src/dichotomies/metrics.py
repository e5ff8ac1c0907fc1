"""How good class probabilities are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def expected_calibration_error(
    y_true: npt.ArrayLike, proba: npt.ArrayLike, *, classes: npt.ArrayLike | None = None, n_bins: int = 20
) -> float:
    """Mean distance between how sure predictions are and how often they are right.

    Rows are put into bins of equal width by the probability of their most probable class; within each bin,
    the mean of that probability is compared with the share of right predictions (the paper's ECE).

    Parameters
    ----------
    y_true : array of shape (n_rows,)
        The true labels.
    proba : array of shape (n_rows, n_classes)
        Class probabilities.
    classes : array of shape (n_classes,), optional
        The labels of the columns; by default the sorted labels that occur in `y_true`.
    n_bins : int, default=20
        Number of bins.

    Returns
    -------
    float
        Between 0 (calibrated) and 1.

    Examples
    --------
    >>> from dichotomies.metrics import expected_calibration_error
    >>> round(expected_calibration_error(["a", "b", "b"], [[0.9, 0.1], [0.2, 0.8], [0.9, 0.1]]), 3)
    0.333
    """
    proba = np.asarray(proba, dtype=np.float64)
    labels = np.unique(np.asarray(y_true)) if classes is None else np.asarray(classes)
    if proba.ndim != 2 or proba.shape[1] != len(labels):
        raise ValueError(
            f"proba must have one column for each of the {len(labels)} classes, got shape {proba.shape}; "
            "pass classes= where not every class occurs in y_true."
        )
    confidence = proba.max(axis=1)
    right = labels[proba.argmax(axis=1)] == np.asarray(y_true)
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps: Any = np.bincount(bins, weights=right - confidence, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(confidence))
