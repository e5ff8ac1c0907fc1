"""Vector scaling: a factor and a bias for each class's log-probability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from dichotomies.calibrators.multiclass._evaluation import Likelihood
from dichotomies.calibrators.multiclass._rows import log_odds, row_blocks
from dichotomies.calibrators.multiclass._scaling import ScalingObjective
from dichotomies.calibrators.multiclass._shrinkage import Spread, best_spread
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator
from dichotomies.calibrators.multiclass.temperature import BestScale, best_scale

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray
    from dichotomies.calibrators.multiclass._rows import CalibrationRows

_ROUNDS = 2  # of choosing the prior and fitting under it


class _VectorModel(MulticlassCalibrator):
    """What both forms share: ``softmax(w x + b)`` with x the log-probabilities or log-odds."""

    on: str
    scale_: FloatArray
    bias_: FloatArray

    def scores(self, x: FloatArray) -> FloatArray:
        """``w x + b``."""
        if self.on == "log_odds":
            log_odds(x)
        x *= self.scale_
        x += self.bias_
        return x

    def _inputs(self, rows: CalibrationRows) -> CalibrationRows:
        if self.on not in ("log_proba", "log_odds"):
            raise ValueError(f"on must be 'log_proba' or 'log_odds', got {self.on!r}.")
        return rows.as_log_odds() if self.on == "log_odds" else rows

    def _keep(self, objective: ScalingObjective, x: FloatArray, n_iter: int, converged: bool) -> None:
        self.scale_, self.bias_ = objective.scale_and_bias(x)
        self.n_iter_, self.converged_ = n_iter, converged


@MULTICLASS.register("vector")
class VectorScaling(_VectorModel):
    """A factor and a bias for each class, shrunk toward temperature scaling: the one to use by default.

    ``p'_c`` is proportional to ``exp(w_c log p_c + b_c)``. Classes are taken to be alike: the w_c are
    normally distributed around a common factor t, which is fitted too, and the b_c around 0, the two
    correlated. How far they spread is itself read off the rows, by the marginal likelihood of their
    covariance at the temperature-scaling optimum, and once more after the first fit. With few rows, or
    classes that do not differ, the result is temperature scaling; with many it approaches maximum
    likelihood. A class that is absent from the rows stays close to (t, 0).

    The fit starts at the temperature-scaling optimum with b = 0 and is convex. Rows count by their weight,
    so weights should be counts: they decide how strongly the prior is felt.

    Parameters
    ----------
    on : {"log_proba", "log_odds"}, default="log_proba"
        What is scaled: log p, or log p - log(1 - p).
    spread : tuple of two or three floats, default=None
        The standard deviations of w / t and b over the classes, and their correlation, instead of
        reading them off the rows.
    tol : float, default=1e-9
        The fit ends when the next step promises to gain less, in nats for each row.
    max_iter : int, default=200
        Iterations allowed.
    n_jobs : int, default=None
        Threads used on large problems; the result does not depend on it.

    Attributes
    ----------
    scale_, bias_ : ndarray of shape (n_classes,)
        The factors w and biases b.
    common_scale_ : float
        The factor t.
    spread_ : tuple of three floats
        The standard deviations and the correlation used; that of w as a fraction of t.

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
        tol: float = 1e-9,
        max_iter: int = 200,
        n_jobs: int | None = None,
    ) -> None:
        self.on = on
        self.spread = spread
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Choose the prior, fit under it, and choose and fit once more."""
        likelihood = Likelihood(self._inputs(rows), self.n_jobs)
        start = best_scale(likelihood)
        objective = _everything_free(likelihood)
        x = np.concatenate([[start.scale], np.zeros(2 * self.n_classes_)])
        n_iter = 0
        for _ in range(1 if self.spread else _ROUNDS):
            spread = Spread(*self.spread) if self.spread else _spread(objective, x, start.scale)
            objective.prior = spread.precision(unit=start.scale)
            found = objective.minimum(x, tol=self.tol, max_iter=self.max_iter)
            x, n_iter = found.x, n_iter + found.n_iter
        self.common_scale_ = float(x[0])
        self.spread_ = (spread.scale, spread.bias, spread.correlation)
        self._keep(objective, x, n_iter, found.converged)


def _everything_free(likelihood: Likelihood) -> ScalingObjective:
    """All parameters free; t drawn to 1 by a normal prior of standard deviation 1."""
    everything = np.ones(2 * likelihood.rows.shape[1] + 1, dtype=bool)
    return ScalingObjective(likelihood, everything, prior_of_scale=1.0)


def _spread(objective: ScalingObjective, x: FloatArray, unit: float) -> Spread:
    """The spread of highest evidence at `x`, factors counted in units of the common one."""
    _, gradient, curvature = objective.data_part(x)
    units = np.array([[unit], [1.0]])
    by_block = np.array([[unit**2], [unit], [1.0]])
    return best_spread(
        x[1:].reshape(2, -1) / units, gradient[1:].reshape(2, -1) * units, curvature * by_block
    )


@MULTICLASS.register("vector-ml")
class VectorScalingML(_VectorModel):
    """A factor and a bias for each class, by maximum likelihood: the paper's external calibration.

    ``p'_c`` is proportional to ``exp(w_c log p_c + b_c)``. It overfits where classes have few rows; prefer
    the penalised form there. The fit starts at the temperature-scaling optimum t with b = 0 and is convex.
    Classes that do not occur in the rows keep (t, 0); the biases of the others are centred at 0.

    Parameters
    ----------
    on : {"log_proba", "log_odds"}, default="log_proba"
        What is scaled: log p, or log p - log(1 - p).
    tol : float, default=1e-8
        The fit ends when the next step promises to gain less, in nats for each row.
    max_iter : int, default=500
        Iterations allowed.
    n_jobs : int, default=None
        Threads used on large problems; the result does not depend on it.

    Attributes
    ----------
    scale_, bias_ : ndarray of shape (n_classes,)
        The factors w and biases b.

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
        """Fit the parameters of the classes that occur."""
        likelihood = Likelihood(self._inputs(rows), self.n_jobs)
        objective, x = present_only(likelihood, best_scale(likelihood))
        objective.free[1 : self.n_classes_ + 1] = rows.class_weight > 0
        found = objective.minimum(x, tol=self.tol, max_iter=self.max_iter)
        self._keep(objective, found.x, found.n_iter, found.converged)
        # Where every row's own class comes first, larger parameters are always likelier.
        self.converged_ = self.converged_ and not self._separates(rows)

    def _separates(self, rows: CalibrationRows) -> bool:
        """Whether the own class of every row is the most probable one."""
        for part in row_blocks(*rows.shape):
            first = self.predict_log_proba(rows.block(part)).argmax(axis=1)
            if ((first != rows.codes[part]) & (rows.weight[part] > 0)).any():
                return False
        return True


def present_only(likelihood: Likelihood, start: BestScale) -> tuple[ScalingObjective, FloatArray]:
    """An unpenalised fit in which classes that occur have free biases; and where it starts."""
    present = likelihood.rows.class_weight > 0
    free = np.concatenate([np.zeros(len(present) + 1, dtype=bool), present])
    x = np.concatenate([[start.scale], np.zeros(2 * len(present))])
    return ScalingObjective(likelihood, free, centred=True), x
