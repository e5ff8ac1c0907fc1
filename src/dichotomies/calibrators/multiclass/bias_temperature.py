"""Bias-corrected temperature scaling: one scale for all classes, and a bias per class."""

from __future__ import annotations

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies.calibrators.multiclass._calibration_rows import CalibrationRows
from dichotomies.calibrators.multiclass._likelihood import Likelihood, best_scale
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator
from dichotomies.calibrators.multiclass.vector import present_only


@MULTICLASS.register("bias-temperature")
class BiasTemperatureScaling(MulticlassCalibrator):
    """Bias-corrected temperature scaling: one temperature and a bias per class, by maximum likelihood.

    ``p'_c`` is proportional to ``exp(t log p_c + b_c)``. On the calibration rows, the mean probability of
    every class then equals its frequency. The fit is convex and starts at the temperature-scaling optimum
    with b = 0. Classes absent from the rows keep the bias 0, around which the others are centred. If the
    rows are separated (see `TemperatureScaling`), t has a normal prior with mean 1 and standard deviation 1.

    Parameters
    ----------
    tol : float, default=1e-9
        Stop when the predicted decrease is lower, in nats per row.
    max_iter : int, default=500
        Maximum number of iterations.
    n_jobs : int, default=None
        Number of threads for large problems; the result does not depend on it.

    Attributes
    ----------
    common_scale_ : float
        The scale t.
    bias_ : ndarray of shape (n_classes,)
        The biases b.

    References
    ----------
    Alexandari, Kundaje & Shrikumar, *Maximum Likelihood with Bias-Corrected Calibration is Hard-To-Beat at
    Label Shift Adaptation*, ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.multiclass import MULTICLASS
    >>> log_proba = np.log([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4], [0.8, 0.2]])
    >>> calibrator = MULTICLASS.create("bias-temperature").fit(log_proba, [0, 1, 1, 1])
    >>> calibrator.predict_proba(log_proba).sum(axis=0).round(3)
    array([1., 3.])
    """

    def __init__(self, *, tol: float = 1e-9, max_iter: int = 500, n_jobs: int | None = None) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Fit t and the biases of the classes present."""
        likelihood = Likelihood(rows, self.n_jobs)
        start = best_scale(likelihood)
        objective, x = present_only(likelihood, start)
        objective.free[0] = True
        objective.scale_prior = float(start.separated)
        found = objective.minimum(x, tol=self.tol, max_iter=self.max_iter)
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        self.common_scale_ = float(found.x[0])
        _, self.bias_ = objective.scale_and_bias(found.x)

    def slope_and_bias(self) -> tuple[FloatArray, FloatArray]:
        """Return t for every class, and the biases."""
        return np.full(self.n_classes_, self.common_scale_), self.bias_

    def scores(self, x: FloatArray) -> FloatArray:
        """Return ``t log p + b``."""
        x *= self.common_scale_
        x += self.bias_
        return x
