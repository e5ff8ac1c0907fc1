"""Logistic regression on rows that come in blocks: Newton's method, each step by one pass over the rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.newton.node import Objective
from dichotomies.learners.base import Block
from dichotomies.learners.logistic.learner import LogisticLearner
from dichotomies.learners.logistic.truncated import Rows
from dichotomies.rows import NodeTask

#: Second derivatives are those of a part of the rows, which takes so many times the work of the scores, or of
#: so many rows per feature.
_WORK, _ROWS_PER_FEATURE = 16, 40

#: Steps that are smaller than this, as a part of the parameters, are not halved any more.
_SMALLEST_STEP = 2.0**-20

#: Part of `tol` that derivatives must not exceed; it takes hardly more than one step of Newton's method.
_ACCURACY = 0.1


@dataclass
class BlockedNode:
    """One node on its way to the optimum for all of its rows.

    Attributes
    ----------
    theta : (n_features + 1,)
        Parameters to be evaluated next, the intercept last.
    stride : int
        Second derivatives are those of every so many-th row.
    is_solved, is_stuck : bool
        No derivative of the mean loss exceeds the tolerance; no step decreases the objective.
    """

    objective: Objective
    penalty: FloatArray
    has_intercept: bool
    stride: int
    theta: FloatArray
    is_solved: bool = False
    is_stuck: bool = False
    _at: FloatArray | None = None
    _value: float = np.inf
    _slope: float = 0.0

    @classmethod
    def of(cls, learner: LogisticLearner, task: NodeTask, n_rows: int) -> BlockedNode:
        """The one node of a task, which has a sample of the node's `n_rows`."""
        X = task.rows.features_of(task.prepared().row_order[:1])
        objective = learner.settings.objective(task.left_is_positive, np.full((1, 1), learner.C), X.dtype)
        n_features = X.shape[1]
        n_curved = max(_ROWS_PER_FEATURE * n_features, _WORK * n_rows // n_features)
        shape = Rows.of(X, objective)
        stride, theta = max(1, n_rows // n_curved), np.zeros(n_features + 1)
        return cls(objective, shape.penalty, shape.has_intercept, stride, theta)

    def take(self, sums: FloatArray, curvature: FloatArray) -> None:
        """Move `theta` on by what it gives.

        Parameters
        ----------
        sums : (2, n_features + 3)
            Of the left and the right rows: weight, loss, and derivatives of the loss.
        curvature : (2, n_features + 1, n_features + 1)
            Of either side, second derivatives of the loss.
        """
        factors = np.array(_factors(self.objective, *sums[:, 0]))
        cost, value, *slopes = factors @ sums
        value += 0.5 * (self.penalty * self.theta) @ self.theta
        if not value <= self._value + 1e-4 * self._slope + 1e-9 * abs(value):  # Armijo's rule, and rounding
            self._halve()
            return
        gradient = np.array(slopes) + self.penalty * self.theta
        hessian = np.tensordot(factors, curvature, 1) + np.diag(self.penalty)
        if not self.has_intercept:
            gradient[-1], hessian[-1], hessian[:, -1], hessian[-1, -1] = 0.0, 0.0, 0.0, 1.0
        self._at, self._value = self.theta, value
        self.is_solved = bool(np.abs(gradient).max() <= _ACCURACY * self.objective.tol * cost)
        if not self.is_solved:
            step = -_solved(hessian, gradient)
            self.theta, self._slope = self._at + step, float(gradient @ step)

    def _halve(self) -> None:
        assert self._at is not None
        step, self._slope = 0.5 * (self.theta - self._at), 0.5 * self._slope
        self.theta = self._at + step
        if np.abs(step).max() <= _SMALLEST_STEP * np.abs(self._at).max():
            self.theta, self.is_stuck = self._at, True


def _solved(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Product of the inverse Hessian with a gradient; of its diagonal, where rounding makes it indefinite."""
    try:
        factor = cho_factor(hessian, lower=True, check_finite=False)
        solution: FloatArray = cho_solve(factor, gradient, check_finite=False)
    except LinAlgError:
        diagonal = np.diag(hessian)
        solution = gradient / np.where(diagonal > 0.0, diagonal, 1.0)
    return solution


@dataclass(frozen=True)
class LogisticPasses:
    """Nodes of logistic regression on rows that come in blocks, see `NodePasses`."""

    learner: LogisticLearner

    def begun(self, task: NodeTask, n_rows: int) -> BlockedNode:
        """Return the one node of a `task`, which has a sample of the node's `n_rows`."""
        return BlockedNode.of(self.learner, task, n_rows)

    def finished(
        self,
        nodes: Sequence[BlockedNode],
        scorers: Sequence[Any],
        blocks: Callable[[Sequence[int]], Iterable[Block]],
    ) -> list[Any]:
        """Train nodes on all rows of `blocks`; return their scorers."""
        minimise(nodes, blocks, self.learner.settings.max_iter)
        return [
            replace(scorer, weights=node.theta[None, :-1].copy(), intercept=node.theta[None, -1].copy())
            for node, scorer in zip(nodes, scorers, strict=True)
        ]


def minimise(
    nodes: Sequence[BlockedNode], make_blocks: Callable[[Sequence[int]], Iterable[Block]], max_passes: int
) -> None:
    """Bring nodes to the optimum of scikit-learn's `LogisticRegression` for the rows of all blocks.

    Parameters
    ----------
    make_blocks : callable
        Starts a pass over the rows of some nodes, which are given by their places in `nodes`.
    max_passes : int
        Passes at most.
    """
    active = list(range(len(nodes)))
    n = len(nodes[0].theta)
    for _ in range(max_passes):
        if not active:
            return
        sums, curvature = np.zeros((len(nodes), 2, n + 2)), np.zeros((len(nodes), 2, n, n))
        theta = np.stack([node.theta for node in nodes])
        for block in make_blocks(active):
            stride = np.array([nodes[k].stride for k in block.nodes])
            _add(block, theta[block.nodes], stride, sums, curvature)
        for k in active:
            nodes[k].take(sums[k], curvature[k])
        active = [k for k in active if not (nodes[k].is_solved or nodes[k].is_stuck)]
    if active:
        warnings.warn(
            f"{len(active)} of {len(nodes)} nodes on rows out of memory did not converge within "
            f"{max_passes} passes; increase max_iter or scale the features.",
            ConvergenceWarning,
            stacklevel=2,
        )


def _add(block: Block, theta: FloatArray, stride: IntArray, sums: FloatArray, curvature: FloatArray) -> None:
    """Add weight, loss and derivatives of a block at parameters (m, n_features + 1); see `take`."""
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
    curve = np.multiply(tail, weight[:, None], out=loss)
    curve /= np.square(1.0 + tail)
    for j, every in enumerate(stride.tolist()):
        some, root = X[::every], np.sqrt(curve[::every, j])
        some = np.c_[some, np.ones(len(some), X.dtype)] * root[:, None].astype(X.dtype)
        curvature[nodes[j], side[j]] += (some.T @ some) * (len(X) / len(some))


def _factors(objective: Objective, left: float, right: float) -> tuple[float, float]:
    """Costs of a row of weight 1 on either side, where all rows have these weights together."""
    C = float(objective.C[0, 0])
    if objective.balanced:
        return C * (left + right) / (2.0 * left), C * (left + right) / (2.0 * right)
    return C * float(objective.left_factor[0]), C * float(objective.right_factor[0])
