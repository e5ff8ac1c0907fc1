"""Empirical Bayes: covariance of the normal prior on class parameters, by maximum marginal likelihood.

Around any point the log-likelihood of one class's parameters is nearly quadratic, with gradient -g and
curvature H (2 x 2). Under a prior N(0, S) the evidence of that class is, up to a constant,
``(u' (S^-1 + H)^-1 u - log det(I + S H)) / 2`` with ``u = H theta - g``. Its sum over classes is maximised
over S. This needs no further fits and no folds; each trial is one pass over class-sized arrays, which is
cheap compared to one pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray

#: Bounds on the standard deviations and the correlation.
SMALLEST, LARGEST_SCALE, LARGEST_BIAS, CORRELATED = 1e-3, 0.3, 3.0, 0.98

# Means of exponential hyperpriors on the standard deviations, weak enough for a thousand rows to outweigh.
_EXPECTED_SCALE, _EXPECTED_BIAS = 0.05, 0.3


@dataclass(frozen=True)
class Spread:
    """Standard deviations of scale and bias across classes, and their correlation.

    Scale and bias are correlated: log p is negative, so a class with a larger scale needs a larger bias to
    keep its probability. Independent priors would penalise that.
    """

    scale: float
    bias: float
    correlation: float = 0.0

    def precision(self, unit: float = 1.0) -> tuple[float, float, float]:
        """Return the inverse covariance (scale, scale-bias, bias), with scales in units of `unit`."""
        free = 1 - self.correlation**2
        scale = self.scale * unit
        off = -self.correlation / (scale * self.bias * free)
        return 1 / (scale**2 * free), off, 1 / (self.bias**2 * free)


def best_spread(theta: FloatArray, gradient: FloatArray, curvature: FloatArray) -> Spread:
    """Return the spread with the highest evidence.

    Parameters
    ----------
    theta : (2, n_classes)
        Scales minus the common one, and biases: the point of expansion.
    gradient : (2, n_classes)
        Gradient of the negative log-likelihood at that point.
    curvature : (3, n_classes)
        Second derivatives at that point: scale, scale-bias, bias.

    Returns
    -------
    Spread
    """
    ww, wb, bb = curvature
    u_w = ww * theta[0] + wb * theta[1] - gradient[0]
    u_b = wb * theta[0] + bb * theta[1] - gradient[1]

    def negative_evidence(point: FloatArray) -> float:
        a, ab, b = _spread_at(point).precision()
        det = (ww + a) * (bb + b) - (wb + ab) ** 2
        quadratic = ((bb + b) * u_w**2 - 2 * (wb + ab) * u_w * u_b + (ww + a) * u_b**2) / det
        evidence = float(np.sum(quadratic - np.log(det / (a * b - ab * ab)))) / 2
        return _hyperprior_nll(_spread_at(point)) - evidence

    grid = [(np.log(s), np.log(t), r) for s in (0.01, 0.1, 0.5) for t in (0.03, 0.3, 1) for r in (0, 0.8)]
    limits = [(SMALLEST, LARGEST_SCALE), (SMALLEST, LARGEST_BIAS)]
    bounds = [*np.log(limits).tolist(), (-CORRELATED, CORRELATED)]
    start = min(map(np.array, grid), key=negative_evidence)
    return _spread_at(minimize(negative_evidence, start, method="L-BFGS-B", bounds=bounds).x)


def _hyperprior_nll(spread: Spread) -> float:
    """Return the negative log density of the hyperprior, in nats; few rows must not support a wide spread."""
    nll = spread.scale / _EXPECTED_SCALE + spread.bias / _EXPECTED_BIAS
    return float(nll - np.log1p(-(spread.correlation**2)))


def _spread_at(point: FloatArray) -> Spread:
    return Spread(float(np.exp(point[0])), float(np.exp(point[1])), float(point[2]))
