"""Models of sparse nodes, made from the leaves up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._common.parallel import run
from dichotomies._kernels.naive_bayes.sparse_models import Kept, Models, Rows, visit_nodes
from dichotomies._kernels.naive_bayes.sparse_nodes import by_feature
from dichotomies._kernels.naive_bayes.sparse_sides import Subtrees, Workspace
from dichotomies.learners.naive_bayes.route import Route
from dichotomies.learners.weights import SparseWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.learners.base import Effort
    from dichotomies.learners.naive_bayes.groups import Sides
    from dichotomies.learners.naive_bayes.route import Stage
    from dichotomies.learners.naive_bayes.sparse import SparseCounts


class Asked(NamedTuple):
    """What is wanted of the nodes.

    Attributes
    ----------
    rows, scores : Rows, (n_pairs,)
        Rows, and where to write their scores by the models that have not seen them; or none.
    weights : bool
        Whether to keep the weights of the last model.
    """

    rows: Rows
    scores: FloatArray
    weights: bool

    @classmethod
    def weights_alone(cls) -> Asked:
        """No scores."""
        nothing, nowhere = np.empty(0), np.empty(0, dtype=np.intp)
        indices: Any = np.empty(0, dtype=np.int32)  # as rows have them: one kernel does for both
        rows = Rows(nothing, indices, indices, nowhere, nowhere, nothing, nowhere, all_counted=True)
        return cls(rows, nothing, weights=True)


class Part(NamedTuple):
    """Nodes that were visited, one after another.

    Attributes
    ----------
    feature, value : (n_entries,)
        Their active features, and how far the weights of these are from the background.
    pending : Subtrees
        What was merged, and is not below another of these nodes.
    """

    nodes: IntArray
    feature: Any
    value: FloatArray
    pending: Subtrees


@dataclass(frozen=True)
class Ascent:
    """All nodes to be trained, each with one model for each fold that may be left out.

    Attributes
    ----------
    sides : Sides
        What the last model has seen.
    sizes, most : (n_nodes,)
        How many active features the last model has, which is written when a node is visited, and may have.
    spare : list of Workspace
        Those that no worker is using.
    """

    counts: SparseCounts
    models: Models
    sides: Sides
    sizes: IntArray
    most: IntArray
    spare: list[Workspace] = field(default_factory=list)

    @classmethod
    def of(cls, counts: SparseCounts, left_out: Sequence[int | None]) -> Ascent:
        """Before the first visit."""
        sides, background = zip(*[counts.background(fold) for fold in left_out], strict=True)
        models = Models(
            np.array([-1 if fold is None else fold for fold in left_out]),
            np.stack([each.of_side for each in background], axis=1),
            np.stack([each.intercept for each in background], axis=1),
            np.stack([each.weight for each in background], axis=1),
            np.stack([each.is_trained for each in sides], axis=1),
        )
        offsets, task = counts.offsets[:: counts.groups.n_folds], counts.task
        most = np.minimum(offsets[task.stop] - offsets[task.start], len(counts.alpha))
        return cls(counts, models, sides[-1], np.empty_like(most), most)

    def climb(self, asked: Asked, effort: Effort, title: str) -> list[Part]:
        """Visit all nodes.

        Whatever the number of workers, sums are merged child by child, so that it changes no bit of them.
        """
        n_jobs, progress = effort.n_jobs, effort.progress(title)
        leaf_size = np.diff(self.counts.offsets[:: self.counts.groups.n_folds])
        route = Route.of(self.counts.task, leaf_size, len(self.counts.alpha), n_jobs)

        def visit(stage: Stage, subtrees: Subtrees, span: tuple[float, float]) -> list[Part]:
            work, arguments = self._worker(asked, stage, subtrees), [(batch,) for batch in stage.batches]
            parts: list[Part] = run(
                work, arguments, n_jobs=n_jobs, progress=progress, span=span, shared_memory=True
            )
            return parts

        none = Subtrees.room(len(self.models.left_out), 0, 0)
        parts = visit(route.below(n_jobs), none, (0.0, route.share_below))
        subtrees = _joined([none, *(part.pending for part in parts)])
        return parts + visit(route.above(n_jobs), subtrees, (route.share_below, 1.0))

    def _worker(self, asked: Asked, stage: Stage, subtrees: Subtrees) -> Callable[[range], Part]:
        """What visits a batch of nodes."""
        counts, visits = self.counts, stage.visits
        given = counts.smoothing.rule, counts.alpha, counts.active, visits, subtrees, self.models, asked.rows

        def work(batch: range) -> Part:
            space = self._workspace()._replace(pending=stage.room(batch, len(self.models.left_out)))
            nodes = visits.node[batch.start : batch.stop]
            nodes = nodes[(nodes >= 0) & (visits.given[batch.start : batch.stop] < 0)]
            room = self.most[nodes].sum() if asked.weights else 0
            kept = Kept(self.sizes, np.empty(room, dtype=np.int32), np.empty(room))
            span = stage.begin(batch), batch.start, batch.stop
            n = visit_nodes(*given, *span, space, kept, asked.scores)
            self.spare.append(space)
            return Part(nodes, kept.feature[:n], kept.value[:n], space.pending.first(space.cursor[0]))

        return work

    def _workspace(self) -> Workspace:
        """One that no worker is using."""
        try:
            return self.spare.pop()
        except IndexError:
            return Workspace.blank(len(self.counts.alpha), len(self.models.left_out))

    def weights(self, parts: list[Part]) -> SparseWeights:
        """The last model of each node, when all is written; the list is emptied."""
        nodes = np.concatenate([part.nodes for part in parts])
        begin = np.empty_like(self.sizes)
        begin[nodes] = np.cumsum(self.sizes[nodes]) - self.sizes[nodes]
        feature = np.concatenate([part.feature for part in parts])
        value = np.concatenate([part.value for part in parts])
        parts.clear()
        offsets = np.empty(len(self.counts.alpha) + 1, dtype=np.intp)
        node: Any = np.empty(len(feature), dtype=np.int32)
        node_value = np.empty(len(feature))
        by_feature(begin, self.sizes, feature, value, offsets, node, node_value)
        is_trained = self.sides.is_trained
        intercept = np.where(is_trained, self.models.intercept[:, -1], self.sides.constant)
        background = np.where(is_trained, self.models.background[:, -1], 0.0)
        return SparseWeights(intercept, background, is_trained, offsets, node, node_value)


def _joined(subtrees: list[Subtrees]) -> Subtrees:
    """One after another."""
    sizes = np.concatenate([np.diff(each.offsets) for each in subtrees])
    return Subtrees(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([each.feature for each in subtrees]),
        np.concatenate([each.total for each in subtrees], axis=1),
    )
