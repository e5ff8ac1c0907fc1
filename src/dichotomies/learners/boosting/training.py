"""Training boosted trees at some nodes: on all rows, without each of several folds, stopping early."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dichotomies._common.parallel import even_batches, run
from dichotomies.learners.boosting.nodes import train_nodes
from dichotomies.learners.boosting.trees import BoostedTrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.progress import Reporter
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies._kernels.boosting.local_rows import Bins
    from dichotomies._kernels.boosting.room import Ranges
    from dichotomies._kernels.boosting.sparse_rows import SparseBins
    from dichotomies.learners.boosting.base import HistBoostClassifier
    from dichotomies.learners.boosting.binning import Binning
    from dichotomies.learners.boosting.nodes import HeldOut

#: Stands for no fold left out.
NONE = -1

#: Weights beyond this count as this in the number of rows.
_MOST = 2.0**40

#: Folds by which the number of trees is chosen where rows are not divided already.
_N_FOLDS = 3


class SortedRows(NamedTuple):
    """Binned rows, sorted by leaf of the class tree, and the nodes to train on them.

    Attributes
    ----------
    weight : (n_rows,)
    fold : (n_rows,) or None
    """

    binning: Binning
    bins: Bins | SparseBins
    ranges: Ranges
    weight: FloatArray
    fold: IntArray | None = None


def train_models(
    estimator: HistBoostClassifier,
    rows: SortedRows,
    left_out: Sequence[int],
    n_jobs: int | None = None,
    progress: Reporter | None = None,
) -> tuple[list[BoostedTrees], FloatArray]:
    """Train one model for each fold left out, `NONE` for none.

    Returns
    -------
    models : list of BoostedTrees
    scores : (n_pairs,)
        Log-odds of the nodes' own rows, node after node, by the models that were trained without them, before
        stopping early; otherwise NaN.
    """
    folds = [fold for fold in left_out if fold != NONE]
    if not estimator.stops_early:
        models, held = _train(estimator, rows, left_out, n_jobs, progress)
        return models, _scores([each for fold, each in zip(left_out, held, strict=True) if fold in folds])
    if rows.fold is None:  # rows of one class are neighbours: every fold has a third of each
        rows = rows._replace(fold=np.arange(len(rows.weight)) % _N_FOLDS)
    folds = sorted(set(rows.fold.tolist())) if rows.fold is not None else []
    wanted = [*folds, *([NONE] if NONE in left_out else [])]
    models, held = _train(estimator, rows, wanted, n_jobs, progress)
    n_trees = _sum_of_losses(held[: len(folds)]).argmin(axis=1)
    by_fold = {fold: model.truncated(n_trees) for fold, model in zip(wanted, models, strict=True)}
    return [by_fold[fold] for fold in left_out], _scores(held[: len(folds)])


def _train(
    estimator: HistBoostClassifier,
    rows: SortedRows,
    left_out: Sequence[int],
    n_jobs: int | None,
    progress: Reporter | None,
) -> tuple[list[BoostedTrees], list[list[HeldOut]]]:
    """Train one model for each fold left out; batches of nodes are trained in parallel."""
    sizes = rows.ranges.end - rows.ranges.begin
    batches = even_batches(sizes, n_jobs)

    def train(nodes: range, excluded: int) -> tuple[BoostedTrees, HeldOut]:
        mine = rows.ranges.take(slice(nodes.start, nodes.stop))
        is_used = True if rows.fold is None else rows.fold != excluded
        # a row of weight 2 counts as two
        before = np.concatenate([[0], np.cumsum(np.where(is_used, np.minimum(rows.weight, _MOST), 0))])
        boosting = estimator.boosting_parameters(
            before[mine.end] - before[mine.begin], rows.bins.is_categorical
        )
        return train_nodes(
            rows.binning, rows.bins, mine, boosting, rows.weight, rows.fold, excluded, estimator.stops_early
        )

    work = [(batch, excluded) for excluded in left_out for batch in batches]
    done = run(train, work, n_jobs=n_jobs, progress=progress, shared_memory=True)
    by_model = [done[i : i + len(batches)] for i in range(0, len(done), len(batches))]
    models = [BoostedTrees.joined([trees for trees, _ in each]) for each in by_model]
    return models, [[held for _, held in each] for each in by_model]


def _scores(held: Sequence[Sequence[HeldOut]]) -> FloatArray:
    """Scores of all rows, each by the model that was trained without it."""
    scores = np.empty(0)
    for i, batches in enumerate(held):
        of_model = np.concatenate([batch.scores for batch in batches])
        scores = of_model if i == 0 else np.where(np.isnan(of_model), scores, of_model)
    return scores


def _sum_of_losses(held: Sequence[Sequence[HeldOut]]) -> FloatArray:
    """Loss of each node's rows by the number of trees, summed over the folds.

    Fewer trees than in another fold or batch: the last one's loss stays.
    """
    width = max(batch.losses.shape[1] for batches in held for batch in batches)
    sums: FloatArray = sum(
        np.concatenate([np.pad(b.losses, ((0, 0), (0, width - b.losses.shape[1])), "edge") for b in batches])
        for batches in held
    )  # type: ignore[assignment]
    return sums
