"""Temperature scaling: one scale for all log-probabilities."""

from __future__ import annotations

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies.calibrators.multiclass._calibration_rows import CalibrationRows
from dichotomies.calibrators.multiclass._likelihood import Likelihood, best_scale
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator


@MULTICLASS.register("temperature")
class TemperatureScaling(MulticlassCalibrator):
    """Temperature scaling: all log-probabilities divided by one temperature; the top class stays the same.

    ``p' = softmax(t log p)`` with the maximum-likelihood t = 1 / temperature, found by Newton's method with
    bracketing from t = 1; t is at least 1e-12.

    If the rows are separated (every row's true class is the most probable one), the likelihood increases
    with t without bound. Only then, t has a normal prior with mean 1 and standard deviation 1.

    Parameters
    ----------
    max_iter : int, default=100
        Maximum number of Newton steps.
    n_jobs : int, default=None
        Number of threads for large problems; the result does not depend on it.

    Attributes
    ----------
    scale_ : float
        The scale t.
    temperature_ : float
        ``1 / t``; above 1 if the probabilities were over-confident.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger, *On Calibration of Modern Neural Networks*, ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.multiclass import MULTICLASS
    >>> log_proba = np.log([[0.98, 0.01, 0.01], [0.02, 0.95, 0.03], [0.9, 0.05, 0.05]])
    >>> calibrator = MULTICLASS.create("temperature").fit(log_proba, [0, 1, 2])
    >>> calibrator.predict_proba(log_proba).round(2)
    array([[0.8 , 0.1 , 0.1 ],
           [0.12, 0.73, 0.15],
           [0.65, 0.17, 0.17]])
    """

    def __init__(self, *, max_iter: int = 100, n_jobs: int | None = None) -> None:
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Fit t."""
        best = best_scale(Likelihood(rows, self.n_jobs), self.max_iter)
        self.scale_, self.n_iter_, self.converged_ = best.scale, best.n_iter, best.converged
        self.temperature_ = 1 / best.scale

    def slope_and_bias(self) -> tuple[FloatArray, FloatArray]:
        """Return t and 0 for every class."""
        return np.full(self.n_classes_, self.scale_), np.zeros(self.n_classes_)

    def scores(self, x: FloatArray) -> FloatArray:
        """Return ``t log p``."""
        return np.multiply(x, self.scale_, out=x)
