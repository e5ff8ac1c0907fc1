"""Some nodes of a task at a time: what a worker of a cluster returns of the nodes it has trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._common.parallel import even_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies._kernels.newton.node import Results
    from dichotomies.learners.logistic.training import NodeTraining

#: Seconds per number in the rows of a node, member and strength of the penalty, to see if a cluster pays.
_SECONDS = 3e-9


class Part(NamedTuple):
    """Results of some nodes, in ascending order; see `Results`.

    Attributes
    ----------
    weights : object
        What the solvers of dense, or of sparse rows make of them.
    """

    intercept: FloatArray
    n_steps: IntArray
    scores: FloatArray
    nll: FloatArray
    weights: Any

    @classmethod
    def of(cls, which: IntArray, results: Results, weights: Any) -> Part:
        """Take the results of some nodes, which are all that were scored."""
        own = results.intercept[:, which], results.n_steps[:, which], results.scores, results.nll[which]
        return cls(*own, weights)

    def put(self, which: IntArray, results: Results, size: IntArray) -> None:
        """Write the results of some nodes to those of all, which have these numbers of rows."""
        results.intercept[:, which], results.n_steps[:, which] = self.intercept, self.n_steps
        results.nll[which] = self.nll
        ends = np.cumsum(size[which]) if len(self.scores) else np.zeros(len(which), dtype=np.intp)
        for k, scores in zip(which, np.split(self.scores, ends[:-1]), strict=True):
            results.scores[results.pair_offsets[k] : results.pair_offsets[k] + len(scores)] = scores


def results_of(which: IntArray, empty: Results, size: IntArray) -> Results:
    """Copy of empty results, with room for the scores of some nodes only."""
    own = np.zeros_like(size)
    own[which] = size[which] if len(empty.scores) else 0
    return empty._replace(
        intercept=empty.intercept.copy(),
        n_steps=empty.n_steps.copy(),
        scores=np.full(own.sum(), np.nan),
        pair_offsets=np.cumsum(own) - own,
        nll=empty.nll.copy(),
    )


def on_cluster(
    training: NodeTraining,
    train: Callable[[NodeTraining, IntArray], Part],
    which: IntArray,
    results: Results,
) -> Iterator[tuple[IntArray, Any]] | None:
    """Train nodes in batches on the active cluster; None where they are to be trained here.

    Returns
    -------
    iterator
        The nodes of each batch, and their weights; everything else is written to `results`.
    """
    base, size, context = training.task.rows.base, training.task.node_size[which], training.context
    numbers_per_row = base.size / max(1, base.shape[0])  # of a sparse matrix, its entries
    seconds = _SECONDS * numbers_per_row * training.n_members * training.C.shape[1] * size
    if not len(which) or context.cluster(float(seconds.sum())) is None:
        return None
    ranges = even_batches(size, context.n_jobs)
    batches = [which[each.start : each.stop] for each in ranges]
    costs = [float(seconds[each.start : each.stop].sum()) for each in ranges]
    work = f"training {training.task.n_nodes} nodes"
    done = context.map(train, training, [(batch,) for batch in batches], costs, work=work)
    for batch, part in zip(batches, done, strict=True):
        part.put(batch, results, training.task.node_size)
    return iter([(batch, part.weights) for batch, part in zip(batches, done, strict=True)])
