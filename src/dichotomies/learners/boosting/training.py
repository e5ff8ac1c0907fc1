"""Training boosted trees at some nodes: on all rows, without each of several folds, stopping early."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._common.parallel import Context, even_batches
from dichotomies._kernels.boosting.boosting import (
    CATEGORICAL,
    AdaBoosting,
    Ensembles,
    allocate_ensembles,
    allocate_memory,
    boost_ada_nodes,
    boost_gradient_nodes,
)
from dichotomies._kernels.boosting.encoding import MISSING
from dichotomies._kernels.boosting.node_rows import Sample
from dichotomies._kernels.boosting.scoring import Splits, in_units, sum_trees
from dichotomies.learners.boosting.trees import BoostedTrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies._kernels.boosting.node_rows import Bins, Ranges
    from dichotomies.learners.boosting.base import HistBoostClassifier
    from dichotomies.learners.boosting.binning import Binning

#: Stands for no fold left out.
NONE = -1

#: Weights beyond this count as this in the number of rows; up to 2 to this power, they are used as they are.
_MOST, _USUAL_EXPONENT = 2.0**40, 100

#: Seconds per row, feature and tree, to see if a cluster pays.
_SECONDS = 3e-9

#: Folds by which the number of trees is chosen where rows are not divided already.
_N_FOLDS = 3


class HeldOut(NamedTuple):
    """Scores and losses of rows that the models were not trained on.

    Attributes
    ----------
    scores : (n_pairs,)
        Log-odds of the nodes' own rows, node after node; NaN where a row was trained on.
    losses : (n_nodes, n_estimators + 1) or (n_nodes, 0)
        Sum of their losses by the number of trees, if asked for.
    """

    scores: FloatArray
    losses: FloatArray


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Binned rows, sorted by leaf of the class tree, and the nodes to train on them.

    Attributes
    ----------
    unsorted : Bins
        Rows in any order, as several trees share them.
    order : (n_rows,)
        The rows by leaf.
    weight : (n_rows,)
        Sorted by leaf.
    fold : (n_rows,) or None
        Sorted by leaf.
    """

    binning: Binning
    unsorted: Bins
    order: IntArray
    ranges: Ranges
    weight: FloatArray
    fold: IntArray | None = None

    @cached_property
    def bins(self) -> Bins:
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
    of_node = _SECONDS * len(is_categorical) * boosting.n_estimators * sizes
    shares = {each: 1.0 if rows.fold is None else float(np.mean(rows.fold != each)) for each in left_out}
    seconds = [shares[each] * float(of_node[batch.start : batch.stop].sum()) for batch, each in work]
    models = "" if len(left_out) == 1 else f" of {len(left_out)} models"
    title = f"training {len(sizes)} nodes{models}"
    done = context.map(_train_batch, (estimator, rows), work, seconds, work=title)
    by_model = [done[i : i + len(batches)] for i in range(0, len(done), len(batches))]
    trained = [BoostedTrees.joined(rows.binning, [trees for trees, _ in each]) for each in by_model]
    return trained, [[held for _, held in each] for each in by_model]


def _train_batch(
    shared: tuple[HistBoostClassifier, SortedRows], nodes: range, excluded: int
) -> tuple[BoostedTrees, HeldOut]:
    """Train some nodes without the rows of a fold, which are scored."""
    estimator, rows = shared
    mine = rows.ranges.take(slice(nodes.start, nodes.stop))
    fold = np.zeros(len(rows.weight), dtype=np.intp) if rows.fold is None else rows.fold
    # a row of weight 2 counts as two
    before = np.concatenate([[0], np.cumsum(np.where(fold != excluded, np.minimum(rows.weight, _MOST), 0))])
    boosting = estimator.boosting_parameters(before[mine.end] - before[mine.begin], rows.bins.is_categorical)
    sample = Sample(_usual(rows.weight), fold, excluded)
    out = allocate_ensembles(rows.bins, mine, boosting)
    boost: Any = boost_ada_nodes if isinstance(boosting, AdaBoosting) else boost_gradient_nodes
    boost(boosting, rows.bins, sample, mine, allocate_memory(rows.bins, mine, boosting), out)
    most_trees = boosting.n_estimators if estimator.stops_early else None
    return _packed(out), _held_out(rows.bins, sample, mine, out, most_trees)


