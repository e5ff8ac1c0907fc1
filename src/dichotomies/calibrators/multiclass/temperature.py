"""Temperature scaling: one scale for all log-probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dichotomies.calibrators.multiclass._evaluation import Likelihood
from dichotomies.calibrators.multiclass._rows import row_blocks
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray
    from dichotomies.calibrators.multiclass._rows import CalibrationRows

_LOWEST, _HIGHEST = 1e-12, 1e5  # naive Bayes with a thousand counts needs 1e-5


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

    def scores(self, x: FloatArray) -> FloatArray:
        """Return ``t log p``."""
        return np.multiply(x, self.scale_, out=x)


@dataclass(frozen=True)
class BestScale:
    """Scale common to all classes; `separated` if its maximum-likelihood value is infinite."""

    scale: float
    separated: bool
    n_iter: int
    converged: bool


def best_scale(likelihood: Likelihood, max_iter: int = 100) -> BestScale:
    """Return the maximum-likelihood scale, by Newton's method with bracketing."""
    separated = _separated(likelihood.rows)
    smallest = 1e-6 if likelihood.single else 1e-11
    low, high, scale = _LOWEST, _HIGHEST, 1.0
    for iteration in range(1, max_iter + 1):
        _, slope, curvature = likelihood.scale_sums(scale)
        if separated:
            slope, curvature = slope + scale - 1, curvature + 1
        low, high = (scale, high) if slope < 0 else (low, scale)
        newton = scale - slope / curvature if curvature > 0 else np.nan
        if abs(newton - scale) <= smallest * scale or high / low < 1 + smallest:
            return BestScale(float(np.clip(newton, low, high)), separated, iteration, converged=True)
        scale = float(newton if low < newton < high else np.sqrt(low * high))
    return BestScale(scale, separated, max_iter, converged=False)


def _separated(rows: CalibrationRows) -> bool:
    """Return True if every row's true class is the most probable one."""
    for few in row_blocks(*rows.shape):
        counts = rows.weight[few] > 0
        if (rows.block(few).max(axis=1) > rows.own[few])[counts].any():
            return False
    return True
