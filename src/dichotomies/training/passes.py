"""Passes over spilled rows for nodes that have more rows than fit into memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._common.chunks import row_slices
from dichotomies._common.parallel import ONE_BLAS_THREAD
from dichotomies.learners.base import Block

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dichotomies._common.typing import IntArray
    from dichotomies.learners import Scorer
    from dichotomies.learners.base import NodePasses
    from dichotomies.rows import NodeTask
    from dichotomies.training.batches import SpilledTraining

#: Bytes of a row for each node that is evaluated on it.
_NODE_BYTES = 32


@dataclass
class Passes:
    """Nodes that were trained on a sample of their rows, and go on to the optimum for all of them.

    As many as have their matrices of second derivatives in half of the memory take their passes together.
    Nodes of learners without passes, and those that are calibrated inside, stay as they are.

    Attributes
    ----------
    held : list of IntArray
        Rows of each class that are held out.
    """

    training: SpilledTraining
    held: Sequence[IntArray]
    _nodes: list[Any] = field(default_factory=list)
    _places: list[int] = field(default_factory=list)
    _sides: list[IntArray] = field(default_factory=list)

    def take(self, task: NodeTask, parts: list[tuple[Scorer, int]], *, is_last: bool) -> None:
        """Add the node of the last part, if it was trained on a sample; replace parts that are finished."""
        scorer: Any = parts[-1][0]
        n_rows = int(self._n_free[np.unique(task.rows.codes)].sum())
        is_sampled = len(task.rows) < n_rows
        if self._way is not None and is_sampled and scorer.is_trained[0]:
            self._nodes.append(self._way.begun(task, n_rows))
            self._places.append(len(parts) - 1)
            self._sides.append(_side_of_class(task))
        if self._nodes and (is_last or not is_sampled or len(self._nodes) >= self._most_nodes):
            self._run(parts)

    @cached_property
    def _way(self) -> NodePasses | None:
        plan = self.training.node_plan
        return None if plan.uses_folds else plan.learner.passes(is_sparse=self.training.counts.is_sparse)

    @cached_property
    def _n_free(self) -> IntArray:
        """Rows of each class that nodes are trained on."""
        n_free: IntArray = self.training.counts.size - np.array([len(each) for each in self.held])
        return n_free

    @cached_property
    def _most_nodes(self) -> int:
        matrices = 2 * 8 * (self.training.counts.n_features + 1) ** 2
        return max(1, self.training.max_memory // (2 * matrices))

    def _run(self, parts: list[tuple[Scorer, int]]) -> None:
        assert self._way is not None
        sampled = [parts[place][0] for place in self._places]
        with ONE_BLAS_THREAD:  # the last bits of a product depend on their number
            finished = self._way.finished(self._nodes, sampled, self._blocks)
        for place, scorer in zip(self._places, finished, strict=True):
            parts[place] = scorer, 1
        self._nodes, self._places, self._sides = [], [], []

    def _blocks(self, active: Sequence[int]) -> Iterator[Block]:
        """Rows of the classes of some nodes, as many at a time as fit into memory."""
        side = np.stack([self._sides[k] for k in active])
        for code in np.flatnonzero(side.any(axis=0)).tolist():
            mine = np.flatnonzero(side[:, code])
            nodes, is_left = np.array(active)[mine], side[mine, code] > 0
            free = self.training.free(code, self.held)
            for part in row_slices(len(free), self.training.most_with(_NODE_BYTES * len(mine))):
                rows = self.training.spilled.rows(np.array([code]), [free[part]])
                weight = np.ones(len(rows)) if rows.weight is None else rows.weight
                yield Block(np.asarray(rows.X), weight, nodes, is_left)


def _side_of_class(task: NodeTask) -> IntArray:
    """1 for the classes on the left of the one node of a task, -1 on its right, 0 for all others."""
    [start], [split], [stop] = task.start, task.split, task.stop
    side = np.zeros(task.rows.n_classes, dtype=np.intp)
    side[task.tree.leaf_order[start:split]], side[task.tree.leaf_order[split:stop]] = 1, -1
    return side
