"""In which order sparse nodes are visited: small subtrees first, each by itself, then the nodes above."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from dichotomies._common.parallel import even_batches
from dichotomies._kernels.naive_bayes.sparse_models import Visits
from dichotomies._kernels.naive_bayes.sparse_sides import Subtrees

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, IntArray
    from dichotomies.learners.base import NodeTask

#: A subtree is small if it has at most one of so many parts, per worker, of what there is to merge.
_PARTS_PER_JOB = 4
#: Into how many batches the nodes above are cut, per worker; a batch repeats what was merged before it.
_BATCHES_ABOVE = 2


class Stage(NamedTuple):
    """Some of the visits, in batches.

    Attributes
    ----------
    more_pending : (n_visits,)
        How many more features may be pending after each visit than before.
    """

    visits: Visits
    more_pending: IntArray
    batches: list[range]

    def begin(self, batch: range) -> int:
        """The visit from which on subtrees must be merged, so that what is below a batch is pending."""
        leftmost = self.visits.start[batch.start : batch.stop].min()
        return int(np.searchsorted(self.visits.stop, leftmost, side="right"))

    def room(self, batch: range, n_models: int) -> Subtrees:
        """For all that will be pending at a time."""
        more = self.more_pending[self.begin(batch) : batch.stop]
        return Subtrees.room(n_models, len(more), int(np.cumsum(more).max()))


class Route(NamedTuple):
    """All visits.

    Attributes
    ----------
    work : (n_visits,)
        How many features there are to merge, leaf by leaf.
    most, most_below : (n_visits,)
        How many different ones there may be, and in the pending subtrees below.
    is_large, is_top : (n_visits,)
        Whether a node is above small subtrees; whether it is the topmost of one.
    """

    visits: Visits
    work: IntArray
    most: IntArray
    most_below: IntArray
    is_large: BoolArray
    is_top: BoolArray

    @classmethod
    def of(cls, task: NodeTask, leaf_size: IntArray, n_features: int, n_jobs: int | None) -> Route:
        """Plan.

        Parameters
        ----------
        leaf_size : (n_leaves,)
            How many features there are to merge.
        """
        tree = task.tree
        order = np.lexsort((-tree.start, tree.stop))  # children before their parents, from left to right
        is_visited = _is_visited(task, order)
        order = order[is_visited[order]]
        before = np.concatenate([[0], np.cumsum(leaf_size)])
        work = (before[tree.stop] - before[tree.start]) * is_visited
        most = np.minimum(work, n_features)
        is_large = _PARTS_PER_JOB * effective_n_jobs(n_jobs) * work > work.max()
        is_small = np.append(is_visited & ~is_large, False)  # the last entry answers parent -1
        is_top = is_small[:-1] & ~is_small[tree.parent]
        place = np.full(tree.n_nodes, -1)
        place[slice(None) if task.nodes is None else task.nodes] = np.arange(task.n_nodes)
        left, right = np.maximum(tree.left, 0), np.maximum(tree.right, 0)
        pending = (tree.left >= 0) & is_visited[left], (tree.right >= 0) & is_visited[right]
        most_below = most[left] * pending[0] + most[right] * pending[1]
        ranges = tree.start[order], tree.split[order], tree.stop[order]
        visits = Visits(place[order], np.full(len(order), -1), *ranges, pending[0][order], pending[1][order])
        return cls(visits, work[order], most[order], most_below[order], is_large[order], is_top[order])

    @property
    def share_below(self) -> float:
        """Which part of the work is to be done in small subtrees."""
        return float(self.work[~self.is_large].sum() / max(1, self.work.sum()))

    def below(self, n_jobs: int | None) -> Stage:
        """The small subtrees, in batches of whole ones."""
        is_small = ~self.is_large
        edges = np.concatenate([[0], np.flatnonzero(self.is_top[is_small]) + 1])
        batches = even_batches(self.work[self.is_top], n_jobs) if self.is_top.any() else []
        return Stage(
            _some(self.visits, is_small),
            (self.most - self.most_below)[is_small],
            [range(edges[batch.start], edges[batch.stop]) for batch in batches],
        )

    def above(self, n_jobs: int | None) -> Stage:
        """The nodes above the small subtrees, which are given."""
        chosen = self.is_large | self.is_top
        is_given = self.is_top[chosen]
        visits = _some(self.visits, chosen)._replace(given=np.where(is_given, np.cumsum(is_given) - 1, -1))
        more_pending = self.most[chosen] - np.where(is_given, 0, self.most_below[chosen])
        work = np.where(is_given, 0, self.work[chosen])
        batches = even_batches(work, n_jobs, _BATCHES_ABOVE) if self.is_large.any() else []
        return Stage(visits, more_pending, batches)


def _some(visits: Visits, chosen: BoolArray) -> Visits:
    """Some of the visits."""
    return visits._replace(**{name: values[chosen] for name, values in visits._asdict().items()})


def _is_visited(task: NodeTask, post_order: IntArray) -> BoolArray:
    """Whether each node of the tree is to be trained, or lies between nodes to be trained."""
    tree = task.tree
    if task.nodes is None:
        return np.ones(tree.n_nodes, dtype=bool)
    is_visited = np.zeros(tree.n_nodes, dtype=bool)
    is_visited[task.nodes] = True
    trained = np.concatenate([[0], np.cumsum(is_visited[post_order])])
    end = np.empty_like(post_order)
    end[post_order] = np.arange(1, tree.n_nodes + 1)
    has_trained = trained[end] > trained[end - (tree.stop - tree.start - 1)]  # a subtree comes in a row
    for node in np.flatnonzero(has_trained & ~is_visited).tolist():  # parents come first
        is_visited[node] = node > 0 and is_visited[tree.parent[node]]
    return is_visited
