"""`grow` and `train`: from rows to trees, and from both to a `FittedForest`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dichotomies._common.chunks import chunk_rows, row_slices
from dichotomies._common.parallel import Context
from dichotomies._common.progress import CALIBRATING
from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies.inference.conformal import ConformalRows
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import JoinedScorer, base_scorers, some_nodes
from dichotomies.inference.sets import evaluated
from dichotomies.learners import Scorer
from dichotomies.rows import NodeTask, Rows
from dichotomies.rows.folds import CALIBRATION_FOLDS, calibration_fold, fold_count, fold_of_rows, hold_out
from dichotomies.structures import GrowingTask, TreeJudge
from dichotomies.training.calibration_choice import choose, unseen_by
from dichotomies.training.cross_fitting import CrossFit, wanted_by
from dichotomies.training.external import (
    Calibration,
    Unseen,
    calibration_sample,
    fit_calibrator,
    fit_external,
    given,
    settled,
)
from dichotomies.training.kept_rows import KeptRows, unseen_scores
from dichotomies.training.plan import Plan, set_limit
from dichotomies.tree.forest import Forest


def conformal_scores(plan: Plan, fitted: FittedForest, rows: Rows, unseen: Unseen) -> ConformalRows | None:
    """Evaluate all rows by models that have not seen them; None if there is no row."""
    sample = rows.take(unseen.rows)
    if not len(sample):
        return None
    if sample.fold is None:
        fold = fold_of_rows(sample.codes, CALIBRATION_FOLDS, np.random.RandomState(0))
    else:
        fold = calibration_fold(sample.fold)
    log_proba = _calibrated(fitted, sample, fold, unseen.log_proba(plan.n_jobs))
    groups = plan.prediction_sets if plan.prediction_sets > 1 else None
    parts = [
        evaluated(fitted.tree, log_proba[part].astype(np.float64), sample.codes[part], groups)
        for part in row_slices(len(sample), chunk_rows(fitted.n_classes))
    ]
    return ConformalRows.joined(parts)


def _calibrated(fitted: FittedForest, sample: Rows, fold: IntArray, log_proba: FloatArray) -> FloatArray:
    """Log-probabilities by external calibrators that were fitted without the fold of the row."""
    if fitted.external is None:
        return log_proba
    out = log_proba.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for f in range(int(fold.max()) + 1):
            inside, outside = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
            other = fit_calibrator(fitted.external, sample.take(outside), log_proba[outside])
            if other is not None:
                out[inside] = other.predict_log_proba(log_proba[inside].astype(np.float64))
    return out


#: Rows a class must have for some to be held out.
_FEWEST_ROWS = 4


class Trained(NamedTuple):
    """A model, its calibration, and scores for prediction sets and rows for updates if they are planned."""

    model: FittedForest
    calibration: Calibration
    conformal: ConformalRows | None = None
    kept: KeptRows | None = None


def grow(plan: Plan, rows: Rows, judge: TreeJudge, rng: Any, notes: list[str] | None = None) -> Forest:
    """Grow one tree or several, each on a random share of the features; `notes` receives remarks."""
    assert plan.structure is not None
    notes = [] if notes is None else notes
    trees = [
        plan.structure.grow_from(
            GrowingTask(_with_some_features(rows, plan.max_features, rng), judge, notes), rng
        )
        for _ in range(plan.n_estimators)
    ]
    forest = Forest.of(trees)
    if len(trees) > 1 and forest.n_different == trees[0].n_nodes > 3:
        warnings.warn(
            f"All {len(trees)} trees are the same, so that pooling them changes nothing: choose a "
            "structure with chance, or lower max_features.",
            stacklevel=4,
        )
    return forest


def _with_some_features(rows: Rows, share: float, rng: Any) -> Rows:
    n_taken = max(1, round(share * rows.n_features))
    if n_taken == rows.n_features:
        return rows
    return rows.with_features(np.sort(rng.permutation(rows.n_features)[:n_taken]))


def train(plan: Plan, forest: Forest, rows: Rows, context: Context) -> Trained:
    """Train the nodes of one tree or several, and calibrate as planned, or as is best."""
    if plan.cv == "auto":
        plan = replace(plan, cv=fold_count(len(rows), rows.n_classes, plan.learner.folds))
    if plan.uses_folds and not isinstance(plan.cv, int):  # the user's folds number all rows
        rows = rows.in_folds(plan.cv, context.rng)
    if plan.max_memory is not None:
        set_limit(plan, forest, rows)
    tasks = _tasks(forest, rows)
    if plan.calibrates_outside and plan.calibration_size != "cross-fit":
        return _held_out(plan, forest, rows, tasks, context)
    return _fit(plan, forest, rows, tasks, context)


def _tasks(forest: Forest, rows: Rows) -> list[NodeTask]:
    """Each tree's own nodes, those that no tree before it has."""
    tasks = []
    for t, tree in enumerate(forest.trees):
        nodes = forest.new_nodes(t)
        if len(nodes):
            tasks.append(NodeTask(rows, tree, None if len(nodes) == tree.n_nodes else nodes))
    return tasks


