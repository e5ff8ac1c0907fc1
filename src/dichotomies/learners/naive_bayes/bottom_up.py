"""Bottom-up pass over sparse nodes: counts are merged from the leaves up, and every node's models made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._common.parallel import run
from dichotomies._kernels.naive_bayes.sparse_models import KeptWeights, Models, SparseRows, visit_nodes
from dichotomies._kernels.naive_bayes.sparse_nodes import by_feature
from dichotomies._kernels.naive_bayes.sparse_sides import Subtrees, Workspace
from dichotomies.learners.naive_bayes.visit_plan import VisitPlan
from dichotomies.learners.weights import SparseWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dichotomies._common.parallel import Context
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.learners.naive_bayes.groups import Sides
    from dichotomies.learners.naive_bayes.sparse import SparseCounts
    from dichotomies.learners.naive_bayes.visit_plan import VisitBatches


class RequestedOutputs(NamedTuple):
    """Outputs that a pass computes.

    Attributes
    ----------
    rows, scores : SparseRows, (n_pairs,)
        Rows, and the output array of their out-of-fold scores; empty if no scores are requested.
    weights : bool
        Keep the weights of the last model.
    """

    rows: SparseRows
    scores: FloatArray
    weights: bool

    @classmethod
    def weights_only(cls) -> RequestedOutputs:
        """Request weights and no scores."""
        nothing, nowhere = np.empty(0), np.empty(0, dtype=np.intp)
        indices: Any = np.empty(0, dtype=np.int32)  # as in CSR rows: the kernel is compiled once
        rows = SparseRows(nothing, indices, indices, nowhere, nowhere, nothing, nowhere, all_counted=True)
        return cls(rows, nothing, weights=True)


class VisitedNodes(NamedTuple):
    """Results of one batch of visits.

    Attributes
    ----------
    feature, value : (n_entries,)
        Active features of the nodes, and their weights minus the background.
    pending : Subtrees
        Merged subtrees whose parents are not among these nodes.
    """

    nodes: IntArray
    feature: Any
    value: FloatArray
    pending: Subtrees


@dataclass(frozen=True)
class BottomUpPass:
    """All nodes to be trained, each with one model per fold that is left out.

    Attributes
    ----------
    sides : Sides
        Training rows of the last model.
    sizes, max_sizes : (n_nodes,)
        Number of active features of the last model (written when a node is visited), and its upper bound.
    spare : list of Workspace
        Workspaces that no worker is using.
    """

    counts: SparseCounts
    models: Models
    sides: Sides
    sizes: IntArray
    max_sizes: IntArray
    spare: list[Workspace] = field(default_factory=list)

    @classmethod
    def of(cls, counts: SparseCounts, left_out: Sequence[int | None]) -> BottomUpPass:
        """Prepare a pass whose models leave out the given folds (None: no fold)."""
        sides, background = zip(*[counts.background(fold) for fold in left_out], strict=True)
        models = Models(
            np.array([-1 if fold is None else fold for fold in left_out]),
            np.stack([each.of_side for each in background], axis=1),
            np.stack([each.intercept for each in background], axis=1),
            np.stack([each.weight for each in background], axis=1),
            np.stack([each.is_trained for each in sides], axis=1),
        )
        offsets, task = counts.offsets[:: counts.groups.n_folds], counts.task
        max_sizes = np.minimum(offsets[task.stop] - offsets[task.start], len(counts.alpha))
        return cls(counts, models, sides[-1], np.empty_like(max_sizes), max_sizes)

    def visit_all(self, requested: RequestedOutputs, context: Context, title: str) -> list[VisitedNodes]:
        """Visit all nodes.

        Sums are always merged child by child, so results are bitwise the same for any number of workers.
        """
        n_jobs, progress = context.n_jobs, context.progress(title)
        leaf_size = np.diff(self.counts.offsets[:: self.counts.groups.n_folds])
        plan = VisitPlan.of(self.counts.task, leaf_size, len(self.counts.alpha), n_jobs)

        def visit(some: VisitBatches, subtrees: Subtrees, span: tuple[float, float]) -> list[VisitedNodes]:
            work, arguments = self._worker(requested, some, subtrees), [(batch,) for batch in some.batches]
            visited: list[VisitedNodes] = run(
                work, arguments, n_jobs=n_jobs, progress=progress, span=span, shared_memory=True
            )
            return visited

        none = Subtrees.allocate(len(self.models.left_out), 0, 0)
        visited = visit(plan.small_subtrees(n_jobs), none, (0.0, plan.small_subtree_share))
        subtrees = _concatenate([none, *(each.pending for each in visited)])
        return visited + visit(plan.upper_nodes(n_jobs), subtrees, (plan.small_subtree_share, 1.0))

    def _worker(
        self, requested: RequestedOutputs, some: VisitBatches, subtrees: Subtrees
    ) -> Callable[[range], VisitedNodes]:
        """Return the function that visits one batch of nodes."""
        counts, visits, models = self.counts, some.visits, self.models
        given = counts.smoothing.rule, counts.alpha, counts.active, visits, subtrees, models, requested.rows

        def work(batch: range) -> VisitedNodes:
            space = self._workspace()._replace(pending=some.allocate(batch, len(models.left_out)))
            nodes = visits.node[batch.start : batch.stop]
            nodes = nodes[(nodes >= 0) & (visits.given[batch.start : batch.stop] < 0)]
            room = self.max_sizes[nodes].sum() if requested.weights else 0
            kept = KeptWeights(self.sizes, np.empty(room, dtype=np.int32), np.empty(room))
            span = some.first_merge(batch), batch.start, batch.stop
            n = visit_nodes(*given, *span, space, kept, requested.scores)
            self.spare.append(space)
            return VisitedNodes(nodes, kept.feature[:n], kept.value[:n], space.pending.first(space.cursor[0]))

        return work

    def _workspace(self) -> Workspace:
        """Return a workspace that no worker is using."""
        try:
            return self.spare.pop()
        except IndexError:
            return Workspace.blank(len(self.counts.alpha), len(self.models.left_out))

    def weights(self, visited: list[VisitedNodes]) -> SparseWeights:
        """Collect the last model of each node after the pass; empties the list to free memory."""
        nodes = np.concatenate([each.nodes for each in visited])
        begin = np.empty_like(self.sizes)
        begin[nodes] = np.cumsum(self.sizes[nodes]) - self.sizes[nodes]
        feature = np.concatenate([each.feature for each in visited])
        value = np.concatenate([each.value for each in visited])
        visited.clear()
        offsets = np.empty(len(self.counts.alpha) + 1, dtype=np.intp)
        node: Any = np.empty(len(feature), dtype=np.int32)
        node_value = np.empty(len(feature))
        by_feature(begin, self.sizes, feature, value, offsets, node, node_value)
        is_trained = self.sides.is_trained
        intercept = np.where(is_trained, self.models.intercept[:, -1], self.sides.constant)
        background = np.where(is_trained, self.models.background[:, -1], 0.0)
        return SparseWeights(intercept, background, is_trained, offsets, node, node_value)


def _concatenate(subtrees: list[Subtrees]) -> Subtrees:
    """Concatenate sets of subtrees."""
    sizes = np.concatenate([np.diff(each.offsets) for each in subtrees])
    return Subtrees(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([each.feature for each in subtrees]),
        np.concatenate([each.total for each in subtrees], axis=1),
    )
