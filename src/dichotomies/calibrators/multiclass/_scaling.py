"""One scale and one bias for each class: the model ``softmax(w * x + b)`` and its fit, ML or penalised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dichotomies.calibrators.multiclass._minimise import Minimum, Solve, minimise

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray
    from dichotomies.calibrators.multiclass._evaluation import Likelihood
# A row whose own class is thought impossible pulls with all its weight but has no curvature, and Newton's
# step would be far too long. This share of what the row's curvature could be keeps steps in proportion.
_DAMPING = 0.1

# Curvature is looked at in this many evaluations, and after that once in so many.
_OFTEN = 6


@dataclass
class ScalingObjective:
    """Negative log-likelihood, plus penalties, of ``w = t + d`` and b; parameters in the order t, d, b.

    Parameters
    ----------
    likelihood : Likelihood
    free : (2 n_classes + 1,)
        Parameters to fit; the others stay where they are.
    centred : bool
        Whether the free biases are counted from their mean. Otherwise all of them together could grow for
        ever where some are not free, to make those classes impossible.
    prior_of_scale : float
        Precision of the normal prior that draws t to 1.
    prior : tuple of three floats
        Precision of the normal prior that draws d and b to 0: by d, by d and b, by b.
    """

    likelihood: Likelihood
    free: BoolArray
    centred: bool = False
    prior_of_scale: float = 0.0
    prior: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        self._calls = 0
        self._curvature = np.zeros((3, len(self.free) // 2))

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray, Solve]:
        """Value, gradient and preconditioner."""
        fresh = self._calls < _OFTEN or self._calls % _OFTEN == 0
        self._calls += 1
        value, gradient, curvature = self.data_part(x, curvature=fresh)
        self._curvature = curvature if fresh else self._curvature
        pull = self._pull(x)
        gradient += pull
        gradient[~self.free] = 0.0
        deviation = x.copy()
        deviation[0] -= 1.0
        return value + 0.5 * float(pull @ deviation), gradient, self._preconditioner(self._curvature)

    def _pull(self, x: FloatArray) -> FloatArray:
        """Gradient of the penalty, which is quadratic: the precision times the deviation."""
        d, b = x[1:].reshape(2, -1)
        dd, db, bb = self.prior
        return np.concatenate([[self.prior_of_scale * (x[0] - 1.0)], dd * d + db * b, db * d + bb * b])

    def data_part(self, x: FloatArray, *, curvature: bool = True) -> tuple[float, FloatArray, FloatArray]:
        """The likelihood's value, gradient and (3, n_classes) curvature blocks (dd, db, bb)."""
        rows = self.likelihood.rows
        value, sums = self.likelihood.class_sums(*self.scale_and_bias(x), curvature=curvature)
        by_scale, by_bias = sums[1] - rows.own_sums, sums[0] - rows.class_weight
        if self.centred:
            by_bias -= by_bias[self._free_biases].mean()
        gradient = np.concatenate([[by_scale.sum()], by_scale, by_bias])
        return value, gradient, sums[[4, 3, 2]]

    def scale_and_bias(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What the parameters mean for each class."""
        d, b = x[1:].reshape(2, -1)
        if self.centred:
            b = np.where(self._free_biases, b - b[self._free_biases].mean(), b)
        return x[0] + d, b

    @property
    def _free_biases(self) -> BoolArray:
        return self.free[1 + len(self.free) // 2 :]

    def _preconditioner(self, curvature: FloatArray) -> Solve:
        """Divide by the curvature of t, and by the 2 x 2 block of each class."""
        k = len(self.free) // 2
        curvature = curvature + _DAMPING * self.likelihood.rows.own_blocks
        of_t = curvature[0].sum() + self.prior_of_scale
        dd, db, bb = curvature + np.array(self.prior)[:, None]
        db[~(self.free[1 : k + 1] & self.free[k + 1 :])] = 0.0
        # a little off singular: a class of one row, or one whose entries are all alike
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
        """The optimum, from `x`; `tol` in nats for each row."""
        noise = self.likelihood.noise
        total = self.likelihood.rows.total_weight
        least = max(tol, noise / 10) if self.likelihood.single else tol
        return minimise(self, x, tol=least * total, noise=noise, max_iter=max_iter)