def _fit(plan: Plan, forest: Forest, rows: Rows, tasks: Sequence[NodeTask], context: Context) -> Trained:
    """Train on all rows; calibrate on scores of models trained on the other folds."""
    if not plan.uses_folds:
        scorer = _joined(tasks, [plan.learner.fit(task, titled) for task, titled in _each(tasks, context)])
        kept = _kept(plan, forest, rows, None, context.rng)
        return Trained(FittedForest(forest, scorer, plan.pooling), given(plan), kept=kept)
    tasks = _in_folds(plan, tasks, context.rng)
    rows = replace(rows, fold=tasks[0].rows.fold)
    wanted = wanted_by(plan)
    crossed = [CrossFit.fit(plan, task, wanted, titled) for task, titled in _each(tasks, context)]
    for task in tasks:
        task.rows.forget()  # copies of the features, which only training needs
    context.stage(CALIBRATING)
    calibration, external = given(plan), None
    if plan.chooses:
        plan, calibration, external = choose(plan, forest, rows, crossed, context.rng)
        crossed = [each.planned(plan) for each in crossed]
    scorer = _joined(tasks, [each.final_scorer() for each in crossed])
    fitted = FittedForest(forest, scorer, plan.pooling)
    fitted = replace(fitted, external=external)
    is_calibrated, unseen = fitted.external is not None or not plan.calibrates_outside, None
    if plan.prediction_sets or not is_calibrated or (plan.calibrates_outside and plan.keep_rows):
        sample = calibration_sample(plan, forest, rows, np.arange(len(rows)), context.rng)
        unseen = unseen_by(crossed, forest, plan.pooling, sample)
        if not is_calibrated:
            fitted = fit_external(plan, fitted, rows, unseen)
    conformal = _conformal(plan, fitted, rows, unseen)
    return Trained(fitted, calibration, conformal, _kept(plan, forest, rows, unseen, context.rng))


def _kept(plan: Plan, forest: Forest, rows: Rows, unseen: Unseen | None, rng: Any) -> KeptRows | None:
    """Rows to keep for updates, with their out-of-fold scores; None if none are planned."""
    if not plan.keep_rows:
        return None
    return KeptRows.of(plan, rows, unseen_scores(unseen, forest.n_different), rng)


def _conformal(plan: Plan, fitted: FittedForest, rows: Rows, unseen: Unseen | None) -> ConformalRows | None:
    """Scores for prediction sets, if they are planned."""
    if not plan.prediction_sets or unseen is None:
        return None
    from dichotomies.training.train import conformal_scores  # takes long to import

    return conformal_scores(plan, fitted, rows, unseen)


def _held_out(plan: Plan, forest: Forest, rows: Rows, tasks: Sequence[NodeTask], context: Context) -> Trained:
    """Calibrate outside on rows that the nodes are not trained on."""
    held = _rows_to_hold_out(rows, plan.calibration_size, context.rng)
    kept = np.flatnonzero(~held)
    inside = replace(plan, external_calibration=None, prediction_sets=0, keep_rows=0)
    tasks = _on(tasks, lambda sample: sample.take(kept))
    inner, calibration, *_ = _fit(inside, forest, rows.take(kept), tasks, context)
    sample = calibration_sample(plan, forest, rows, np.flatnonzero(held), context.rng)
    unseen = Unseen(sample, inner, rows.features_of(sample))
    fitted = fit_external(plan, inner, rows, unseen)
    conformal = _conformal(plan, fitted, rows, unseen)
    return Trained(*settled(plan, fitted, calibration, len(sample)), conformal)


def _rows_to_hold_out(rows: Rows, share: Any, rng: Any) -> BoolArray:
    """Rows to calibrate on, none of them of a class with few."""
    return hold_out(rows.codes, share, rng) & (rows.class_size >= _FEWEST_ROWS)[rows.codes]


def _in_folds(plan: Plan, tasks: Sequence[NodeTask], rng: Any) -> Sequence[NodeTask]:
    """The tasks with their rows divided into folds, the same for all trees."""
    if tasks[0].rows.fold is not None:
        return tasks
    fold = fold_of_rows(tasks[0].rows.codes, plan.cv, rng)
    return _on(tasks, lambda rows: replace(rows, fold=fold))


def _on(tasks: Sequence[NodeTask], change: Callable[[Rows], Rows]) -> list[NodeTask]:
    """The same nodes on a view of their rows; tasks that share rows, and so a memo, share the view."""
    views = {id(task.rows): task.rows for task in tasks}
    views = {key: change(rows) for key, rows in views.items()}
    return [NodeTask(views[id(task.rows)], task.tree, task.nodes) for task in tasks]


def _each(tasks: Sequence[NodeTask], context: Context) -> Iterator[tuple[NodeTask, Context]]:
    """Each task with a context whose title says which tree it is, where there are several."""
    for t, task in enumerate(tasks):
        yield (
            task,
            context if len(tasks) == 1 else context.titled(f"tree {t + 1} of {len(tasks)}: ", t, len(tasks)),
        )


def _joined(tasks: Sequence[NodeTask], parts: Sequence[Scorer]) -> Scorer:
    """Scorer of the different nodes of all trees: one model where that is faster."""
    if len(parts) == 1:
        return parts[0]
    scorer = JoinedScorer(parts, [task.n_nodes for task in tasks])
    bases = [base for part in parts for base in base_scorers(part)]
    if all(getattr(base, "is_faster_joined", False) for base in bases):
        return some_nodes(scorer, np.arange(sum(scorer.sizes)))
    return scorer
