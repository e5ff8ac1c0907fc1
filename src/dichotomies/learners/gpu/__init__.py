"""`GpuLogisticLearner`: large nodes are trained on a GPU, all others as `LogisticLearner` trains them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from dichotomies._common.parallel import Context
from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.newton.node import Results
from dichotomies.learners.base import LEARNERS, Unsupported
from dichotomies.learners.logistic.learner import LogisticLearner
from dichotomies.learners.logistic.training import NodeTraining
from dichotomies.rows import NodeTask

#: Below this tolerance derivatives are computed in double precision.
_LOOSE_TOL = 1e-5


@LEARNERS.register("gpu")
@dataclass(frozen=True)
class GpuLogisticLearner(LogisticLearner):
    """Logistic regression with an L2 penalty on dense rows, nodes with many rows on a GPU.

    It is taken only by name, ``learner="gpu"``, and needs torch; without a GPU, torch computes on the
    processor. Rows are copied to the device once, in single precision, or in double precision if `tol` is
    below 1e-5. Nodes with fewer rows than features, and nodes that do not converge on the device, are
    trained as ``learner="logistic"`` trains them. `C` and `settings` are those of `LogisticLearner`.
    """

    only_by_name = True

    @classmethod
    def recognise(cls, estimator: Any) -> Self:
        """Take over a `LogisticRegression` whose penalty is L2."""
        if find_spec("torch") is None:
            raise Unsupported("torch is not installed: pip install 'dichotomies[gpu]'")
        return super().recognise(estimator)

    @property
    def description(self) -> str:
        """One line for users: the name of the learner and its method."""
        from dichotomies.learners.gpu.newton import device

        return f"gpu: Newton's method on {device()} by torch, to the optimum of LogisticRegression"

    def _training(
        self, task: NodeTask, folds: IntArray | None, n_kept: int, context: Context
    ) -> NodeTraining:
        C = np.full((task.n_nodes, 1), self.C)
        return GpuTraining(task.prepared(), self.settings, C, folds, n_kept, context)


class GpuTraining(NodeTraining):
    """Logistic regressions at the nodes of a tree, those of many dense rows on a GPU."""

    def solve_dense(self, which: IntArray, results: Results, weights: FloatArray) -> None:
        """Train nodes on dense rows: large ones on the device, the rest as `NodeTraining` does."""
        size, n_features = self.task.node_size[which], self.task.rows.X.shape[1]
        is_large = size > n_features
        if is_large.any():
            self._on_device(which[is_large], results, weights)
        failed = (results.n_steps[:, which] < 0).any(axis=0)
        if (rest := which[~is_large | failed]).size:
            super().solve_dense(rest, results, weights)

    def _on_device(self, which: IntArray, results: Results, weights: FloatArray) -> None:
        from dichotomies.learners.gpu.newton import DeviceRows, Level, together

        rows = self.task.rows
        kind = {"is_single": self.settings.tol >= _LOOSE_TOL, "is_centred": self.settings.free_intercept}
        on_device = rows.remember("rows on the device", lambda: DeviceRows.of(rows.X, **kind))
        by_leaf = on_device.in_order(self.task.row_order)
        progress = self.context.progress(f"training {len(which)} nodes")
        groups = together(which, self.task.depth[which], by_leaf)
        for done, some in enumerate(groups, 1):
            Level.of(some, by_leaf, self.nodes, self.objective).train(self.nodes, results, weights)
            if progress is not None:
                progress.show(done / len(groups))
