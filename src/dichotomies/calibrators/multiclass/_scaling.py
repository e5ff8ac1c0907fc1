"""The model ``softmax(w * x + b)``, with a scale and a bias per class, fitted by ML or penalised ML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dichotomies.calibrators.multiclass._minimise import Minimum, Solve, minimise

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray
    from dichotomies.calibrators.multiclass._evaluation import Likelihood
# A row whose true class has probability near 0 has a large gradient but no curvature, so a Newton step would
# be far too long. This share of the row's maximum curvature is added to limit the step.
_DAMPING = 0.1

# The curvature is computed in this many first evaluations, and afterwards once in as many.
_CURVATURE_CALLS = 6


@dataclass
class ScalingObjective:
    """Penalised negative log-likelihood in ``w = t + d`` and b; parameters in the order t, d, b.

    Parameters
    ----------
    likelihood : Likelihood
    free : (2 n_classes + 1,)
        Mask of the parameters to fit; the others stay fixed.
    centred : bool
        Centre the free biases at their mean. Otherwise, if some biases are fixed, the free ones could grow
        together without bound and drive the probability of the fixed classes to 0.
    scale_prior : float
        Precision of the normal prior on t, with mean 1.
    prior : tuple of three floats
        Precision of the normal prior on (d, b), with mean 0: entries dd, db and bb.
    """

    likelihood: Likelihood
    free: BoolArray
    centred: bool = False
    scale_prior: float = 0.0
    prior: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        self._calls = 0
        self._curvature = np.zeros((3, len(self.free) // 2))

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray, Solve]:
        """Return value, gradient and preconditioner."""
        fresh = self._calls < _CURVATURE_CALLS or self._calls % _CURVATURE_CALLS == 0
        self._calls += 1
        value, gradient, curvature = self.data_part(x, curvature=fresh)
        self._curvature = curvature if fresh else self._curvature
        penalty_gradient = self._penalty_gradient(x)
        gradient += penalty_gradient
        gradient[~self.free] = 0.0
        deviation = x.copy()
        deviation[0] -= 1.0
        return (
            value + 0.5 * float(penalty_gradient @ deviation),
            gradient,
            self._preconditioner(self._curvature),
        )

    def _penalty_gradient(self, x: FloatArray) -> FloatArray:
        """Return the gradient of the quadratic penalty: precision times deviation."""
        d, b = x[1:].reshape(2, -1)
        dd, db, bb = self.prior
        return np.concatenate([[self.scale_prior * (x[0] - 1.0)], dd * d + db * b, db * d + bb * b])

    def data_part(self, x: FloatArray, *, curvature: bool = True) -> tuple[float, FloatArray, FloatArray]:
        """Return the likelihood's value, gradient and (3, n_classes) curvature blocks (dd, db, bb)."""
        rows = self.likelihood.rows
        value, sums = self.likelihood.class_sums(*self.scale_and_bias(x), curvature=curvature)
        by_scale, by_bias = sums[1] - rows.own_sums, sums[0] - rows.class_weight
        if self.centred:
            by_bias -= by_bias[self._free_biases].mean()
        gradient = np.concatenate([[by_scale.sum()], by_scale, by_bias])
        return value, gradient, sums[[4, 3, 2]]

    def scale_and_bias(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the scale and bias of each class."""
        d, b = x[1:].reshape(2, -1)
        if self.centred:
            b = np.where(self._free_biases, b - b[self._free_biases].mean(), b)
        return x[0] + d, b

    @property
    def _free_biases(self) -> BoolArray:
        return self.free[1 + len(self.free) // 2 :]

    def _preconditioner(self, curvature: FloatArray) -> Solve:
        """Return the solver with the curvature of t and the 2 x 2 block of each class."""
        k = len(self.free) // 2
        curvature = curvature + _DAMPING * self.likelihood.rows.own_blocks
        of_t = curvature[0].sum() + self.scale_prior
        dd, db, bb = curvature + np.array(self.prior)[:, None]
        db[~(self.free[1 : k + 1] & self.free[k + 1 :])] = 0.0
        # keeps the blocks invertible for a class with one row or constant entries
        dd += 1e-4 * dd + 1e-6
        bb += 1e-4 * bb + 1e-6
        det = dd * bb - db * db

        def solve(g: FloatArray) -> FloatArray:
            g_d, g_b = g[1 : k + 1], g[k + 1 :]
            result = np.concatenate([[g[0] / of_t], (bb * g_d - db * g_b) / det, (dd * g_b - db * g_d) / det])
            result[~self.free] = 0.0
            return result

        return solve

    def minimum(self, x: FloatArray, *, tol: float, max_iter: int) -> Minimum:
        """Minimise from `x`; `tol` in nats per row."""
        noise = self.likelihood.noise
        total = self.likelihood.rows.total_weight
        least = max(tol, noise / 10) if self.likelihood.single else tol
        return minimise(self, x, tol=least * total, noise=noise, max_iter=max_iter)
