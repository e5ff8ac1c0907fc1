"""Newton's method for the nodes of one depth at a time, on the device that torch computes on.

Nodes of one depth have no rows in common, so values by row (scores, losses and their derivatives) are single
arrays over all of them; only products with the rows are taken node by node. Matrices of second derivatives
are factorised together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.newton.node import Nodes, Objective, Results

#: Bytes of second derivatives held at a time.
_HESSIAN_BYTES = 4 * 2**30

#: Error of the parameters at scikit-learn's default tol, in the norm of the Hessian, as a part of them.
_ACCURACY = 1e-5

#: Added to the unit diagonal of a scaled Hessian that rounding has made indefinite.
_DAMPING = 1e-2
_SMALLEST_STEP = 2.0**-40


def device() -> torch.device:
    """The device that nodes are trained on: the GPU if torch finds one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass(frozen=True)
class DeviceRows:
    """Features on the device, centred where there is a free intercept.

    Attributes
    ----------
    X : tensor of shape (n_rows, n_features)
    mean : (n_features,)
        Subtracted from the features.
    """

    X: torch.Tensor
    mean: FloatArray

    @classmethod
    def of(cls, X: FloatArray, *, is_single: bool, is_centred: bool) -> DeviceRows:
        """Copy rows to the device."""
        rows = torch.as_tensor(X).to(device()).to(torch.float32 if is_single else torch.float64)
        mean = rows.double().mean(dim=0) if is_centred else torch.zeros(X.shape[1], dtype=torch.float64)
        return cls(rows - mean.to(rows), mean.cpu().numpy())

    def in_order(self, order: IntArray) -> DeviceRows:
        """The rows in another order."""
        return DeviceRows(self.X[torch.as_tensor(order).to(self.X.device)], self.mean)


