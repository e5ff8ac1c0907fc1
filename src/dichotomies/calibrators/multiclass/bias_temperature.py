"""Bias-corrected temperature scaling: one factor for all classes, and a bias for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dichotomies.calibrators.multiclass._evaluation import Likelihood
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator
from dichotomies.calibrators.multiclass.temperature import best_scale
from dichotomies.calibrators.multiclass.vector import present_only

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray
    from dichotomies.calibrators.multiclass._rows import CalibrationRows


@MULTICLASS.register("bias-temperature")
class BiasTemperatureScaling(MulticlassCalibrator):
    """One temperature for all classes and a bias for each, by maximum likelihood.

    ``p'_c`` is proportional to ``exp(t log p_c + b_c)``. On the rows of the fit, every class is then
    expected as often as it occurs. The fit starts at the temperature-scaling optimum with b = 0 and is
    convex. Classes that do not occur in the rows keep the bias 0, around which the others are centred.
    Where the rows are separated (see `TemperatureScaling`), t is drawn to 1 by a normal prior of standard
    deviation 1.

    Parameters
    ----------
    tol : float, default=1e-9
        The fit ends when the next step promises to gain less, in nats for each row.
    max_iter : int, default=500
        Iterations allowed.
    n_jobs : int, default=None
        Threads used on large problems; the result does not depend on it.

    Attributes
    ----------
    common_scale_ : float
        The factor t.
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
        """Fit t, and the biases of the classes that occur."""
        likelihood = Likelihood(rows, self.n_jobs)
        start = best_scale(likelihood)
        objective, x = present_only(likelihood, start)
        objective.free[0] = True
        objective.prior_of_scale = float(start.separated)
        found = objective.minimum(x, tol=self.tol, max_iter=self.max_iter)
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        self.common_scale_ = float(found.x[0])
        _, self.bias_ = objective.scale_and_bias(found.x)

    def scores(self, x: FloatArray) -> FloatArray:
        """``t log p + b``."""
        x *= self.common_scale_
        x += self.bias_
        return x
