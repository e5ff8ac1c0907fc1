"""Vector scaling: a scale and a bias for each class's log-probability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from dichotomies.calibrators.multiclass._calibration_rows import log_odds, row_blocks
from dichotomies.calibrators.multiclass._likelihood import BestScale, Likelihood, best_scale
from dichotomies.calibrators.multiclass._scaling import ScalingObjective, Spread, best_spread
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies.calibrators.multiclass._calibration_rows import CalibrationRows

_ROUGHLY = 1e-3  # relative error of the common scale to start from
_ROUGH_TOL = 1e-4  # nats per row, before the prior is chosen again
_REFIT_STEPS = 2  # toward the optimum of slightly different rows


class _Start(NamedTuple):
    """Scale of temperature scaling and parameters, in the order of `ScalingObjective`, to start from."""

    unit: float
    x: FloatArray


class _VectorModel(MulticlassCalibrator):
    """Base of both models: ``softmax(w x + b)`` with x the log-probabilities or log-odds."""

    on: str
    scale_: FloatArray
    bias_: FloatArray

    def scores(self, x: FloatArray) -> FloatArray:
        """Return ``w x + b``."""
        if self.on == "log_odds":
            log_odds(x)
        x *= self.scale_
        x += self.bias_
        return x

    def slope_and_bias(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the scales and biases; None on log-odds."""
        return (self.scale_, self.bias_) if self.on == "log_proba" else None

    def _inputs(self, rows: CalibrationRows) -> CalibrationRows:
        if self.on not in ("log_proba", "log_odds"):
            raise ValueError(f"on must be 'log_proba' or 'log_odds', got {self.on!r}.")
        return rows.as_log_odds() if self.on == "log_odds" else rows

    def _keep(self, objective: ScalingObjective, x: FloatArray, n_iter: int, converged: bool) -> None:
        self.scale_, self.bias_ = objective.scale_and_bias(x)
        self.n_iter_, self.converged_ = n_iter, converged


