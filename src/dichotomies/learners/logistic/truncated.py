"""Truncated Newton steps by preconditioned conjugate gradients, for nodes with many rows, in plain numpy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dichotomies._kernels.newton.loss import FLATTEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies._kernels.newton.node import Objective

    Solve = Callable[[FloatArray], FloatArray]

#: Error of the parameters at scikit-learn's default tol, in the norm of the Hessian, as a part of them; in
#: proportion to tol otherwise. It leaves an objective several times nearer to the optimum than scikit-learn's
#: solvers do. A diagonal preconditioner underestimates it.
_ACCURACY, _DIAGONAL_ACCURACY = 1e-3, 5e-4

_MAX_PRODUCTS = 250
_SMALLEST_STEP = 2.0**-60
_NEGLIGIBLE = 1e-12  # decrease, as a part of the objective, that rounding errors may hide

#: A preconditioner is made of this many rows per feature, and of all rows where there are few features.
_ROWS_PER_FEATURE, _FEW_FEATURES = 6, 64

#: Features beyond which only the diagonal of the Hessian is used.
_MOST_FEATURES = 2048


@dataclass
class Rows:
    """The rows of a node, dense or sparse, and a constant feature for the intercept.

    Attributes
    ----------
    X : (n, p)
    penalty : (p + 1,)
        Of each parameter, the intercept's last.
    has_intercept : bool
        Otherwise it stays 0.
    """

    X: Any
    penalty: FloatArray
    has_intercept: bool

    @classmethod
    def of(cls, X: Any, objective: Objective) -> Rows:
        """Take the penalties from an objective."""
        penalty = np.ones(X.shape[1] + 1)
        if objective.free_intercept:
            penalty[-1] = 0.0
        elif objective.intercept_scale > 0.0:
            penalty[-1] = 1.0 / objective.intercept_scale**2
        return cls(X, penalty, objective.free_intercept or objective.intercept_scale > 0.0)

    @cached_property
    def transposed(self) -> Any:
        """Features as rows."""
        return self.X.T

    @property
    def is_diagonal(self) -> bool:
        """True if the preconditioner is no more than a diagonal."""
        return not isinstance(self.X, np.ndarray) or len(self.penalty) > _MOST_FEATURES

    def scores(self, theta: FloatArray) -> FloatArray:
        """``X w + b``."""
        return np.asarray(self.X @ theta[:-1].astype(self.X.dtype) + theta[-1], dtype=np.float64)

    def sums(self, rows: FloatArray) -> FloatArray:
        """Sum of the rows times a number each, the last entry that of the constant feature."""
        last = rows.sum() if self.has_intercept else 0.0
        return np.append(self.transposed @ rows.astype(self.X.dtype), last).astype(np.float64)

    def preconditioner(self, curve: FloatArray) -> Solve:
        """Solve with the Cholesky factor of a sampled Hessian, or with the diagonal of the Hessian.

        Neighbouring rows are of one class, so that every so many-th row has its share of every class.
        """
        if not self.is_diagonal:
            n, p = self.X.shape
            stride = max(1, n // max(_ROWS_PER_FEATURE * p, _FEW_FEATURES * n // p))
            sampled = self.X[::stride].astype(np.float64)
            root = np.sqrt(curve[::stride] * stride)
            sampled = np.c_[sampled, np.full(len(sampled), float(self.has_intercept))] * root[:, None]
            hessian = sampled.T @ sampled
            hessian.flat[:: p + 2] += np.where(self.has_intercept | (np.arange(p + 1) < p), self.penalty, 1.0)
            try:
                factor = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
                return lambda x: cho_solve(factor, x, check_finite=False)
            except LinAlgError:
                pass
        squares = self.X * self.X if isinstance(self.X, np.ndarray) else self.X.multiply(self.X)
        diagonal = np.append(squares.T @ curve, curve.sum()) + self.penalty
        return lambda x: x / diagonal


def _evaluate(z: FloatArray, y: FloatArray, cost: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """The loss, minus its derivatives by the scores, and the curvatures."""
    margin = y * z
    tail = np.exp(-np.abs(margin))
    likelier = 1.0 / (1.0 + tail)
    loss = cost @ (np.maximum(-margin, 0.0) + np.log1p(tail))
    slope = cost * y * np.where(margin >= 0.0, tail * likelier, likelier)
    return float(loss), slope, cost * np.maximum(tail * likelier * likelier, FLATTEST)


def _conjugate_gradients(
    rows: Rows, curve: FloatArray, precondition: Solve, residual: FloatArray, enough: float
) -> tuple[FloatArray, FloatArray, int]:
    """Solve ``(X' D X + penalty) step = residual`` until ``residual' M^-1 residual <= enough``.

    Returns the step, its scores ``X step`` and the number of products.
    """
    step, scores = np.zeros_like(residual), np.zeros(len(curve))
    direction = better = precondition(residual)
    energy = residual @ better
    n_products, is_near = 0, False
    while not is_near and n_products < _MAX_PRODUCTS:
        n_products += 1
        along = rows.scores(direction)
        image = rows.sums(curve * along) + rows.penalty * direction
        size = energy / (direction @ image)
        step += size * direction
        scores += size * along
        residual = residual - size * image
        better = precondition(residual)
        last, energy = energy, residual @ better
        is_near = not energy > enough
        direction = better + energy / last * direction
    return step, scores, n_products


def _refresh_after(rows: Rows) -> float:
    """Products of a step after which it pays to make a preconditioner anew; one costs this many products."""
    if rows.is_diagonal:
        return 0.0
    n, p = rows.X.shape
    return float(1.5 + (min(n, 64 * n / p + 8 * p) * p / 40.0 + p * p / 60.0) / n)


@dataclass
class OneNode:
    """The members of one node, which start from the preconditioner of the one before."""

    rows: Rows
    y: FloatArray
    objective: Objective
    precondition: Solve | None = None

    def solve(self, own: IntArray, cost: FloatArray, theta: FloatArray) -> tuple[FloatArray, IntArray]:
        """Improve the parameters; see `Solver`."""
        if not len(own):
            return np.empty((0, len(self.y))), np.empty(0, dtype=np.intp)
        z, n_steps = self._minimum(cost[0], theta[0])
        return z[None], np.array([n_steps])

    def _minimum(self, cost: FloatArray, theta: FloatArray) -> tuple[FloatArray, int]:
        """Improve `theta` (p + 1,) in place up to the optimum; rows of `cost` (n,) 0 are only scored.

        Returns the rows' scores and the number of steps: the last gradient counts as one; negative, or 0,
        where the optimum was not reached.
        """
        rows, y, objective = self.rows, self.y, self.objective
        accuracy = (_DIAGONAL_ACCURACY if rows.is_diagonal else _ACCURACY) * min(1.0, objective.tol / 1e-4)
        z = rows.scores(theta)
        loss, slope, curve = _evaluate(z, y, cost)
        tolerance, expensive = objective.tol * cost.sum(), _refresh_after(rows)
        n_products = _MAX_PRODUCTS if self.precondition is None else 0
        first_energy, stalled = 0.0, 0
        for iteration in range(objective.max_iter + 1):
            gradient = rows.sums(slope) - rows.penalty * theta
            if self.precondition is None or n_products > expensive:
                self.precondition = rows.preconditioner(curve)
            energy = float(gradient @ self.precondition(gradient))
            target = accuracy**2 * float(theta[:-1] @ theta[:-1] + 1e-2 * min(1.0, curve.sum()))
            if (np.abs(gradient).max() <= tolerance and energy <= target) or stalled >= 2:
                return z, iteration + 1
            if iteration == objective.max_iter:
                break
            first_energy = max(first_energy, energy)
            forcing = min(1e-2, max(1e-6, energy / first_energy))
            step, change, n_products = _conjugate_gradients(
                rows, curve, self.precondition, gradient, max(forcing * energy, 0.3 * target)
            )
            gain, before = gradient @ step, loss + 0.5 * (rows.penalty * theta) @ theta
            size, is_negligible = 1.0, gain <= _NEGLIGIBLE * before
            while size > _SMALLEST_STEP and not is_negligible:
                moved = theta + size * step
                after = _evaluate(z + size * change, y, cost)[0] + 0.5 * (rows.penalty * moved) @ moved
                if after <= before - 1e-4 * size * gain:
                    break
                size *= 0.5
            if size <= _SMALLEST_STEP:
                return z, -iteration - 1
            stalled += bool(is_negligible)
            theta += size * step
            z += size * change
            loss, slope, curve = _evaluate(z, y, cost)
        return z, -objective.max_iter
