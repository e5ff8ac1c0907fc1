"""`learn`: naive Bayes from statistics of the classes, to which those of each batch of rows are added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import numpy as np

from dichotomies._common.parallel import Context
from dichotomies._common.typing import LabelArray
from dichotomies.inference.fitted import FittedForest
from dichotomies.learners.base import statistics_of
from dichotomies.learners.naive_bayes.class_statistics import ClassStatistics
from dichotomies.rows import NodeTask, Rows
from dichotomies.rows.folds import fold_count, fold_of_rows
from dichotomies.rows.spilled import RowCounts
from dichotomies.training.calibration_file import fit_filed, most_rows, with_totals
from dichotomies.training.judging import LearnerJudge
from dichotomies.training.kept_rows import KeptRows, counted_once, unseen_scores
from dichotomies.training.plan import Plan
from dichotomies.training.train import Trained, grow, train
from dichotomies.training.updating import joined_rows, placed, settled, without
from dichotomies.tree import ClassTree
from dichotomies.tree.forest import Forest

#: Rows kept for calibration where `keep_rows` names no number.
_ROWS_TO_CALIBRATE_ON = 10_000


@dataclass(frozen=True, eq=False)
class Learned:
    """A naive Bayes model, with the statistics and the calibration rows that further batches are added to."""

    model: FittedForest
    statistics: ClassStatistics
    kept: KeptRows


def learn(plan: Plan, before: Learned | None, new: Rows, context: Context) -> tuple[Trained, ClassStatistics]:
    """Train a model on the rows before and new ones."""
    learner = statistics_of(plan.learner)
    new = _in_folds(plan, before, new, context)
    rows = new if before is None else joined_rows(before.kept, before.model.tree.classes, new)
    forest = _forest(plan, before, rows, context)
    statistics = learner.class_statistics(NodeTask(new, forest.trees[0]), context)
    if before is not None:
        codes = np.searchsorted(new.classes, before.model.tree.classes)
        statistics = before.statistics.over(codes, new.n_classes).plus(statistics)
    kept = _kept(plan, rows, None if before is None else before.kept, context)
    return _trained(
        plan, forest, kept.rows(new.classes, new.n_features), kept, statistics, context
    ), statistics


def learn_batches(
    plan: Plan, batches: Callable[[], Iterable[Rows]], context: Context, folder: Path, max_memory: int
) -> tuple[Trained, ClassStatistics]:
    """Train a model on batches of rows in one pass, or two with external calibration.

    Trees are grown on a sample of the rows, with the exact sums of the classes. Calibrators of the nodes are
    fitted to this sample, those of the class probabilities to as many rows of one fold as allowed, by a model
    of the other folds; if the sample is all rows, to all of them, out of fold.

    Parameters
    ----------
    batches : callable
        Starts an iterator of batches.
    folder : Path
        For class probabilities of the rows to calibrate on.
    max_memory : int
        Bytes for rows to calibrate on.
    """
    statistics, kept, classes, counts, seed = None, None, np.empty(0), None, context.rng.randint(2**31 - 1)
    for new in _folded(plan, batches(), seed):
        own = RowCounts.of([new])
        counts = own if counts is None else counts.plus(own)
        known = new.classes if kept is None else np.union1d(classes, new.classes)
        new = _over(new, known)
        more = statistics_of(plan.learner).class_statistics(NodeTask(new, _any_tree(known)), context)
        new.memo.clear()  # it refers to the rows, which would stay in memory until cycles are collected
        if statistics is not None:
            more = statistics.over(np.searchsorted(known, classes), len(known)).plus(more)
        rows = new if kept is None else joined_rows(kept, classes, new)
        statistics, kept, classes = more, _kept(plan, rows, kept, context), known
    if statistics is None or kept is None or counts is None:
        raise ValueError("There is no batch of rows.")
    counts.check_classes()
    rows = kept.rows(classes, statistics.n_features)
    forest = grow(plan, with_totals(rows, counts), LearnerJudge(plan, rows, context), context.rng)
    trained = _trained(plan, forest, rows, kept, statistics, context)
    if len(kept) == kept.n_seen or not _calibrates_on_one_fold(plan) or trained.model.external is None:
        return trained, statistics
    named = settled(plan, trained.calibration)
    model = _without_first_fold(named, forest, kept, statistics, context)
    share = most_rows(named, max_memory, len(classes)) / max(1, statistics.size[:: statistics.n_folds].sum())
    parts = _of_first_fold(_folded(plan, batches(), seed), classes, share, context)
    model, _ = fit_filed(named, model, trained.calibration, parts, folder)
    return trained._replace(model=replace(trained.model, external=model.external)), statistics


def _calibrates_on_one_fold(plan: Plan) -> bool:
    """True if one fold can be left for the external calibration, and nodes calibrated on the others."""
    has_folds = plan.uses_folds and (plan.internal_calibration is None or plan.cv > 2)
    return plan.external_calibration is not None and has_folds and not plan.prediction_sets


def _folded(plan: Plan, batches: Iterable[Rows], seed: int) -> Iterator[Rows]:
    """Batches divided into folds, in every pass the same."""
    rng, n_seen = np.random.RandomState(seed), 0
    for new in batches:
        yield new.in_folds(plan.cv, rng, first=n_seen) if plan.uses_folds else new
        n_seen += len(new)


def _over(rows: Rows, classes: LabelArray) -> Rows:
    """Rows over more classes."""
    return replace(rows, codes=np.searchsorted(classes, rows.classes)[rows.codes], classes=classes)


def _without_first_fold(
    plan: Plan, forest: Forest, kept: KeptRows, statistics: ClassStatistics, context: Context
) -> FittedForest:
    """A model without external calibration, and without the rows of the first fold."""
    plan = replace(plan, external_calibration=None, cv=statistics.n_folds - 1)
    rows = kept.rows(forest.trees[0].classes, statistics.n_features)
    assert kept.fold is not None
    taken = np.flatnonzero(kept.fold > 0)
    rows, fold = rows.take(taken), kept.fold[taken] - 1
    if plan.uses_folds:
        rows = replace(rows, fold=fold)
        known = statistics.of_folds(range(1, statistics.n_folds))
    else:
        rows = replace(rows, fold=None)
        known = reduce(ClassStatistics.plus, (statistics.of_folds([f]) for f in range(1, statistics.n_folds)))
    return _trained(plan, forest, rows, kept, known, context).model


def _of_first_fold(
    batches: Iterable[Rows], classes: LabelArray, share: float, context: Context
) -> Iterator[Rows]:
    """A share of the rows of the first fold."""
    for new in batches:
        assert new.fold is not None
        taken = (new.fold == 0) & (context.rng.random_sample(len(new)) < share)
        yield _over(new, classes).take(np.flatnonzero(taken))


def _any_tree(classes: LabelArray) -> ClassTree:
    return ClassTree(classes, np.arange(len(classes) - 1), classes)


def _kept(plan: Plan, rows: Rows, before: KeptRows | None, context: Context) -> KeptRows:
    """A sample of the rows before, which are the first, and of new ones."""
    plan = replace(plan, keep_rows=plan.keep_rows or _ROWS_TO_CALIBRATE_ON)
    seen = {} if before is None else {"n_old": len(before), "n_seen": before.n_seen}
    return KeptRows.of(plan, rows, unseen_scores(None, 0), context.rng, **seen)


def unlearn(
    plan: Plan, before: Learned, labels: LabelArray, context: Context
) -> tuple[Trained, ClassStatistics]:
    """Train a model without the rows of some classes."""
    known = before.model.tree.classes
    stays = np.flatnonzero(~np.isin(known, labels))
    rows = without(before.kept, known, labels, before.statistics.n_features)[0]
    forest = Forest.of([tree.restrict(known[stays]) for tree in before.model.forest.trees])
    statistics = before.statistics.taken(stays)
    kept = _kept(plan, rows, None, context)
    kept = replace(kept, n_seen=before.kept.n_seen * len(kept) // len(before.kept))
    return _trained(plan, forest, rows, kept, statistics, context), statistics


def _trained(
    plan: Plan, forest: Forest, rows: Rows, kept: KeptRows, statistics: ClassStatistics, context: Context
) -> Trained:
    """Train all nodes from statistics, and calibrate on the rows that are kept."""
    rows = counted_once(rows, kept.n_seen)
    statistics_of(plan.learner).preset(NodeTask(rows, forest.trees[0]), statistics)
    trained = train(replace(plan, keep_rows=0), forest, rows, context)
    return trained._replace(kept=kept)


def _in_folds(plan: Plan, before: Learned | None, new: Rows, context: Context) -> Rows:
    """New rows in as many folds as the rows before are."""
    if not plan.uses_folds:
        return new
    if before is not None:
        return new.in_folds(before.statistics.n_folds, context.rng, first=before.kept.n_seen)
    cv = fold_count(len(new), new.n_classes, plan.learner.folds) if plan.cv == "auto" else plan.cv
    return replace(new, fold=fold_of_rows(new.codes, cv, context.rng))


def _forest(plan: Plan, before: Learned | None, rows: Rows, context: Context) -> Forest:
    if before is None:
        return grow(plan, rows, LearnerJudge(plan, rows, context), context.rng)
    if rows.n_classes == before.model.n_classes:
        return before.model.forest
    return Forest.of(placed(before.model, rows))
