"""Vector scaling: a scale and a bias for each class's log-probability."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dichotomies._common.array_api import like, log_softmax
from dichotomies.calibrators.multiclass._bend import Bend, best_bend
from dichotomies.calibrators.multiclass._device import log_odds as log_odds_on
from dichotomies.calibrators.multiclass._likelihood import (
    DOUBLE_UP_TO,
    LOWEST,
    BestScale,
    Likelihood,
    best_scale,
    log_odds,
    normalise,
    row_blocks,
)
from dichotomies.calibrators.multiclass._noise import best_noise, mix
from dichotomies.calibrators.multiclass._scaling import ScalingObjective, Spread, best_spread
from dichotomies.calibrators.multiclass.base import MULTICLASS, HeldOut, MulticlassCalibrator

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.calibrators.multiclass._likelihood import CalibrationRows

_ROUGHLY = 1e-3  # relative error of the common scale to start from
_ROUGH_TOL = 1e-4  # nats per row, before the prior is chosen again
_REFIT_STEPS = 2  # toward the optimum of slightly different rows
_STRETCH = 1.25  # of all scales, as long as that makes the rows likelier by so many nats:
_WORTH_STRETCHING = 1.0


class _VectorModel(MulticlassCalibrator):
    """Base of both models: ``softmax(w x + b)`` with x the log-probabilities or log-odds."""

    fits_on_device = True
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

    def device_scores(self, x: Any, xp: Any) -> Any:
        """Return ``w x + b`` of an array on a device."""
        x = log_odds_on(x, xp) if self.on == "log_odds" else x
        return x * like(self.scale_, x, xp) + like(self.bias_, x, xp)

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
    """Vector scaling: a scale and a bias per class, shrunk toward temperature scaling; the default.

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
        objective = _all_free(Likelihood(self._inputs(rows), self.n_jobs))
        unit = best_scale(objective.likelihood, tol=_ROUGHLY).scale
        x, n_iter = np.concatenate([[unit], np.zeros(2 * self.n_classes_)]), 0
        for i, tol in enumerate((max(self.tol, _ROUGH_TOL), self.tol)):
            stretch = self._weigh(objective, x) if i else 1.0
            x, unit = stretch * x, stretch * unit
            spread = Spread(*self.spread) if self.spread else _spread(objective, x, unit)
            objective.prior = spread.precision(unit=unit)
            found = objective.minimum(x, tol=tol, max_iter=self.max_iter)
            x, n_iter = found.x, n_iter + found.n_iter
        self.common_scale_, self.unit_ = float(x[0]), float(unit)
        self.spread_ = (spread.scale, spread.bias, spread.correlation)
        self._keep(objective, x, n_iter, found.converged)

    def _weigh(self, objective: ScalingObjective, x: FloatArray) -> float:  # noqa: ARG002
        """Weigh the rows after a first fit `x`; return the factor of all scales that goes with it."""
        return 1.0

    def held_out_on(self, rows: CalibrationRows, fold: IntArray) -> HeldOut:
        """Judge the rows by refits under the prior of this fit, a few steps from it."""
        inputs, found = self._weighed(self._inputs(rows)), HeldOut.empty(len(fold))
        start = np.concatenate([[self.common_scale_], self.scale_ - self.common_scale_, self.bias_])
        for f in np.unique(fold):
            own, others = inputs.take(fold == f), inputs.take(fold != f)
            objective = _all_free(Likelihood(others, self.n_jobs))
            objective.prior = Spread(*self.spread_).precision(unit=self.unit_)
            x = (
                objective.minimum(start, tol=self.tol, max_iter=_REFIT_STEPS).x
                if len(others.weight)
                else start
            )
            scale, bias = objective.scale_and_bias(x)
            found.put(fold == f, self._finished(normalise(own.dense() * scale + bias)), own.codes)
        return found

    def _weighed(self, inputs: CalibrationRows) -> CalibrationRows:
        """Return the rows with the weights that they have in the fit."""
        return inputs

    def _finished(self, log_proba: FloatArray) -> FloatArray:
        """Return what becomes of normalised log-probabilities after scaling."""
        return log_proba


