"""How far classes differ from one another: the covariance of a normal prior, by its marginal likelihood.

Around any point the log-likelihood of one class's parameters is nearly quadratic, with gradient -g and
curvature H (2 x 2). Under a prior N(0, S) the evidence of that class is, up to a constant,
``(u' (S^-1 + H)^-1 u - log det(I + S H)) / 2`` with ``u = H theta - g``. Its sum over classes is maximised
over S. That needs no fit beyond the one at hand, no folds, and one pass of class-sized arrays for each
trial: it is cheap next to one pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray

#: Standard deviations and correlations are kept in these ranges.
SMALLEST, LARGEST_SCALE, LARGEST_BIAS, CORRELATED = 1e-3, 0.3, 3.0, 0.98

# Before the rows have spoken: exponential with these means, in nats that a thousand rows easily outvote.
_EXPECTED_SCALE, _EXPECTED_BIAS = 0.05, 0.3


@dataclass(frozen=True)
class Spread:
    """Standard deviations, over the classes, of scale and bias, and their correlation.

    Biases go with scales: log p is negative, so a class with a larger factor needs a larger bias to be as
    probable as before. Independent priors would forbid just that.
    """

    scale: float
    bias: float
    correlation: float = 0.0

    def precision(self, unit: float = 1.0) -> tuple[float, float, float]:
        """The inverse covariance: by scale, by scale and bias, by bias; scales counted in `unit`."""
        free = 1 - self.correlation**2
        scale = self.scale * unit
        off = -self.correlation / (scale * self.bias * free)
        return 1 / (scale**2 * free), off, 1 / (self.bias**2 * free)


def best_spread(theta: FloatArray, gradient: FloatArray, curvature: FloatArray) -> Spread:
    """The spread of highest evidence.

    Parameters
    ----------
    theta : (2, n_classes)
        Scales less the common one, and biases: where the likelihood was expanded.
    gradient : (2, n_classes)
        Of the negative log-likelihood there.
    curvature : (3, n_classes)
        Its second derivatives: by scale, by scale and bias, by bias.

    Returns
    -------
    Spread
    """
    ww, wb, bb = curvature
    u_w = ww * theta[0] + wb * theta[1] - gradient[0]
    u_b = wb * theta[0] + bb * theta[1] - gradient[1]

    def negative_evidence(point: FloatArray) -> float:
        a, ab, b = _read(point).precision()
        det = (ww + a) * (bb + b) - (wb + ab) ** 2
        quadratic = ((bb + b) * u_w**2 - 2 * (wb + ab) * u_w * u_b + (ww + a) * u_b**2) / det
        evidence = float(np.sum(quadratic - np.log(det / (a * b - ab * ab)))) / 2
        return _doubt(_read(point)) - evidence

    grid = [(np.log(s), np.log(t), r) for s in (0.01, 0.1, 0.5) for t in (0.03, 0.3, 1) for r in (0, 0.8)]
    limits = [(SMALLEST, LARGEST_SCALE), (SMALLEST, LARGEST_BIAS)]
    bounds = [*np.log(limits).tolist(), (-CORRELATED, CORRELATED)]
    start = min(map(np.array, grid), key=negative_evidence)
    return _read(minimize(negative_evidence, start, method="L-BFGS-B", bounds=bounds).x)


def _doubt(spread: Spread) -> float:
    """How implausible a spread is beforehand, in nats: few rows shall not argue for a wide one."""
    doubt = spread.scale / _EXPECTED_SCALE + spread.bias / _EXPECTED_BIAS
    return float(doubt - np.log1p(-(spread.correlation**2)))


def _read(point: FloatArray) -> Spread:
    return Spread(float(np.exp(point[0])), float(np.exp(point[1])), float(point[2]))