def together(which: IntArray, depth: IntArray, rows: DeviceRows) -> list[IntArray]:
    """Cut nodes into groups of one depth whose second derivatives fit into `_HESSIAN_BYTES`."""
    n_parameters = rows.X.shape[1] + 1
    at_once = max(1, _HESSIAN_BYTES // (rows.X.element_size() * n_parameters**2))
    levels = [which[depth == level] for level in np.unique(depth)]
    return [own[i : i + at_once] for own in levels for i in range(0, len(own), at_once)]


@dataclass(frozen=True)
class Level:
    """Nodes without common rows; values by row are concatenated, node after node.

    Attributes
    ----------
    which : (n_nodes,)
        Numbers of the nodes.
    place : list of slice
        The rows of each node.
    own : list of slice
        Their values.
    node : tensor of shape (n_values,)
        The node of each value.
    y, weight, fold : tensors of shape (n_values,)
        Side (+1 on the left, -1 on the right), weight and fold of each row.
    constant : float
        The feature of the intercept; 0 without one.
    penalty : tensor of shape (n_features + 1,)
    """

    which: IntArray
    rows: DeviceRows
    objective: Objective
    place: list[slice]
    own: list[slice]
    node: torch.Tensor
    y: torch.Tensor
    weight: torch.Tensor
    fold: torch.Tensor
    constant: float
    penalty: torch.Tensor

    @classmethod
    def of(cls, which: IntArray, rows: DeviceRows, nodes: Nodes, objective: Objective) -> Level:
        """Collect sides, weights and folds of the rows of some nodes."""
        first, last = nodes.first[which], nodes.last[which]
        place = [slice(*ends) for ends in zip(first.tolist(), last.tolist(), strict=True)]
        ends = np.cumsum(last - first).tolist()
        own = [slice(*ends) for ends in zip([0, *ends[:-1]], ends, strict=True)]
        index = np.concatenate([np.arange(each.start, each.stop) for each in place])
        node = np.repeat(np.arange(len(which)), last - first)
        y = np.where(index < nodes.split[which][node], 1.0, -1.0)
        values = (node, y, nodes.weight[index], nodes.fold[index])
        constant = 1.0 if objective.free_intercept else objective.intercept_scale
        penalty = rows.X.new_ones(rows.X.shape[1] + 1)
        penalty[-1] = 0.0 if objective.free_intercept else 1.0
        at = rows.X.device
        node, y, weight, fold = (torch.as_tensor(each).to(at) for each in values)
        return cls(
            which, rows, objective, place, own, node, y.to(rows.X), weight.to(rows.X), fold, constant, penalty
        )

    def train(self, nodes: Nodes, results: Results, weights: FloatArray) -> None:
        """Train the nodes on all rows and, starting from that solution, without each fold.

        Parameters
        ----------
        weights : (n_kept, n_nodes, n_features)
            Written: weights of the first members.
        """
        theta = self.rows.X.new_zeros((len(self.which), len(self.penalty)))
        start = theta
        for member in range(nodes.n_members):
            is_trained = results.is_trained[member, self.which]
            theta, z, n_steps = self._solve(start.clone(), self._costs(member), np.flatnonzero(is_trained))
            start = theta if member == 0 else start
            results.n_steps[member, self.which[is_trained]] = n_steps[is_trained]
            self._keep(member, theta, is_trained, results, weights)
            if member:
                self._keep_scores(member, z, is_trained, results)

    def _keep(
        self, member: int, theta: torch.Tensor, is_trained: Any, results: Results, weights: FloatArray
    ) -> None:
        found = theta.double().cpu().numpy()[is_trained]
        trained = self.which[is_trained]
        intercept = self.constant * found[:, -1] - found[:, :-1] @ self.rows.mean
        results.intercept[member, trained] = intercept
        if member < len(weights):
            weights[member, trained] = found[:, :-1]

    def _keep_scores(self, member: int, z: torch.Tensor, is_trained: Any, results: Results) -> None:
        """Keep the scores of the rows that a member has not seen."""
        seen = (self.fold != member - 1).cpu().numpy()
        scores = z.double().cpu().numpy()
        for i in np.flatnonzero(is_trained):
            offset, own = results.pair_offsets[self.which[i]], self.own[i]
            here = results.scores[offset : offset + own.stop - own.start]
            here[:] = np.where(seen[own], here, scores[own])

    def _costs(self, member: int) -> torch.Tensor:
        """Cost of each row for a member, 0 of rows that it must not see."""
        seen = torch.where(self.fold != member - 1, self.weight, 0.0)
        is_left = self.y > 0
        which, objective = self.which, self.objective
        left, right = (
            torch.as_tensor(each[which]).to(seen) for each in (objective.left_factor, objective.right_factor)
        )
        if objective.balanced:
            of_left = self.sums(torch.where(is_left, seen, 0.0))
            both = self.sums(seen)
            left, right = (both / (2.0 * each) for each in (of_left, both - of_left))
        factor = torch.where(is_left, left.to(seen)[self.node], right.to(seen)[self.node])
        C = torch.as_tensor(objective.C[which, -1]).to(seen)[self.node]
        return C * factor * seen

    # ------------------------------------------------------------------ products with the rows

    def scores(self, theta: torch.Tensor, active: list[int]) -> torch.Tensor:
        """Scores of the rows of active nodes, 0 of all others."""
        z = torch.zeros_like(self.y)
        for i in active:
            torch.mv(self.rows.X[self.place[i]], theta[i, :-1], out=z[self.own[i]])
        return z + self.constant * theta[self.node, -1]

    def gradient(self, slope: torch.Tensor, active: list[int]) -> torch.Tensor:
        """Sums over rows of `slope` times their features, shape (n_active, n_features + 1)."""
        out = slope.new_empty((len(active), len(self.penalty)))
        for row, i in enumerate(active):
            torch.mv(self.rows.X[self.place[i]].T, slope[self.own[i]], out=out[row, :-1])
        out[:, -1] = self.constant * self.sums(slope)[active]
        return out

    def hessian(self, curve: torch.Tensor, active: list[int]) -> torch.Tensor:
        """Second derivatives, shape (n_active, n_features + 1, n_features + 1), without the penalty."""
        p = len(self.penalty) - 1
        out = curve.new_empty((len(active), p + 1, p + 1))
        with _quick_products():
            for row, i in enumerate(active):
                X = self.rows.X[self.place[i]]
                out[row, :p, :p] = X.T @ (X * curve[self.own[i], None])
        across = self.constant * self.gradient(curve, active)
        out[:, p, :], out[:, :, p] = across, across
        out[:, p, p] *= self.constant
        return out

    def sums(self, values: torch.Tensor) -> torch.Tensor:
        """Sums over each node's rows, in double precision."""
        ends = torch.as_tensor([0, *(each.stop for each in self.own)]).to(values.device)
        return torch.nn.functional.pad(values.double().cumsum(0), (1, 0))[ends].diff()

    # ------------------------------------------------------------------ Newton's method

    def _solve(
        self, theta: torch.Tensor, cost: torch.Tensor, chosen: IntArray
    ) -> tuple[torch.Tensor, torch.Tensor, IntArray]:
        """Improve the parameters of some nodes; return them, the scores, and the numbers of steps.

        The numbers are negative where the optimum was not reached.
        """
        active, max_iter = chosen, self.objective.max_iter
        n_steps = np.full(len(self.which), -max_iter, dtype=np.intp)
        stalled = np.zeros(len(self.which), dtype=np.intp)
        tolerance = (self.objective.tol * self.sums(cost)).cpu().numpy()
        z = self.scores(theta, active.tolist())
        value = self._loss(z, theta, cost)
        negligible = 8 * torch.finfo(z.dtype).eps
        for iteration in range(max_iter + 1):
            step, gain, slope, enough = self._newton_step(z, theta, cost, active)
            stalled[active] += gain <= negligible * value[active]
            solved = (gain <= enough) & (slope <= tolerance[active]) | (stalled[active] > 2)
            n_steps[active[solved]] = iteration + 1
            left = np.flatnonzero(~solved)
            active, step, gain = active[left], step[torch.as_tensor(left).to(step.device)], gain[left]
            if not len(active) or iteration == max_iter:
                break
            whole = torch.zeros_like(theta)
            whole[torch.as_tensor(active).to(whole.device)] = step
            size, value = self._backtrack(z, theta, cost, whole, active, value, gain, negligible)
            n_steps[active[size[active] == 0.0]] = -iteration - 1
            by_node = torch.as_tensor(size).to(z)
            theta = theta + by_node[:, None] * whole
            z = z + by_node[self.node] * self.scores(whole, active.tolist())
            active = active[size[active] > 0.0]
        return theta, z, n_steps

    def _newton_step(
        self, z: torch.Tensor, theta: torch.Tensor, cost: torch.Tensor, active: IntArray
    ) -> tuple[torch.Tensor, FloatArray, FloatArray, FloatArray]:
        """Steps of active nodes, the gains they promise, the largest derivatives, and the gain to stop at."""
        p = torch.sigmoid(-self.y * z)
        curve = cost * (p * (1.0 - p)).clamp(min=torch.finfo(z.dtype).tiny)
        nodes = active.tolist()
        at = theta[torch.as_tensor(active).to(theta.device)]
        gradient = self.gradient(cost * self.y * p, nodes) - self.penalty * at
        hessian = self.hessian(curve, nodes)
        hessian.diagonal(dim1=1, dim2=2).add_(self.penalty)
        step = _solved(hessian, gradient)
        gain = (gradient.double() * step.double()).sum(dim=1)
        square = (at.double().square() * self.penalty).sum(dim=1)
        mass = self.sums(curve)[active].clamp(max=1.0)
        accuracy = _ACCURACY * min(1.0, self.objective.tol / 1e-4)
        enough = accuracy**2 * (square + 1e-2 * mass)
        found = gain, gradient.abs().amax(dim=1), enough
        return step, *(each.double().cpu().numpy() for each in found)

    def _loss(self, z: torch.Tensor, theta: torch.Tensor, cost: torch.Tensor) -> FloatArray:
        """Values of the objectives."""
        losses = self.sums(cost * torch.nn.functional.softplus(-self.y * z))
        penalty = 0.5 * (theta.double().square() * self.penalty).sum(dim=1)
        value: FloatArray = (losses + penalty).cpu().numpy()
        return value

    def _backtrack(
        self,
        z: torch.Tensor,
        theta: torch.Tensor,
        cost: torch.Tensor,
        step: torch.Tensor,
        active: IntArray,
        before: FloatArray,
        gain: FloatArray,
        negligible: float,
    ) -> tuple[FloatArray, FloatArray]:
        """Halve steps until the objectives fall in proportion to them (Armijo's rule); 0 where they never do.

        Returns the size of each node's step and the objectives. A gain that rounding would hide is believed.
        """
        change = self.scores(step, active.tolist())
        size, after = np.zeros(len(self.which)), before.copy()
        size[active] = 1.0
        promised = np.zeros(len(size))
        promised[active] = gain
        tried = active
        while len(tried):
            by_node = torch.as_tensor(size).to(z)
            value = self._loss(z + by_node[self.node] * change, theta + by_node[:, None] * step, cost)
            enough = value[tried] <= before[tried] - 1e-4 * size[tried] * promised[tried]
            enough |= promised[tried] <= negligible * before[tried]
            after[tried[enough]] = value[tried[enough]]
            tried = tried[~enough]
            size[tried] *= 0.5
            size[tried[size[tried] < _SMALLEST_STEP]] = 0.0
            tried = tried[size[tried] > 0.0]
        return size, after


def _solved(hessian: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Newton steps, damped where rounding has made a matrix indefinite."""
    scale = hessian.diagonal(dim1=1, dim2=2).rsqrt()
    hessian = hessian * (scale[:, :, None] * scale[:, None, :])
    factor, info = torch.linalg.cholesky_ex(hessian)
    if failed := torch.nonzero(info)[:, 0].tolist():
        damped = hessian[failed]
        damped.diagonal(dim1=1, dim2=2).add_(_DAMPING)
        factor[failed] = torch.linalg.cholesky_ex(damped)[0]
    return scale * torch.cholesky_solve((scale * gradient)[:, :, None], factor)[:, :, 0]


@contextmanager
def _quick_products() -> Iterator[None]:
    """Let products of single-precision matrices be rounded to ten bits, which is enough for a Hessian."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