@MULTICLASS.register("vector-odds")
class OddsScaling(VectorScaling):
    """Vector scaling of log-odds: `VectorScaling` with ``log p - log(1 - p)`` in place of log p; the default.

    ``p'_c`` is proportional to ``exp(w_c log(p_c / (1 - p_c)) + b_c)``. Probabilities of small classes
    change as by vector scaling; those near 1 are moved further, so that a model that is under-confident where
    it is nearly sure, as products of many nodes are, can be corrected without making it over-confident
    elsewhere.

    A bend common to all classes follows: log-probabilities become ``t log p + g p``. It keeps the order of
    the classes, and corrects rows that are nearly certain without changing the others.

    Some rows have a class that the scores say nothing about: wrong labels, rows unlike any other. Their
    share e is estimated together with the scales, so that they do not lower these, and probabilities become
    ``(1 - e) p + e / k``. By Laplace's rule e is at least 1 / (n + 2) after n rows, a bound on probabilities
    that the rows give no evidence for.

    Parameters
    ----------
    spread, tol, max_iter, n_jobs
        See `VectorScaling`.

    Attributes
    ----------
    bend_ : tuple of two floats
        t and g of the bend.
    noise_ : float
        The share e.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.multiclass import MULTICLASS
    >>> rng = np.random.default_rng(0)
    >>> log_proba = np.log(rng.dirichlet([1, 1, 1], size=500))
    >>> y = [rng.choice(3, p=p) for p in np.exp(log_proba)]
    >>> MULTICLASS.create("vector-odds").fit(3 * log_proba, y).scale_.round(1)
    array([0.3, 0.3, 0.3])
    """

    fits_on_device = False

    def __init__(
        self,
        *,
        spread: tuple[float, float] | tuple[float, float, float] | None = None,
        tol: float = 1e-5,
        max_iter: int = 200,
        n_jobs: int | None = None,
    ) -> None:
        self.spread = spread
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @property
    def on(self) -> str:  # type: ignore[override]
        """Input of the model."""
        return "log_odds"

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Fit as vector scaling does, weighing rows, then find the bend and the share of noise."""
        super().fit_rows(rows)
        inputs = self._inputs(rows)
        scaled = np.empty(inputs.shape, np.float32 if inputs.raw.size > DOUBLE_UP_TO else np.float64)
        for part in row_blocks(*inputs.shape):
            scaled[part] = normalise(inputs.block(part) * self.scale_ + self.bias_)
        self.bend_ = tuple(best_bend(scaled, rows.codes, self._weighed(inputs).weight))
        for part in row_blocks(*inputs.shape):
            self.bend.apply(scaled[part])
        own = scaled[np.arange(len(scaled)), rows.codes]
        self.noise_ = best_noise(own, rows.weight, self.n_classes_).share

    def _weigh(self, objective: ScalingObjective, x: FloatArray) -> float:
        """Weigh rows by the probability that the scores bear on them; noise has made the scales too low."""
        likelihood, weight = objective.likelihood, objective.likelihood.rows.weight
        scale, bias = objective.scale_and_bias(x)
        stretch = 1.0
        best = best_noise(likelihood.own_log_proba(scale, bias), weight, len(scale))
        while True:
            scale, bias = _STRETCH * scale, _STRETCH * bias
            found = best_noise(likelihood.own_log_proba(scale, bias), weight, len(scale))
            if found.log_posterior < best.log_posterior + _WORTH_STRETCHING:
                break
            best, stretch = found, _STRETCH * stretch
        objective.likelihood = likelihood.reweighted(weight * best.trust)
        return stretch

    def _weighed(self, inputs: CalibrationRows) -> CalibrationRows:
        own = Likelihood(inputs, self.n_jobs).own_log_proba(self.scale_, self.bias_)
        return replace(inputs, weight=inputs.weight * best_noise(own, inputs.weight, self.n_classes_).trust)

    def _inputs(self, rows: CalibrationRows) -> CalibrationRows:
        return rows.as_log_odds()

    def scores(self, x: FloatArray) -> FloatArray:
        """Return the logarithms of ``softmax(w x + b)``, x the log-odds, bent and mixed with noise."""
        return self._finished(normalise(super().scores(np.maximum(x, self.floor, out=x))))

    @property
    def floor(self) -> float:
        """Lower bound of log-probabilities, in files of version 0.2."""
        return float(getattr(self, "floor_", LOWEST))

    @property
    def bend(self) -> Bend:
        """The bend; none in files of earlier versions."""
        return Bend(*getattr(self, "bend_", ()))

    @property
    def noise(self) -> float:
        """The share of noise; none in files of earlier versions."""
        return float(getattr(self, "noise_", 0.0))

    def _finished(self, log_proba: FloatArray) -> FloatArray:
        return mix(self.bend.apply(log_proba), self.noise)

    def device_scores(self, x: Any, xp: Any) -> Any:
        """Return `scores` of an array on a device."""
        log_proba = log_softmax(super().device_scores(xp.clip(x, self.floor, None), xp), xp)
        bent = self.bend.exponent * log_proba + self.bend.sharpness * xp.exp(log_proba)
        if not self.noise:
            return bent
        return xp.log((1 - self.noise) * xp.exp(log_softmax(bent, xp)) + self.noise / self.n_classes_)


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