def _held_out(
    bins: Bins,
    sample: Sample,
    ranges: Ranges,
    out: Ensembles,
    most_trees: IntArray | None,
) -> HeldOut:
    """Scores of the rows of the fold left out, and their losses if the maximum numbers of trees are given."""
    n_nodes = len(ranges.begin)
    width = 0 if most_trees is None else int(most_trees.max(initial=0)) + 1
    losses = np.empty((n_nodes, width))
    if sample.left_out < 0:
        return HeldOut(np.empty(0), losses)
    offsets = np.concatenate([[0], np.cumsum(ranges.end - ranges.begin)])
    scores = np.full(offsets[-1], np.nan)
    trees = np.concatenate([[0], np.cumsum(out.n_trees)])
    splits = np.concatenate([[0], np.cumsum(out.n_splits[: trees[-1]])])
    missing = np.array([MISSING], dtype=np.uint8)
    held = np.flatnonzero(sample.fold == sample.left_out)
    places = np.searchsorted(held, ranges.begin), np.searchsorted(held, ranges.end)
    for k in range(n_nodes):
        rows, (t, u) = held[places[0][k] : places[1][k]], trees[k : k + 2]
        own, n_trees = slice(splits[t], splits[u]), u - t
        used, column = np.unique(out.feature[own], return_inverse=True)
        bits, of_split = (out.bits[own] if len(out.bits) else out.bits), np.arange(splits[u] - splits[t])
        parts = out.leaf[own], out.limit[own], out.kind[own], bits, of_split, splits[t : u + 1] - splits[t]
        ends = np.arange(n_trees + 1) if width else np.array([0, n_trees])  # losses are of each tree
        value, unit = in_units(out.value[splits[t] + t : splits[u] + u], parts[-1], ends)
        added = np.empty((len(rows), len(unit)))
        codes = bins.codes_of(rows, used.astype(np.intp))
        own_splits = Splits(column.astype(np.int32), *parts, missing)
        sum_trees(codes, own_splits, value, ends, np.zeros(len(unit)), out.scale[k] * unit, added)
        score = np.cumsum(np.column_stack([np.full(len(rows), out.base[k]), added]), axis=1)
        if width:
            margin = np.where(rows < ranges.split[k], score.T, -score.T)
            losses[k, : n_trees + 1] = np.logaddexp(0.0, -margin) @ sample.weight[rows]
            losses[k, n_trees + 1 :] = losses[k, n_trees]
        if out.is_trained[k]:
            scores[offsets[k] + rows - ranges.begin[k]] = score[:, -1]
    return HeldOut(scores, losses)


def _packed(out: Ensembles) -> BoostedTrees:
    """Copy what was written; the trees lack the edges of the bins, see `BoostedTrees.joined`."""
    t, s = out.written
    kind = out.kind[:s].copy()
    sets = out.bits[:s][kind == CATEGORICAL] if len(out.bits) else out.bits
    return BoostedTrees(
        features=np.empty(0, dtype=np.intp),
        edges=np.empty(0),
        edge_offsets=np.zeros(1, dtype=np.intp),
        is_categorical=np.empty(0, dtype=np.bool_),
        column=out.feature[:s].copy(),
        leaf=out.leaf[:s].copy(),
        limit=out.limit[:s].copy(),
        kind=kind,
        categories=sets.astype("<u8").view(np.uint8).reshape(-1, 32),
        split_offsets=np.concatenate([[0], np.cumsum(out.n_splits[:t])]),
        value=out.value[: s + t].copy(),
        tree_offsets=np.concatenate([[0], np.cumsum(out.n_trees)]),
        base=out.base,
        scale=out.scale,
        is_trained=out.is_trained,
    )


def _usual(weight: FloatArray) -> FloatArray:
    """Scale weights by a power of two if the largest is extreme, so that no sum overflows."""
    _, exponent = np.frexp(weight.max(initial=0.0))
    return weight if abs(exponent) <= _USUAL_EXPONENT else np.ldexp(weight, -exponent)


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
