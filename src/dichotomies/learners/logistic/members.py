"""The loop over strengths of the penalty and fold members, for solvers in plain numpy.

Kernels have this loop inside, over the same arrays: `Nodes`, `Objective` and `Results`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies._kernels.newton.node import Nodes, Objective, Results


class Solver(Protocol):
    """An algorithm that improves the parameters of some nodes."""

    def solve(self, own: IntArray, cost: FloatArray, theta: FloatArray) -> tuple[FloatArray, IntArray]:
        """Find the optimum for other costs, starting from `theta`, which is overwritten.

        Parameters
        ----------
        own : (n_own,)
            Which of the nodes.
        cost : (n_own, n)
            Of each row, 0 for those that are only scored.
        theta : (n_own, q)
            Parameters.

        Returns
        -------
        scores : (n_own, n)
        n_steps : (n_own,)
            Negative, or 0, where the optimum was not reached.
        """


@dataclass(frozen=True)
class Members:
    """The rows of some nodes, padded to one length, and who may see them.

    Attributes
    ----------
    which : (n_nodes,)
        Numbers of the nodes.
    place : (n_nodes, n)
        Where the rows are in the order of leaves.
    is_row : (n_nodes, n)
        False for padding.
    y : (n_nodes, n)
        +1 on the left and -1 on the right.
    weight : (n_nodes, n)
        0 as padding.
    fold : (n_nodes, n)
    """

    which: IntArray
    place: IntArray
    is_row: BoolArray
    y: FloatArray
    weight: FloatArray
    fold: IntArray

    @classmethod
    def of(cls, which: IntArray, nodes: Nodes) -> Members:
        """Collect the rows of some nodes."""
        first, last = nodes.first[which][:, None], nodes.last[which][:, None]
        place = first + np.arange((last - first).max())
        is_row = place < last
        place = np.where(is_row, place, first)
        y = np.where(place < nodes.split[which][:, None], 1.0, -1.0)
        return cls(which, place, is_row, y, np.where(is_row, nodes.weight[place], 0.0), nodes.fold[place])

    def train(
        self, solver: Solver, n_parameters: int, nodes: Nodes, objective: Objective, results: Results
    ) -> FloatArray:
        """Train all members; return their parameters (n_members, n_nodes, n_parameters) for the last C."""
        theta = np.zeros((nodes.n_members, len(self.which), n_parameters))
        z = np.full((nodes.n_members, *self.y.shape), np.nan)
        for grid in range(objective.C.shape[1]):
            for member in range(nodes.n_members):
                if member:
                    theta[member] = theta[0]
                own = np.flatnonzero(results.is_trained[member, self.which])
                parameters = theta[member, own]
                scores, n_steps = solver.solve(own, self._costs(own, member, grid, objective), parameters)
                theta[member, own], z[member, own] = parameters, scores
                results.n_steps[member, self.which[own]] = n_steps
            if nodes.n_members > 1:
                self._keep_scores(grid, z[1:], results)
        return theta

    def _costs(self, own: IntArray, member: int, grid: int, objective: Objective) -> FloatArray:
        which, is_left = self.which[own], self.y[own] > 0
        seen = np.where(self.fold[own] != member - 1, self.weight[own], 0.0)
        left, right = objective.left_factor[which], objective.right_factor[which]
        if objective.balanced:
            of_left, of_right = (
                np.where(is_left, seen, 0.0).sum(axis=1),
                np.where(is_left, 0.0, seen).sum(axis=1),
            )
            left, right = (of_left + of_right) / (2.0 * of_left), (of_left + of_right) / (2.0 * of_right)
        factor = np.where(is_left, left[:, None], right[:, None])
        costs: FloatArray = objective.C[which, grid][:, None] * factor * seen
        return costs

    def _keep_scores(self, grid: int, z: FloatArray, results: Results) -> None:
        """Keep every row's score by the member that has not seen it, and the loss of a node's rows."""
        score = np.take_along_axis(z, self.fold[None], axis=0)[0]
        margin = self.y * score
        losses = self.weight * (np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin))))
        for i, k in enumerate(self.which):
            own = score[i, self.is_row[i]]
            results.scores[results.pair_offsets[k] : results.pair_offsets[k] + len(own)] = own
            if not np.isnan(own).all():
                results.nll[k, grid] = np.nansum(losses[i])
