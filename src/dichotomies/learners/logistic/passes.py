"""Logistic regression on rows that come in blocks: quasi-Newton steps, each with one pass over the rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dichotomies.learners.logistic.truncated import Rows, evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies._kernels.newton.node import Objective
    from dichotomies.learners.logistic.learner import LogisticLearner
    from dichotomies.learners.logistic.truncated import Solve
    from dichotomies.learners.weights import DenseWeights
    from dichotomies.rows import NodeTask

#: Steps that are smaller than this, as a part of the parameters, are not halved any more.
_SMALLEST_STEP = 2.0**-20


class Block(NamedTuple):
    """Rows that are on the same side of every node.

    Attributes
    ----------
    X : (n, n_features)
    weight : (n,)
    nodes : (m,)
        The nodes with these rows, as indices into the list of them.
    is_left : (m,)
    """

    X: FloatArray
    weight: FloatArray
    nodes: IntArray
    is_left: BoolArray


@dataclass
class BlockedNode:
    """One node on its way to the optimum for all of its rows (L-BFGS with a Hessian of sampled rows).

    Attributes
    ----------
    theta : (n_features + 1,)
        Parameters to be evaluated next, the intercept last.
    penalty : (n_features + 1,)
    has_intercept : bool
        Otherwise the intercept stays 0.
    solve : callable
        Product with the inverse Hessian of a sample.
    is_solved, is_stuck : bool
        No derivative of the mean loss exceeds the tolerance; no step decreases the objective.
    """

    theta: FloatArray
    objective: Objective
    penalty: FloatArray
    has_intercept: bool
    solve: Solve
    is_solved: bool = False
    is_stuck: bool = False
    _pairs: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)
    _at: FloatArray | None = None
    _value: float = np.inf
    _gradient: FloatArray | None = None
    _step: FloatArray | None = None

    @classmethod
    def of(cls, learner: LogisticLearner, task: NodeTask, sampled: DenseWeights) -> BlockedNode:
        """Start from the optimum for sampled rows, whose weights are those of all rows."""
        task = task.prepared()
        X, n_left = task.rows.features_of(task.row_order), int(task.leaf_offset[task.split[0]])
        objective = learner.settings.objective(task.left_is_positive, np.full((1, 1), learner.C), X.dtype)
        rows = Rows.of(X, objective)
        theta = np.append(sampled.weights[0], sampled.intercept[0]).astype(np.float64)
        weight = np.ones(len(X)) if task.rows.weight is None else task.rows.weight[task.row_order]
        left, right = _factors(objective, weight[:n_left].sum(), weight[n_left:].sum())
        is_left = np.arange(len(X)) < n_left
        cost = weight * np.where(is_left, left, right)
        _, _, curve = evaluate(rows.scores(theta), np.where(is_left, 1.0, -1.0), cost)
        return cls(theta, objective, rows.penalty, rows.has_intercept, rows.preconditioner(curve))

    def take(self, sums: FloatArray) -> None:
        """Move `theta` on by what it gives.

        Parameters
        ----------
        sums : (2, n_features + 3)
            Of the left and the right rows: weight, loss, and derivatives of the loss.
        """
        factors = np.array(_factors(self.objective, *sums[:, 0]))
        cost, value, *slopes = factors @ sums
        value += 0.5 * (self.penalty * self.theta) @ self.theta
        gradient = np.array(slopes) + self.penalty * self.theta
        if not self.has_intercept:
            gradient[-1] = 0.0
        if self._is_worse(value):
            self._halve()
            return
        if self._at is not None and self._gradient is not None:
            s, y = self.theta - self._at, gradient - self._gradient
            if s @ y > 0.0:
                self._pairs.append((s, y))
        self._at, self._value, self._gradient = self.theta, value, gradient
        self.is_solved = bool(np.abs(gradient).max() <= self.objective.tol * cost)
        if not self.is_solved:
            self._step = -self._towards(gradient)
            self.theta = self._at + self._step

    def _is_worse(self, value: float) -> bool:
        """Test Armijo's rule; a gain that rounding errors would hide is believed."""
        if self._gradient is None or self._step is None:
            return False
        slope = float(self._gradient @ self._step)
        return not value <= self._value + 1e-4 * slope + 1e-9 * abs(self._value)

    def _halve(self) -> None:
        assert self._at is not None
        assert self._step is not None
        self._step = 0.5 * self._step
        self.theta = self._at + self._step
        if np.abs(self._step).max() <= _SMALLEST_STEP * np.abs(self._at).max():
            self.theta, self.is_stuck = self._at, True

    def _towards(self, gradient: FloatArray) -> FloatArray:
        """Product with the inverse Hessian that the steps so far suggest (Nocedal's two loops)."""
        rest, parts = gradient.copy(), []
        for s, y in reversed(self._pairs):
            parts.append(s @ rest / (s @ y))
            rest -= parts[-1] * y
        direction = self.solve(rest)
        for (s, y), part in zip(self._pairs, reversed(parts), strict=True):
            direction = direction + (part - y @ direction / (s @ y)) * s
        return direction


def minimise(
    nodes: Sequence[BlockedNode], make_blocks: Callable[[Sequence[int]], Iterable[Block]], max_passes: int
) -> None:
    """Improve nodes up to the optimum of scikit-learn's `LogisticRegression` for the rows of all blocks.

    Parameters
    ----------
    make_blocks : callable
        Starts a pass over the rows of some nodes, which are given by their places in `nodes`.
    max_passes : int
        Passes at most.
    """
    active = list(range(len(nodes)))
    for _ in range(max_passes):
        if not active:
            return
        sums = np.zeros((len(nodes), 2, len(nodes[0].theta) + 2))
        theta = np.stack([node.theta for node in nodes])
        for block in make_blocks(active):
            _add(block, theta[block.nodes], sums)
        for k in active:
            nodes[k].take(sums[k])
        active = [k for k in active if not (nodes[k].is_solved or nodes[k].is_stuck)]
    if active:
        warnings.warn(
            f"{len(active)} of {len(nodes)} nodes on rows out of memory did not converge within "
            f"{max_passes} passes; increase max_iter or scale the features.",
            ConvergenceWarning,
            stacklevel=2,
        )


def _add(block: Block, theta: FloatArray, sums: FloatArray) -> None:
    """Add weight, loss and derivatives of a block at parameters (m, n_features + 1) to `sums`."""
    X, weight, nodes, is_left = block
    sign = np.where(is_left, 1.0, -1.0)
    margin = np.asarray(X @ theta[:, :-1].T.astype(X.dtype), dtype=np.float64)
    margin += theta[:, -1]
    margin *= sign
    tail = np.exp(-np.abs(margin))
    loss = np.log1p(tail)
    loss += np.maximum(-margin, 0.0)
    slope = np.where(margin >= 0.0, tail, 1.0) / (1.0 + tail)
    slope *= -sign * weight[:, None]
    side = 1 - is_left.astype(np.intp)
    sums[nodes, side, 0] += weight.sum()
    sums[nodes, side, 1] += weight @ loss
    sums[nodes, side, 2:-1] += slope.T.astype(X.dtype) @ X
    sums[nodes, side, -1] += slope.sum(axis=0)


def _factors(objective: Objective, left: float, right: float) -> tuple[float, float]:
    """Costs of a row of weight 1 on either side, where all rows have these weights together."""
    C = float(objective.C[0, 0])
    if objective.balanced:
        return C * (left + right) / (2.0 * left), C * (left + right) / (2.0 * right)
    return C * float(objective.left_factor[0]), C * float(objective.right_factor[0])
