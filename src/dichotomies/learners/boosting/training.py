"""Training boosted trees at some nodes: on all rows, without each of several folds, stopping early."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dichotomies._common.parallel import Context, even_batches
from dichotomies._kernels.boosting.gradient import GradientBoosting
from dichotomies._kernels.boosting.local_rows import Bins
from dichotomies.learners.boosting.nodes import is_quick, train_nodes
from dichotomies.learners.boosting.trees import BoostedTrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies._kernels.boosting.room import Ranges
    from dichotomies._kernels.boosting.sparse_rows import SparseBins
    from dichotomies.learners.boosting.base import HistBoostClassifier
    from dichotomies.learners.boosting.binning import Binning
    from dichotomies.learners.boosting.nodes import HeldOut

#: Stands for no fold left out.
NONE = -1

#: Weights beyond this count as this in the number of rows.
_MOST = 2.0**40

#: Seconds per row, feature and tree, to see if a cluster pays.
_SECONDS = 3e-9

#: Folds by which the number of trees is chosen where rows are not divided already.
_N_FOLDS = 3


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Binned rows, sorted by leaf of the class tree, and the nodes to train on them.

    Attributes
    ----------
    unsorted : Bins or SparseBins
        Rows in any order, as several trees share them.
    order : (n_rows,)
        The rows by leaf.
    weight : (n_rows,)
        Sorted by leaf.
    fold : (n_rows,) or None
        Sorted by leaf.
    """

    binning: Binning
    unsorted: Bins | SparseBins
    order: IntArray
    ranges: Ranges
    weight: FloatArray
    fold: IntArray | None = None

    @cached_property
    def bins(self) -> Bins | SparseBins:
        """Rows sorted by leaf."""
        return self.unsorted.take(self.order)


def train_models(
    estimator: HistBoostClassifier,
    rows: SortedRows,
    left_out: Sequence[int],
    context: Context,
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
        models, held = _train(estimator, rows, left_out, context)
        return models, _scores([each for fold, each in zip(left_out, held, strict=True) if fold in folds])
    if rows.fold is None:  # rows of one class are neighbours: every fold has a third of each
        rows = replace(rows, fold=np.arange(len(rows.weight)) % _N_FOLDS)
    folds = sorted(set(rows.fold.tolist())) if rows.fold is not None else []
    wanted = [*folds, *([NONE] if NONE in left_out else [])]
    models, held = _train(estimator, rows, wanted, context)
    n_trees = _sum_of_losses(held[: len(folds)]).argmin(axis=1)
    by_fold = {fold: model.truncated(n_trees) for fold, model in zip(wanted, models, strict=True)}
    return [by_fold[fold] for fold in left_out], _scores(held[: len(folds)])


def _train(
    estimator: HistBoostClassifier, rows: SortedRows, left_out: Sequence[int], context: Context
) -> tuple[list[BoostedTrees], list[list[HeldOut]]]:
    """Train one model for each fold left out; batches of nodes are trained in parallel."""
    sizes = rows.ranges.end - rows.ranges.begin
    batches = even_batches(sizes, context.n_jobs)
    work = [(batch, excluded) for excluded in left_out for batch in batches]
    is_categorical = rows.unsorted.is_categorical
    boosting = estimator.boosting_parameters(sizes.astype(np.float64), is_categorical)
    small = is_quick(sizes, len(is_categorical), boosting)
    of_node = _SECONDS * len(is_categorical) * boosting.n_estimators * sizes
    shares = {each: 1.0 if rows.fold is None else float(np.mean(rows.fold != each)) for each in left_out}
    seconds = [shares[each] * float(of_node[batch.start : batch.stop].sum()) for batch, each in work]
    models = "" if len(left_out) == 1 else f" of {len(left_out)} models"
    done = context.map(
        _train_batch,
        (estimator, rows, small),
        work,
        seconds,
        work=f"training {len(sizes)} nodes{models}",
        is_divisible=isinstance(boosting, GradientBoosting) and isinstance(rows.unsorted, Bins) and not small,
    )
    by_model = [done[i : i + len(batches)] for i in range(0, len(done), len(batches))]
    trained = [BoostedTrees.joined(rows.binning, [trees for trees, _ in each]) for each in by_model]
    return trained, [[held for _, held in each] for each in by_model]


def _train_batch(
    shared: tuple[HistBoostClassifier, SortedRows, bool], nodes: range, excluded: int, n_threads: int = 1
) -> tuple[BoostedTrees, HeldOut]:
    """Train some nodes without the rows of a fold."""
    estimator, rows, small = shared
    mine = rows.ranges.take(slice(nodes.start, nodes.stop))
    is_used = True if rows.fold is None else rows.fold != excluded
    # a row of weight 2 counts as two
    before = np.concatenate([[0], np.cumsum(np.where(is_used, np.minimum(rows.weight, _MOST), 0))])
    n_rows = before[mine.end] - before[mine.begin]
    boosting = estimator.boosting_parameters(n_rows, rows.bins.is_categorical)
    given = rows.weight, rows.fold, excluded, estimator.stops_early, small, n_threads
    return train_nodes(rows.bins, mine, boosting, *given)


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
