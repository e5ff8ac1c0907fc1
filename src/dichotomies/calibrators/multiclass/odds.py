"""Vector scaling of log-odds, followed by a bend, with a share of rows that the scores say nothing about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies.calibrators.multiclass._bend import Bend, best_bend
from dichotomies.calibrators.multiclass._calibration_rows import LOWEST, normalise, row_blocks
from dichotomies.calibrators.multiclass._likelihood import Likelihood
from dichotomies.calibrators.multiclass._noise import best_noise, mix
from dichotomies.calibrators.multiclass.base import MULTICLASS
from dichotomies.calibrators.multiclass.vector import VectorScaling

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray
    from dichotomies.calibrators.multiclass._calibration_rows import CalibrationRows
    from dichotomies.calibrators.multiclass._scaling import ScalingObjective

_UNTRUSTED = 0.5  # share of noise of rows unlike those fitted to, by Laplace's rule: none of them was seen
_STRETCH = 1.25  # of all scales, as long as that makes the rows likelier by so many nats:
_WORTH_STRETCHING = 1.0
_MOST_BENT = 2**21  # rows times classes that the bend is fitted to: they are many for its two numbers


@MULTICLASS.register("vector-odds")
class OddsScaling(VectorScaling):
    """Vector scaling of log-odds: `VectorScaling` with ``log p - log(1 - p)`` in place of log p.

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

    A new row may be unlike all rows fitted to: a feature a thousand standard deviations away makes any
    linear model certain, and tells nothing. Where a log-probability is lower than the lowest of those
    rows, by more than extremes of n values vary (about 1 / log n of them), e is one half.

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
    lowest_ : float
        Rows with lower log-probabilities are unlike those fitted to.

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
        likelihood = Likelihood(self._inputs(rows), self.n_jobs)
        self._fit(likelihood)
        mine = np.arange(len(rows.codes)), rows.codes
        scaled = likelihood.log_proba(self.scale_, self.bias_)
        trust = best_noise(scaled[mine], rows.weight, self.n_classes_).trust
        some = slice(None, None, -(-scaled.size // _MOST_BENT))
        self.bend_ = tuple(best_bend(scaled[some], rows.codes[some], (rows.weight * trust)[some]))
        for part in row_blocks(*rows.shape):
            self.bend.apply(scaled[part])
        self.noise_ = best_noise(scaled[mine], rows.weight, self.n_classes_).share
        self.lowest_ = _lowest(rows)

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

    def _weight(self, likelihood: Likelihood) -> FloatArray:
        weight: FloatArray = likelihood.rows.weight
        own = likelihood.own_log_proba(self.scale_, self.bias_)
        return weight * best_noise(own, weight, self.n_classes_).trust

    def _inputs(self, rows: CalibrationRows) -> CalibrationRows:
        return rows.as_log_odds()

    def scores(self, x: FloatArray) -> FloatArray:
        """Return the logarithms of ``softmax(w x + b)``, x the log-odds, bent and mixed with noise."""
        is_unlike = x.min(axis=1, keepdims=True) < self.lowest
        scaled = normalise(super().scores(np.maximum(x, self.floor, out=x)))
        return mix(self.bend.apply(scaled), np.where(is_unlike, self.most_noise, self.noise))

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

    @property
    def most_noise(self) -> float:
        """The share of noise of rows unlike those fitted to."""
        return max(_UNTRUSTED, self.noise)

    @property
    def lowest(self) -> float:
        """Lowest log-probability of rows like those fitted to; none in files of earlier versions."""
        return float(getattr(self, "lowest_", -np.inf))

    def _finished(self, log_proba: FloatArray) -> FloatArray:
        return mix(self.bend.apply(log_proba), self.noise)


def _lowest(rows: CalibrationRows) -> float:
    """Return the lowest log-probability, and as much lower as the extremes of so many values vary."""
    counts = rows.weight > 0
    parts = [rows.block(part)[counts[part]].min(initial=0.0) for part in row_blocks(*rows.shape)]
    return float(np.min(parts) * (1 + 1 / np.log(max(3, int(counts.sum())))))
