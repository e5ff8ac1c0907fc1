"""Logistic regressions on a Dask or Ray cluster: workers train batches of nodes, put together here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.parallel import even_batches
from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.newton.node import Results
from dichotomies._kernels.newton.sparse import Entries
from dichotomies.learners.logistic.dense import DenseRoom, train_here
from dichotomies.learners.logistic.sparse import by_kernels
from dichotomies.learners.logistic.training import NodeTraining


class Part(NamedTuple):
    """Results of some nodes, in ascending order; see `Results`.

    Attributes
    ----------
    weights : object
        Weights, as the solvers of dense or of sparse rows store them.
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


def train_dense(training: NodeTraining, which: IntArray, results: Results, room: DenseRoom) -> IntArray:
    """Train nodes on dense rows; return those that no kernel solved."""
    unsolved = []
    for batch, (is_along, along, others, left) in _batches(training, train_dense_part, which, results):
        room.is_along[batch] = is_along
        room.along[:, batch[is_along]], room.weights[:, batch[~is_along]] = along, others
        unsolved.append(left)
    return np.sort(np.concatenate(unsolved))


def train_sparse(training: NodeTraining, which: IntArray, results: Results) -> Entries:
    """Train nodes on sparse rows."""
    parts = _batches(training, train_sparse_part, which, results)
    active, feature, value = zip(*(weights for _, weights in parts), strict=True)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(active))])
    return Entries(offsets, np.concatenate(feature), np.concatenate(value, axis=1))


def _batches(
    training: NodeTraining,
    train: Callable[[NodeTraining, IntArray], Part],
    which: IntArray,
    results: Results,
) -> list[tuple[IntArray, Any]]:
    """Train nodes in batches; return the nodes of each and their weights, and write the rest to `results`."""
    size, context = training.task.node_size, training.context
    seconds = training.seconds(which)
    ranges = even_batches(size[which], context.n_jobs)
    batches = [which[each.start : each.stop] for each in ranges]
    costs = [float(seconds[each.start : each.stop].sum()) for each in ranges]
    work = f"training {training.task.n_nodes} nodes"
    parts = context.map(train, training, [(batch,) for batch in batches], costs, work=work)
    for batch, part in zip(batches, parts, strict=True):
        part.put(batch, results, size)
    return [(batch, part.weights) for batch, part in zip(batches, parts, strict=True)]


def train_dense_part(training: NodeTraining, which: IntArray) -> Part:
    """Train some nodes on dense rows, on a worker."""
    results, room = training.results_of(which), DenseRoom.around(training.no_weights())
    left = train_here(training, which, results, room)
    is_along = room.is_along[which]
    along, others = room.along[:, which[is_along]], room.weights[:, which[~is_along]]
    return Part.of(which, results, (is_along, along, others, left))


def train_sparse_part(training: NodeTraining, which: IntArray) -> Part:
    """Train some nodes on sparse rows, on a worker."""
    results = training.results_of(which)
    offsets, feature, value = by_kernels(training, which, results)
    return Part.of(which, results, (np.diff(offsets)[which], feature, value))