@MULTICLASS.register("vector")
class VectorScaling(_VectorModel):
    """Vector scaling: a scale and a bias per class, shrunk toward temperature scaling.

    ``p'_c`` is proportional to ``exp(w_c log p_c + b_c)``. The prior is hierarchical: the w_c are normal
    around a common scale t, which is also fitted, and the b_c around 0, the two correlated. Their covariance
    is estimated by marginal likelihood at the temperature-scaling optimum, and again after the first fit.
    With few rows, or classes that do not differ, the result is temperature scaling; with many rows it
    approaches maximum likelihood. A class absent from the rows stays close to (t, 0).

    The fit is convex and starts at the temperature-scaling optimum with b = 0. Weights act as counts: they
    determine how strongly the prior regularises.

    Parameters
    ----------
    on : {"log_proba", "log_odds"}, default="log_proba"
        Input of the model: log p, or log p - log(1 - p).
    spread : tuple of two or three floats, default=None
        Standard deviations of w / t and b over the classes, and their correlation. None: estimated from the
        rows.
    tol : float, default=1e-6
        Stop when the predicted decrease is lower, in nats per row.
    max_iter : int, default=200
        Maximum number of iterations.
    n_jobs : int, default=None
        Number of threads for large problems; the result does not depend on it.

    Attributes
    ----------
    scale_, bias_ : ndarray of shape (n_classes,)
        The scales w and biases b.
    common_scale_ : float
        The scale t.
    spread_ : tuple of three floats
        Standard deviations and correlation used; the first as a fraction of `unit_`.
    unit_ : float
        The scale of temperature scaling.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger, *On Calibration of Modern Neural Networks*, ICML 2017; MacKay, *Bayesian
    interpolation*, 1992, for the choice of the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.multiclass import MULTICLASS
    >>> rng = np.random.default_rng(0)
    >>> log_proba = np.log(rng.dirichlet([1, 1, 1], size=500))
    >>> y = [rng.choice(3, p=p) for p in np.exp(log_proba)]
    >>> overconfident = 3 * log_proba
    >>> calibrator = MULTICLASS.create("vector").fit(overconfident, y)
    >>> calibrator.scale_.round(2)
    array([0.36, 0.36, 0.36])
    """

    _start: _Start | None = None

    def __init__(
        self,
        *,
        on: Literal["log_proba", "log_odds"] = "log_proba",
        spread: tuple[float, float] | tuple[float, float, float] | None = None,
        tol: float = 1e-6,
        max_iter: int = 200,
        n_jobs: int | None = None,
    ) -> None:
        self.on = on
        self.spread = spread
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Alternate between choosing the prior and fitting under it."""
        self._fit(Likelihood(self._inputs(rows), self.n_jobs))

    def fit_from(
        self,
        before: MulticlassCalibrator,
        columns: IntArray,
        log_proba: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> MulticlassCalibrator:
        """Fit as `fit` does, to nearly the same optimum, starting at a calibrator of similar rows."""
        if type(before) is type(self):
            deviations = np.stack([before.scale_ - before.common_scale_, before.bias_])
            known = np.where(columns >= 0, deviations[:, columns], 0.0)
            self._start = _Start(before.unit_, np.concatenate([[before.common_scale_], known.ravel()]))
        try:
            return self.fit(log_proba, y, sample_weight)
        finally:
            self.__dict__.pop("_start", None)

    def _fit(self, likelihood: Likelihood) -> None:
        objective, n_iter = _all_free(likelihood), 0
        near = 1.0 if self._start is None else self._start.unit
        unit = best_scale(objective.likelihood, tol=_ROUGHLY, start=near).scale
        x = np.concatenate([[unit], np.zeros(2 * self.n_classes_)])
        for i, tol in enumerate((max(self.tol, _ROUGH_TOL), self.tol)):
            stretch = self._weigh(objective, x) if i else 1.0
            x, unit = stretch * x, stretch * unit
            spread = Spread(*self.spread) if self.spread else _spread(objective, x, unit)
            objective.prior = spread.precision(unit=unit)
            if i == 0 and self._start is not None:
                x = self._start.x
            found = objective.minimum(x, tol=tol, max_iter=self.max_iter)
            x, n_iter = found.x, n_iter + found.n_iter
        self.common_scale_, self.unit_ = float(x[0]), float(unit)
        self.spread_ = (spread.scale, spread.bias, spread.correlation)
        self._keep(objective, x, n_iter, found.converged)

    def _weigh(self, objective: ScalingObjective, x: FloatArray) -> float:  # noqa: ARG002
        """Weigh the rows after a first fit `x`; return the factor of all scales that goes with it."""
        return 1.0

    def refits(self, rows: CalibrationRows, fold: IntArray) -> Iterator[tuple[BoolArray, FloatArray]]:
        """Refit to `rows` without each `fold` under the prior of this fit, a few steps from it."""
        likelihood = Likelihood(self._inputs(rows), self.n_jobs)
        weighed = likelihood.reweighted(self._weight(likelihood))
        start = np.concatenate([[self.common_scale_], self.scale_ - self.common_scale_, self.bias_])
        for f in np.unique(fold):
            own, others = likelihood.take(fold == f), _all_free(weighed.take(fold != f))
            others.prior = Spread(*self.spread_).precision(unit=self.unit_)
            x = start
            if not (fold == f).all():
                x = others.minimum(start, tol=self.tol, max_iter=_REFIT_STEPS).x
            yield fold == f, self._finished(own.log_proba(*others.scale_and_bias(x)))

    def _weight(self, likelihood: Likelihood) -> FloatArray:
        """Return the weights that the rows have in the fit."""
        weight: FloatArray = likelihood.rows.weight
        return weight

    def _finished(self, log_proba: FloatArray) -> FloatArray:
        """Return what becomes of normalised log-probabilities after scaling."""
        return log_proba


def _all_free(likelihood: Likelihood) -> ScalingObjective:
    """Return the objective with all parameters free, and a normal prior on t (mean 1, deviation 1)."""
    everything = np.ones(2 * likelihood.rows.shape[1] + 1, dtype=bool)
    return ScalingObjective(likelihood, everything, scale_prior=1.0)


def _spread(objective: ScalingObjective, x: FloatArray, unit: float) -> Spread:
    """Return the spread with the highest evidence at `x`, scales in units of the common one."""
    _, gradient, curvature = objective.data_part(x)
    units = np.array([[unit], [1.0]])
    by_block = np.array([[unit**2], [unit], [1.0]])
    return best_spread(
        x[1:].reshape(2, -1) / units, gradient[1:].reshape(2, -1) * units, curvature * by_block
    )


@MULTICLASS.register("vector-ml")
class VectorScalingML(_VectorModel):
    """Vector scaling by maximum likelihood: a scale and a bias per class; the paper's external calibration.

    ``p'_c`` is proportional to ``exp(w_c log p_c + b_c)``. It overfits with few rows per class; prefer the
    penalised form there. The fit is convex and starts at the temperature-scaling optimum t with b = 0.
    Classes absent from the rows keep (t, 0); the biases of the others are centred at 0.

    Parameters
    ----------
    on : {"log_proba", "log_odds"}, default="log_proba"
        Input of the model: log p, or log p - log(1 - p).
    tol : float, default=1e-8
        Stop when the predicted decrease is lower, in nats per row.
    max_iter : int, default=500
        Maximum number of iterations.
    n_jobs : int, default=None
        Number of threads for large problems; the result does not depend on it.

    Attributes
    ----------
    scale_, bias_ : ndarray of shape (n_classes,)
        The scales w and biases b.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger, *On Calibration of Modern Neural Networks*, ICML 2017; Leathart, Frank,
    Pfahringer & Holmes, *On the Calibration of Nested Dichotomies for Large Multiclass Tasks*.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.multiclass import MULTICLASS
    >>> rng = np.random.default_rng(0)
    >>> log_proba = np.log(rng.dirichlet([1, 1, 1], size=500))
    >>> y = np.array([rng.choice(3, p=p) for p in np.exp(log_proba)])
    >>> calibrator = MULTICLASS.create("vector-ml").fit(3 * log_proba, y)
    >>> expected = calibrator.predict_proba(3 * log_proba).sum(axis=0)
    >>> bool(np.allclose(expected, np.bincount(y), atol=0.1))
    True
    """

    def __init__(
        self,
        *,
        on: Literal["log_proba", "log_odds"] = "log_proba",
        tol: float = 1e-8,
        max_iter: int = 500,
        n_jobs: int | None = None,
    ) -> None:
        self.on = on
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Fit the parameters of the classes present."""
        likelihood = Likelihood(self._inputs(rows), self.n_jobs)
        objective, x = present_only(likelihood, best_scale(likelihood))
        objective.free[1 : self.n_classes_ + 1] = rows.class_weight > 0
        found = objective.minimum(x, tol=self.tol, max_iter=self.max_iter)
        self._keep(objective, found.x, found.n_iter, found.converged)
        # The likelihood of separated rows has no maximum.
        self.converged_ = self.converged_ and not self._separates(rows)

    def _separates(self, rows: CalibrationRows) -> bool:
        """Return True if every row's true class is the most probable one after calibration."""
        for part in row_blocks(*rows.shape):
            first = self.predict_log_proba(rows.block(part)).argmax(axis=1)
            if ((first != rows.codes[part]) & (rows.weight[part] > 0)).any():
                return False
        return True


def present_only(likelihood: Likelihood, start: BestScale) -> tuple[ScalingObjective, FloatArray]:
    """Return an unpenalised objective with free biases for the classes present, and its starting point."""
    present = likelihood.rows.class_weight > 0
    free = np.concatenate([np.zeros(len(present) + 1, dtype=bool), present])
    x = np.concatenate([[start.scale], np.zeros(2 * len(present))])
    return ScalingObjective(likelihood, free, centred=True), x
