"""The model ``softmax(w * x + b)`` with a scale and a bias per class: penalised likelihood, and its prior.

The covariance of the normal prior on the class parameters is chosen by maximum marginal likelihood (empirical
Bayes). Around any point the log-likelihood of one class's parameters is nearly quadratic, with gradient -g
and curvature H (2 x 2). Under a prior N(0, S) the evidence of that class is, up to a constant,
``(u' (S^-1 + H)^-1 u - log det(I + S H)) / 2`` with ``u = H theta - g``. Its sum over classes is maximised
over S. This needs no further fits and no folds; each trial is one pass over class-sized arrays, which is
cheap compared to one pass over the rows.

Smooth convex functions with block-diagonal curvature are minimised by preconditioned L-BFGS: the inverse of
the curvature blocks replaces the multiple of the identity that starts the two-loop recursion, so most steps
of length 1 are accepted, with one evaluation per iteration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import minimize

from dichotomies._common.typing import FloatArray

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray
    from dichotomies.calibrators.multiclass._likelihood import Likelihood

#: Multiplies by an approximate inverse Hessian.
Solve: TypeAlias = Callable[[FloatArray], FloatArray]

#: Maps parameters to value, gradient and approximate inverse Hessian.
Objective: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray, Solve]]

_MEMORY = 12
_SUFFICIENT = 1e-4
_HALVINGS = 20

#: Bounds on the standard deviations, from below, and on the correlation.
SMALLEST, CORRELATED = 1e-3, 0.98

# A row whose true class has probability near 0 has a large gradient but no curvature, so a Newton step would
# be far too long. This share of the row's maximum curvature is added to limit the step.
_DAMPING = 0.1

# Relative decrease of the evidence below which a better spread is not looked for.
_SPREAD_TOL = 1e-6

# The curvature is computed in this many first evaluations, and afterwards once in as many.
_CURVATURE_CALLS = 6


@dataclass
class Minimum:
    """Result of the minimisation."""

    x: FloatArray
    value: float
    n_iter: int
    converged: bool


@dataclass
class _Memory:
    """The last steps and the corresponding changes of the gradient."""

    pairs: deque[tuple[FloatArray, FloatArray, float]] = field(default_factory=lambda: deque(maxlen=_MEMORY))

    def add(self, step: FloatArray, change: FloatArray) -> None:
        product = float(step @ change)
        if product > 1e-14 * np.linalg.norm(step) * np.linalg.norm(change):
            self.pairs.append((step, change, 1 / product))

    def direction(self, gradient: FloatArray, solve: Solve) -> FloatArray:
        """Return the search direction by the two-loop recursion (Nocedal & Wright, algorithm 7.4)."""
        q = gradient.copy()
        factors = []
        for step, change, rho in reversed(self.pairs):
            factors.append(rho * float(step @ q))
            q -= factors[-1] * change
        r = solve(q)
        for (step, change, rho), factor in zip(self.pairs, reversed(factors), strict=True):
            r += (factor - rho * float(change @ r)) * step
        return -r


def minimise(objective: Objective, x: FloatArray, *, tol: float, noise: float, max_iter: int) -> Minimum:
    """Minimise from `x` until the predicted decrease is below `tol`.

    Parameters
    ----------
    objective : callable
        Returns value, gradient and preconditioner.
    tol : float
        In the unit of the objective: half the slope along the next search direction.
    noise : float
        Relative rounding error of a value; increases below it are accepted.
    max_iter : int
        Maximum number of iterations.

    Returns
    -------
    Minimum
    """
    memory = _Memory()
    value, gradient, solve = objective(x)
    for iteration in range(max_iter):
        direction = memory.direction(gradient, solve)
        gain = -float(gradient @ direction)
        if gain < 2 * tol:
            return Minimum(x, value, iteration, converged=True)
        found = _step(objective, x, value, direction, gain, noise)
        if found is None and memory.pairs:
            memory.pairs.clear()  # restart from the preconditioned gradient
            continue
        if found is None:
            # no lower value is distinguishable: converged if the predicted decrease is below rounding error
            return Minimum(x, value, iteration, converged=gain < 2 * max(tol, 10 * noise * abs(value)))
        step, value, new_gradient, solve = found
        memory.add(step, new_gradient - gradient)
        x, gradient = x + step, new_gradient
    return Minimum(x, value, max_iter, converged=False)


def _step(
    objective: Objective, x: FloatArray, value: float, direction: FloatArray, gain: float, noise: float
) -> tuple[FloatArray, float, FloatArray, Solve] | None:
    """Backtracking line search: return the first halved step with sufficient decrease, or None."""
    length = 1.0
    for _ in range(_HALVINGS):
        step = length * direction
        new_value, gradient, solve = objective(x + step)
        if new_value <= value - _SUFFICIENT * length * gain + noise * abs(value):
            return step, new_value, gradient, solve
        length /= 2
    return None


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
        self._last: tuple[FloatArray, Likelihood, tuple[float, FloatArray, FloatArray]] | None = None
        self._curvature = np.zeros((3, len(self.free) // 2))

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray, Solve]:
        """Return value, gradient and preconditioner."""
        fresh = self._calls < _CURVATURE_CALLS or self._calls % _CURVATURE_CALLS == 0
        self._calls += 1
        value, gradient, curvature = self.data_part(x, curvature=fresh)
        self._curvature = curvature if fresh else self._curvature
        penalty_gradient = self._penalty_gradient(x)
        gradient = np.where(self.free, gradient + penalty_gradient, 0.0)
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
        """Return the likelihood's value, gradient and (3, n_classes) curvature blocks (dd, db, bb).

        Without `curvature`, the blocks may be left at zero. The last answer is kept, for a fit that begins
        where the prior was chosen.
        """
        if self._last is not None and self._last[0] is x and self._last[1] is self.likelihood:
            return self._last[2]
        rows = self.likelihood.rows
        value, sums = self.likelihood.class_sums(*self.scale_and_bias(x), curvature=curvature)
        by_scale, by_bias = sums[1] - rows.own_sums, sums[0] - rows.class_weight
        if self.centred:
            by_bias -= by_bias[self._free_biases].mean()
        gradient = np.concatenate([[by_scale.sum()], by_scale, by_bias])
        answer = value, gradient, sums[[4, 3, 2]]
        self._last = (x, self.likelihood, answer) if curvature else None
        return answer

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

    def precision_slopes(self) -> FloatArray:
        """Derivatives of `precision` (columns) in the logarithms of the deviations and the correlation."""
        a, ab, b = self.precision()
        r, free = self.correlation, 1 - self.correlation**2
        off = -(1 + r**2) / (self.scale * self.bias * free**2)
        return np.array([[-2 * a, -ab, 0], [0, -ab, -2 * b], [2 * r * a / free, off, 2 * r * b / free]])


class Hyperprior(NamedTuple):
    """Exponential priors on the standard deviations, weak enough for a thousand rows to outweigh.

    Attributes
    ----------
    expected, largest : pair of floats
        Means, and upper bounds, of the deviations of scales and biases.
    """

    expected: tuple[float, float]
    largest: tuple[float, float]

    def nll(self, spread: Spread) -> float:
        """Return the negative log density, in nats; few rows must not support a wide spread."""
        nll = spread.scale / self.expected[0] + spread.bias / self.expected[1]
        return float(nll - np.log1p(-(spread.correlation**2)))

    def slopes(self, spread: Spread) -> FloatArray:
        """Return the derivatives of `nll` in the logarithms of the deviations and the correlation."""
        r = spread.correlation
        return np.array([spread.scale / self.expected[0], spread.bias / self.expected[1], 2 * r / (1 - r**2)])


#: Classes of one model differ little.
OF_CLASSES = Hyperprior(expected=(0.05, 0.3), largest=(0.3, 3.0))


def best_spread(
    theta: FloatArray, gradient: FloatArray, curvature: FloatArray, prior: Hyperprior = OF_CLASSES
) -> Spread:
    """Return the spread with the highest evidence.

    Parameters
    ----------
    theta : (2, n_classes)
        Scales minus the common one, and biases: the point of expansion.
    gradient : (2, n_classes)
        Gradient of the negative log-likelihood at that point.
    curvature : (3, n_classes)
        Second derivatives at that point: scale, scale-bias, bias.
    prior : Hyperprior
        Of the spread.

    Returns
    -------
    Spread
    """
    ww, wb, bb = curvature
    u_w = ww * theta[0] + wb * theta[1] - gradient[0]
    u_b = wb * theta[0] + bb * theta[1] - gradient[1]

    def negative_evidence(point: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and its gradient in the logarithms of the deviations and the correlation."""
        spread = _spread_at(point)
        a, ab, b = spread.precision()
        aa, aab, bbb = ww + a, wb + ab, bb + b
        det, prior_det = aa * bbb - aab**2, a * b - ab * ab
        mean_w, mean_b = (bbb * u_w - aab * u_b) / det, (aa * u_b - aab * u_w) / det
        evidence = float(np.sum(u_w * mean_w + u_b * mean_b - np.log(det / prior_det))) / 2
        by_precision = np.array(
            [
                np.sum(mean_w**2 + bbb / det - b / prior_det),
                np.sum(mean_w * mean_b - aab / det + ab / prior_det) * 2,
                np.sum(mean_b**2 + aa / det - a / prior_det),
            ]
        )
        gradient = spread.precision_slopes() @ by_precision / 2
        return prior.nll(spread) - evidence, gradient + prior.slopes(spread)

    grid = [(np.log(s), np.log(t), r) for s in (0.02, 0.2) for t in (0.05, 0.5) for r in (0, 0.8)]
    limits = [(SMALLEST, largest) for largest in prior.largest]
    bounds = [*np.log(limits).tolist(), (-CORRELATED, CORRELATED)]
    start = min(map(np.array, grid), key=lambda point: negative_evidence(point)[0])
    found = minimize(
        negative_evidence, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": _SPREAD_TOL}
    )
    return _spread_at(found.x)


def _spread_at(point: FloatArray) -> Spread:
    return Spread(float(np.exp(point[0])), float(np.exp(point[1])), float(point[2]))
