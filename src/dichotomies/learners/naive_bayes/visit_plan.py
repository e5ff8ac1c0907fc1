"""Visiting order of sparse nodes: small subtrees first, in parallel, then the nodes above them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from dichotomies._common.parallel import even_batches
from dichotomies._common.typing import BoolArray, IntArray
from dichotomies._kernels.naive_bayes.sparse_models import Visits
from dichotomies._kernels.naive_bayes.sparse_sides import Subtrees
from dichotomies.rows import NodeTask

#: A subtree is small if its work is at most ``1 / (_SUBTREES_PER_JOB * n_jobs)`` of the root's.
_SUBTREES_PER_JOB = 4
#: Batches of upper nodes per worker; each batch repeats the merges of those before it.
_UPPER_BATCHES_PER_JOB = 2


class VisitBatches(NamedTuple):
    """A subset of the visits, in batches that workers take.

    Attributes
    ----------
    pending_growth : (n_visits,)
        Upper bound on the change in the number of pending features at each visit.
    """

    visits: Visits
    pending_growth: IntArray
    batches: list[range]

    def first_merge(self, batch: range) -> int:
        """Return the visit at which merging must begin so that all subtrees below a batch are pending."""
        leftmost = self.visits.start[batch.start : batch.stop].min()
        return int(np.searchsorted(self.visits.stop, leftmost, side="right"))

    def allocate(self, batch: range, n_models: int) -> Subtrees:
        """Allocate memory for the most features that can be pending at once."""
        growth = self.pending_growth[self.first_merge(batch) : batch.stop]
        return Subtrees.allocate(n_models, len(growth), int(np.cumsum(growth).max()))


class VisitPlan(NamedTuple):
    """All visits, in post-order.

    Attributes
    ----------
    work : (n_visits,)
        Number of active features of the node's leaves, summed over leaves.
    max_features, max_child_features : (n_visits,)
        Upper bound on the number of distinct active features of the node, and of its pending subtrees.
    is_large, is_subtree_root : (n_visits,)
        True for nodes above the small subtrees; true for the root of a small subtree.
    """

    visits: Visits
    work: IntArray
    max_features: IntArray
    max_child_features: IntArray
    is_large: BoolArray
    is_subtree_root: BoolArray

    @classmethod
    def of(cls, task: NodeTask, leaf_size: IntArray, n_features: int, n_jobs: int | None) -> VisitPlan:
        """Plan the visits of a task.

        Parameters
        ----------
        leaf_size : (n_leaves,)
            Number of active features of each leaf.
        """
        tree = task.tree
        order = np.lexsort((-tree.start, tree.stop))  # post-order, from left to right
        is_visited = _is_visited(task, order)
        order = order[is_visited[order]]
        before = np.concatenate([[0], np.cumsum(leaf_size)])
        work = (before[tree.stop] - before[tree.start]) * is_visited
        max_features = np.minimum(work, n_features)
        is_large = _SUBTREES_PER_JOB * effective_n_jobs(n_jobs) * work > work.max()
        is_small = np.append(is_visited & ~is_large, False)  # the last entry stands for parent -1
        is_subtree_root = is_small[:-1] & ~is_small[tree.parent]
        place = np.full(tree.n_nodes, -1)
        place[slice(None) if task.nodes is None else task.nodes] = np.arange(task.n_nodes)
        left, right = np.maximum(tree.left, 0), np.maximum(tree.right, 0)
        pending = (tree.left >= 0) & is_visited[left], (tree.right >= 0) & is_visited[right]
        max_child_features = max_features[left] * pending[0] + max_features[right] * pending[1]
        ranges = tree.start[order], tree.split[order], tree.stop[order]
        visits = Visits(place[order], np.full(len(order), -1), *ranges, pending[0][order], pending[1][order])
        per_node = work, max_features, max_child_features, is_large, is_subtree_root
        return cls(visits, *(values[order] for values in per_node))

    @property
    def small_subtree_share(self) -> float:
        """Fraction of the work that is in small subtrees."""
        return float(self.work[~self.is_large].sum() / max(1, self.work.sum()))

    def small_subtrees(self, n_jobs: int | None) -> VisitBatches:
        """Visits of the small subtrees; a subtree is never divided between batches."""
        is_small = ~self.is_large
        edges = np.concatenate([[0], np.flatnonzero(self.is_subtree_root[is_small]) + 1])
        batches = even_batches(self.work[self.is_subtree_root], n_jobs) if self.is_subtree_root.any() else []
        return VisitBatches(
            _select(self.visits, is_small),
            (self.max_features - self.max_child_features)[is_small],
            [range(edges[batch.start], edges[batch.stop]) for batch in batches],
        )

    def upper_nodes(self, n_jobs: int | None) -> VisitBatches:
        """Visits of the nodes above the small subtrees, which have been merged before."""
        chosen = self.is_large | self.is_subtree_root
        is_given = self.is_subtree_root[chosen]
        visits = _select(self.visits, chosen)._replace(given=np.where(is_given, np.cumsum(is_given) - 1, -1))
        pending_growth = self.max_features[chosen] - np.where(is_given, 0, self.max_child_features[chosen])
        work = np.where(is_given, 0, self.work[chosen])
        batches = even_batches(work, n_jobs, _UPPER_BATCHES_PER_JOB) if self.is_large.any() else []
        return VisitBatches(visits, pending_growth, batches)


def _select(visits: Visits, chosen: BoolArray) -> Visits:
    """Select some of the visits."""
    return visits._replace(**{name: values[chosen] for name, values in visits._asdict().items()})


def _is_visited(task: NodeTask, post_order: IntArray) -> BoolArray:
    """Mark the nodes of the tree that are trained, or lie between trained nodes."""
    tree = task.tree
    if task.nodes is None:
        return np.ones(tree.n_nodes, dtype=bool)
    is_visited = np.zeros(tree.n_nodes, dtype=bool)
    is_visited[task.nodes] = True
    trained = np.concatenate([[0], np.cumsum(is_visited[post_order])])
    end = np.empty_like(post_order)
    end[post_order] = np.arange(1, tree.n_nodes + 1)
    has_trained = trained[end] > trained[end - (tree.stop - tree.start - 1)]  # subtrees are contiguous
    for node in np.flatnonzero(has_trained & ~is_visited).tolist():  # parents come first
        is_visited[node] = node > 0 and is_visited[tree.parent[node]]
    return is_visited
