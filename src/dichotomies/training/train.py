"""`train`: from rows and trees to a `FittedForest`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import JoinedScorer
from dichotomies.learners import Wanted
from dichotomies.rows import NodeTask
from dichotomies.rows.folds import fold_of_rows, hold_out
from dichotomies.training.cross_fitting import CrossFit, wanted_by
from dichotomies.training.external import Unseen, calibration_sample, fit_external

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dichotomies._common.parallel import Context
    from dichotomies._common.typing import BoolArray
    from dichotomies.learners import Scorer
    from dichotomies.rows import Rows
    from dichotomies.training.plan import Plan
    from dichotomies.tree.forest import Forest

#: Rows a class must have for some to be held out.
_FEWEST_ROWS = 4


def train(plan: Plan, forest: Forest, rows: Rows, context: Context) -> FittedForest:
    """Train the nodes of one tree or several, and calibrate as planned."""
    if plan.uses_folds and not isinstance(plan.cv, int):  # the user's folds number all rows
        rows = rows.in_folds(plan.cv, context.rng)
    tasks = _tasks(plan, forest, rows, context.rng)
    if not plan.calibrates_outside:
        return FittedForest(forest, _fit_inside(plan, tasks, context), plan.pooling)
    if plan.calibration_size == "cross-fit":
        return _cross_fitted(plan, forest, rows, tasks, context)
    return _held_out(plan, forest, rows, tasks, context)


def _tasks(plan: Plan, forest: Forest, rows: Rows, rng: Any) -> list[NodeTask]:
    """Each tree's own nodes, those that no tree before it has, with its own sample of the rows."""
    samples = [rows.bootstrap(rng) if plan.bootstrap else rows for _ in forest.trees]
    tasks = []
    for t, (tree, sample) in enumerate(zip(forest.trees, samples, strict=True)):
        nodes = forest.new_nodes(t)
        if len(nodes):
            tasks.append(NodeTask(sample, tree, None if len(nodes) == tree.n_nodes else nodes))
    return tasks


def _cross_fitted(
    plan: Plan, forest: Forest, rows: Rows, tasks: Sequence[NodeTask], context: Context
) -> FittedForest:
    """Calibrate outside on probabilities of models trained on the other folds."""
    tasks = _in_folds(plan, tasks, context.rng)
    fold, wanted = tasks[0].rows.fold, wanted_by(plan) | Wanted.MEMBERS
    assert fold is not None
    crossed = [CrossFit.fit(plan, task, wanted, titled) for task, titled in _each(tasks, context)]
    sample = calibration_sample(plan, forest, rows, np.arange(len(rows)), context.rng)
    unseen = []
    for f in range(tasks[0].rows.n_folds):
        scorer = _joined(tasks, [each.fold_scorer(f) for each in crossed])
        unseen.append(Unseen(sample[fold[sample] == f], FittedForest(forest, scorer, plan.pooling)))
    scorer = _joined(tasks, [each.final_scorer() for each in crossed])
    return fit_external(plan, FittedForest(forest, scorer, plan.pooling), rows, unseen)


def _held_out(
    plan: Plan, forest: Forest, rows: Rows, tasks: Sequence[NodeTask], context: Context
) -> FittedForest:
    """Calibrate outside on rows that the nodes are not trained on."""
    held = _rows_to_hold_out(rows, plan.calibration_size, context.rng)
    kept = _on(tasks, lambda sample: sample.take(np.flatnonzero(~held)))
    fitted = FittedForest(forest, _fit_inside(plan, kept, context), plan.pooling)
    sample = calibration_sample(plan, forest, rows, np.flatnonzero(held), context.rng)
    return fit_external(plan, fitted, rows, [Unseen(sample, fitted)])


def _rows_to_hold_out(rows: Rows, share: Any, rng: Any) -> BoolArray:
    """Rows to calibrate on, none of them of a class with few.

    Such a class would lose a large part of its training rows. It would then be among the least probable
    classes, and its rows would be over-represented among those to calibrate on: the calibrator would learn
    to invert the ranking.
    """
    return hold_out(rows.codes, share, rng) & (rows.class_size >= _FEWEST_ROWS)[rows.codes]


def _fit_inside(plan: Plan, tasks: Sequence[NodeTask], context: Context) -> Scorer:
    """Train the nodes, with internal calibration if planned."""
    if plan.internal_calibration is None:
        return _joined(tasks, [plan.learner.fit(task, titled) for task, titled in _each(tasks, context)])
    tasks = _in_folds(plan, tasks, context.rng)
    wanted = wanted_by(plan)
    crossed = [CrossFit.fit(plan, task, wanted, titled) for task, titled in _each(tasks, context)]
    return _joined(tasks, [each.final_scorer() for each in crossed])


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
        yield task, context if len(tasks) == 1 else context.titled(f"tree {t + 1} of {len(tasks)}: ")


def _joined(tasks: Sequence[NodeTask], parts: Sequence[Scorer]) -> Scorer:
    """Scorer of the different nodes of all trees."""
    return parts[0] if len(parts) == 1 else JoinedScorer(parts, [task.n_nodes for task in tasks])
