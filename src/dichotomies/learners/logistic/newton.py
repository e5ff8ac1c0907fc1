"""Newton's method for several logistic regressions at once, in plain numpy: no compiler is needed.

Each problem has a matrix of second derivatives and takes its own steps; arrays hold the problems side by
side. Where the rows of a node are fewer than its features, they are first turned into as many coordinates as
there are rows (a QR decomposition), which changes neither scores nor lengths of weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._kernels.newton.loss import FLATTEST

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies._kernels.newton.node import Objective
    from dichotomies.learners.logistic.training import Members

#: Error of the parameters at scikit-learn's default tol, in the norm of the Hessian, as a part of them.
_ACCURACY = 1e-5
_SMALLEST_STEP = 2.0**-60
_NEGLIGIBLE = 1e-12  # decrease, as a part of the objective, that rounding errors may hide

#: Numbers of the rows, or the matrices, of nodes that are solved together.
_BATCH_SIZE = 2**20

#: Nodes whose numbers of rows differ by up to this factor are solved together.
_PADDING = 1.3


def batches(which: IntArray, n_rows: IntArray, n_features: int) -> list[IntArray]:
    """Cut nodes into batches of about the same number of rows that fit into a core's cache."""
    n = np.maximum(n_rows[which], 1)
    kind = np.where(n <= n_features, -1, 1) * np.ceil(np.log(n) / np.log(_PADDING)).astype(np.intp)
    found = []
    for each in np.unique(kind):
        own = which[kind == each]
        longest = n_rows[own].max()
        size = max(1, _BATCH_SIZE // max(1, longest * n_features))
        found += [own[i : i + size] for i in range(0, len(own), size)]
    return found


@dataclass(frozen=True)
class Batch:
    """Nodes whose rows are padded to one length.

    Attributes
    ----------
    design : (n_nodes, n, q)
        Coordinates of the rows and, where there is an intercept, its constant feature; zeros as padding.
    turn : (n_nodes, n_features, n) or None
        From weights of coordinates to weights of features; None if they are the same.
    mean : (n_nodes, n_features)
        Means that were subtracted from the features.
    """

    members: Members
    objective: Objective
    design: FloatArray
    turn: FloatArray | None
    mean: FloatArray

    @classmethod
    def of(cls, members: Members, X: FloatArray, objective: Objective) -> Batch:
        """Collect the rows of some nodes from all rows, sorted by leaf."""
        rows, is_row = X[members.place].astype(np.float64), members.is_row[:, :, None]
        mean = np.zeros((len(rows), X.shape[1]))
        if objective.free_intercept:
            mean = np.where(is_row, rows, 0.0).sum(axis=1) / is_row.sum(axis=1)
        rows = np.where(is_row, rows - mean[:, None], 0.0)
        turn = None
        if rows.shape[1] <= rows.shape[2]:
            turn, triangle = np.linalg.qr(rows.transpose(0, 2, 1))
            rows = triangle.transpose(0, 2, 1)
        constant = _constant(objective)
        if constant:
            rows = np.concatenate([rows, constant * is_row], axis=2)
        return cls(members, objective, np.ascontiguousarray(rows), turn, mean)

    def solve(self, own: IntArray, cost: FloatArray, theta: FloatArray) -> tuple[FloatArray, IntArray]:
        """Improve the parameters of some nodes; see `Solver`."""
        tol, penalty = self.objective.tol, np.ones(self.design.shape[2])
        if self.objective.free_intercept:
            penalty[-1] = 0.0
        problems = Problems(
            self.design[own], self.members.y[own], cost, penalty, tol * cost.sum(axis=1),
            _ACCURACY * min(1.0, tol / 1e-4),
        )  # fmt: skip
        return solve(problems, self.objective.max_iter, theta)

    def weights(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights (n_nodes, n_features) and intercepts of parameters (n_nodes, q)."""
        constant = _constant(self.objective)
        weights = theta[:, :-1] if constant else theta
        if self.turn is not None:
            weights = np.matmul(self.turn, weights[:, :, None])[:, :, 0]
        return weights, constant * theta[:, -1] - np.einsum("kj,kj->k", self.mean, weights)


def _constant(objective: Objective) -> float:
    """The feature of the intercept; 0 without one."""
    return 1.0 if objective.free_intercept else objective.intercept_scale


@dataclass(frozen=True)
class Problems:
    """Logistic regressions of one size.

    Attributes
    ----------
    design : (n_problems, n, q) or (1, n, q)
    y, cost : (n_problems, n)
    penalty : (q,)
        Of each parameter.
    tolerance : (n_problems,)
        Largest derivative allowed.
    accuracy : float
        Error of the parameters allowed, in the norm of the Hessian, as a part of them.
    """

    design: FloatArray
    y: FloatArray
    cost: FloatArray
    penalty: FloatArray
    tolerance: FloatArray
    accuracy: float

    def take(self, some: Any) -> Problems:
        """Some of them."""
        design = self.design if len(self.design) == 1 else self.design[some]
        rows = self.y[some], self.cost[some]
        return Problems(design, *rows, self.penalty, self.tolerance[some], self.accuracy)

    def scores(self, theta: FloatArray) -> FloatArray:
        """Scores of the rows."""
        scores: FloatArray = np.matmul(self.design, theta[:, :, None])[:, :, 0]
        return scores

    def loss(self, z: FloatArray, theta: FloatArray) -> FloatArray:
        """Values of the objectives."""
        margin = self.y * z
        losses = np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))
        value: FloatArray = np.einsum("kn,kn->k", self.cost, losses)
        value += 0.5 * (theta * theta * self.penalty).sum(axis=1)
        return value

    def step(self, z: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Newton steps, how much they promise to gain, and which problems are solved without."""
        margin = self.y * z
        tail = np.exp(-np.abs(margin))
        likelier = 1.0 / (1.0 + tail)
        slope = self.cost * self.y * np.where(margin >= 0.0, tail * likelier, likelier)
        curve = self.cost * np.maximum(tail * likelier * likelier, FLATTEST)
        gradient = np.matmul(slope[:, None], self.design)[:, 0] - self.penalty * theta
        hessian = np.matmul((self.design * curve[:, :, None]).transpose(0, 2, 1), self.design)
        diagonal = np.einsum("kii->ki", hessian)
        diagonal += self.penalty
        scale = 1.0 / np.sqrt(diagonal)
        hessian *= scale[:, :, None] * scale[:, None, :]
        step = scale * np.linalg.solve(hessian, (scale * gradient)[:, :, None])[:, :, 0]
        gain = np.einsum("kq,kq->k", gradient, step)
        square = (theta * theta * self.penalty).sum(axis=1)
        enough = self.accuracy**2 * (square + 1e-2 * np.minimum(1.0, curve.sum(axis=1)))
        return step, gain, (gain <= enough) & (np.abs(gradient).max(axis=1) <= self.tolerance)


def solve(problems: Problems, max_iter: int, theta: FloatArray) -> tuple[FloatArray, IntArray]:
    """Improve parameters (n_problems, q) in place; return the rows' scores and the numbers of steps.

    The numbers count the last gradient as one step; they are negative, or 0, where the optimum was not
    reached.
    """
    z = problems.scores(theta)
    value = problems.loss(z, theta)
    n_steps = np.full(len(theta), -max_iter, dtype=np.intp)
    stalled = np.zeros(len(theta), dtype=np.intp)
    active = np.arange(len(theta))
    for iteration in range(max_iter + 1):
        now = problems.take(active)
        step, gain, solved = now.step(z[active], theta[active])
        solved |= stalled[active] >= 2
        n_steps[active[solved]] = iteration + 1
        left = np.flatnonzero(~solved)
        if not len(left) or iteration == max_iter:
            break
        now, active, step, gain = now.take(left), active[left], step[left], gain[left]
        change = now.scores(step)
        size, after = _backtrack(now, z[active], theta[active], change, step, value[active], gain)
        n_steps[active[size == 0.0]] = -iteration - 1
        theta[active] += size[:, None] * step
        z[active] += size[:, None] * change
        stalled[active] += gain <= _NEGLIGIBLE * value[active]
        value[active] = after
        active = active[size > 0.0]
    return z, n_steps


def _backtrack(
    problems: Problems,
    z: FloatArray,
    theta: FloatArray,
    change: FloatArray,
    step: FloatArray,
    before: FloatArray,
    gain: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Halve steps until the objectives fall in proportion to them (Armijo's rule); 0 where they never do.

    Returns the sizes and the objectives. A gain that rounding errors would hide is believed.
    """
    size, after = np.ones(len(z)), np.empty(len(z))
    tried = np.arange(len(z))
    while len(tried):
        s = size[tried, None]
        now = problems.take(tried)
        after[tried] = now.loss(z[tried] + s * change[tried], theta[tried] + s * step[tried])
        enough = after[tried] <= before[tried] - 1e-4 * size[tried] * gain[tried]
        enough |= gain[tried] <= _NEGLIGIBLE * before[tried]
        tried = tried[~enough]
        size[tried] *= 0.5
        size[tried[size[tried] <= _SMALLEST_STEP]] = 0.0
        tried = tried[size[tried] > 0.0]
    return size, after
