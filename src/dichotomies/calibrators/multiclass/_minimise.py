"""Preconditioned L-BFGS for smooth convex functions with block-diagonal curvature.

The inverse of the curvature blocks replaces the multiple of the identity that starts the two-loop
recursion, so most steps of length 1 are accepted: one evaluation per iteration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from dichotomies._common.typing import FloatArray

#: Multiplies by an approximate inverse Hessian.
Solve: TypeAlias = Callable[[FloatArray], FloatArray]

#: Maps parameters to value, gradient and approximate inverse Hessian.
Objective: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray, Solve]]

_MEMORY = 12
_SUFFICIENT = 1e-4
_HALVINGS = 20


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
