"""Training the nodes of trees, calibrated inside and outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from dichotomies.inference.pooling import POOLINGS
from dichotomies.inference.prediction import PooledModel, TreeModel, in_chunks, log_proba_of
from dichotomies.inference.scorers import JoinedScorer
from dichotomies.learners import NodeTask, Wanted
from dichotomies.rows.folds import fold_of_rows, hold_out
from dichotomies.training.cross_fitting import CrossFit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies.calibrators.multiclass import MulticlassCalibrator
    from dichotomies.inference.prediction import Model
    from dichotomies.learners import Scorer
    from dichotomies.training.plan import Plan
    from dichotomies.tree.forest import Forest

#: Class log-probabilities kept for fitting external calibrators; beyond this, a sample of the rows.
_CALIBRATION_BYTES = 2**30
#: Rows a class must have for some to be held out.
_FEWEST_ROWS = 4
#: Folds of the rows that calibrators are fitted on, where one is fitted behind another.
_CALIBRATION_FOLDS = 3


@dataclass(frozen=True)
class Trained:
    """Nodes that answer with (calibrated) log-odds, and calibrators of class probabilities.

    Attributes
    ----------
    scorer : Scorer
        Of the different nodes of all trees.
    members : list of MulticlassCalibrator or None
        One per tree, where trees are calibrated one by one.
    external : MulticlassCalibrator or None
        Of the only tree, or of the pool.
    """

    scorer: Scorer
    members: Sequence[MulticlassCalibrator | None]
    external: MulticlassCalibrator | None


def train(
    plan: Plan, forest: Forest, task: NodeTask, rng: Any, bags: Sequence[FloatArray] | None = None
) -> Trained:
    """Train the nodes of one tree or several, and calibrate as planned.

    Parameters
    ----------
    forest : Forest
        The trees.
    task : NodeTask
        The rows; its tree is not looked at.
    bags : sequence of (n_rows,)
        What each tree's rows weigh, where trees do not share their nodes.
    """
    if not plan.calibrates_outside:
        return Trained(_fit_inside(plan, forest, task, None, rng, bags), [], None)
    if plan.calibration_size == "cross-fit":
        folds = fold_of_rows(task.codes, plan.cv, rng)
        crossed = _on_each_tree(
            forest,
            task,
            bags,
            lambda part, title: CrossFit.fit(plan, part, rng, folds, wanted=Wanted.MEMBERS, title=title),
        )
        rows = _sample(plan, forest, task, np.arange(len(task.codes)), rng)
        unseen = [
            (rows[folds[rows] == f], _joined(forest, [each.fold_scorer(f) for each in crossed]))
            for f in range(int(folds.max()) + 1)
        ]
        scorer = _joined(forest, [each.final_scorer() for each in crossed])
    else:
        held = _held_out(task.codes, plan.calibration_size, rng)
        scorer = _fit_inside(plan, forest, task, np.flatnonzero(~held), rng, bags)
        unseen = [(_sample(plan, forest, task, np.flatnonzero(held), rng), scorer)]
    return Trained(scorer, *_fit_outside(plan, forest, task, unseen))


def _held_out(codes: IntArray, share: float, rng: Any) -> BoolArray:
    """Rows to calibrate on, none of them of a class with few.

    Such a class would lose a large part of what there is to learn it from. Those that did would be the least
    probable of all, and just their rows would be there to calibrate on: the calibrator would learn to
    mistrust the model.
    """
    is_frequent = np.bincount(codes) >= _FEWEST_ROWS
    return hold_out(codes, share, rng) & is_frequent[codes]


def _fit_inside(
    plan: Plan,
    forest: Forest,
    task: NodeTask,
    rows: IntArray | None,
    rng: Any,
    bags: Sequence[FloatArray] | None,
) -> Scorer:
    """Train and calibrate the nodes on some of the rows, or all."""
    folds = None
    if plan.internal is not None and not isinstance(plan.cv, int):  # the user's folds number all rows
        folds = fold_of_rows(task.codes, plan.cv, rng)
    if rows is not None:
        task, folds = task.subset(rows), None if folds is None else folds[rows]
        bags = None if bags is None else [bag[rows] for bag in bags]
    if plan.internal is not None and folds is None:
        folds = fold_of_rows(task.codes, plan.cv, rng)

    def fit(part: NodeTask, title: str) -> Scorer:
        if folds is None:
            return plan.learner.fit(part, random_state=rng, effort=plan.effort(title))
        return CrossFit.fit(plan, part, rng, folds, title=title).final_scorer()

    return _joined(forest, _on_each_tree(forest, task, bags, fit))


def _on_each_tree(
    forest: Forest,
    task: NodeTask,
    bags: Sequence[FloatArray] | None,
    fit: Callable[[NodeTask, str], Any],
) -> list[Any]:
    """What `fit` makes of each tree's own rows and nodes; trees without nodes of their own are left out."""
    done = []
    for t, tree in enumerate(forest.trees):
        nodes = forest.new_nodes(t)
        if len(nodes) == 0:
            continue
        if bags is None:
            part = task.of_tree(tree, None if len(nodes) == tree.n_nodes else nodes)
        else:
            part = NodeTask(tree, task.X, task.codes, bags[t])
        title = f"tree {t + 1} of {len(forest.trees)}: " if len(forest.trees) > 1 else ""
        done.append(fit(part, title))
    return done


def _joined(forest: Forest, parts: Sequence[Scorer]) -> Scorer:
    """The different nodes of all trees."""
    if len(parts) == 1:
        return parts[0]
    sizes = [len(forest.new_nodes(t)) for t in range(len(forest.trees))]
    return JoinedScorer(parts, [size for size in sizes if size])


def _fit_outside(
    plan: Plan, forest: Forest, task: NodeTask, unseen: Sequence[tuple[IntArray, Scorer]]
) -> tuple[list[MulticlassCalibrator | None], MulticlassCalibrator | None]:
    """Fit the calibrators of class probabilities on rows, each with nodes that have not seen it."""
    rows = np.concatenate([each for each, _ in unseen])
    if plan.member is None:
        assert plan.external is not None
        parts = [
            log_proba_of(_model(plan, forest, scorer), task.take(each), plan.n_jobs, np.float32)
            for each, scorer in unseen
        ]
        return [], _fit_calibrator(plan.external, task, rows, np.concatenate(parts))
    by_tree = np.concatenate(
        [_log_proba_by_tree(plan, forest, scorer, task.take(each)) for each, scorer in unseen], axis=1
    )
    members = [_fit_calibrator(plan.member, task, rows, log_proba) for log_proba in by_tree]
    if plan.external is None or len(rows) == 0:
        return members, None
    pooled = _pooled_fairly(plan, task, rows, by_tree)
    return members, _fit_calibrator(plan.external, task, rows, pooled)


def _model(plan: Plan, forest: Forest, scorer: Scorer) -> Model:
    """The trees before anything is calibrated outside."""
    if len(forest.trees) == 1:
        return TreeModel(forest.trees[0], scorer)
    return PooledModel(forest, scorer, plan.pooling)


def _log_proba_by_tree(plan: Plan, forest: Forest, scorer: Scorer, X: Matrix) -> FloatArray:
    """Class log-probabilities by each tree, shape (n_trees, n_rows, n_classes)."""
    out: FloatArray = np.empty((len(forest.trees), X.shape[0], forest.n_classes), dtype=np.float32)
    model = PooledModel(forest, scorer, plan.pooling)

    def keep(rows: slice) -> None:
        def write(t: int, log_proba: FloatArray) -> None:
            out[t, rows] = log_proba

        model.by_tree(X[rows], write)

    in_chunks(model.width, X.shape[0], keep, plan.n_jobs)
    return out


def _pooled_fairly(plan: Plan, task: NodeTask, rows: IntArray, by_tree: FloatArray) -> FloatArray:
    """The pool of what calibrators of the trees say that have not seen the row, (n_rows, n_classes).

    The calibrator of the pool is fitted behind those of the trees. On rows that those were fitted on they
    look better than they are.
    """
    assert plan.member is not None
    fold = fold_of_rows(task.codes[rows], _CALIBRATION_FOLDS, np.random.RandomState(0))
    pooled = np.empty((len(rows), by_tree.shape[-1]))
    for f in range(int(fold.max()) + 1):
        inside = np.flatnonzero(fold == f)
        answer = np.empty((len(inside), pooled.shape[1]))
        pool = POOLINGS[plan.pooling](answer)
        for log_proba in by_tree:
            fair = _fit_calibrator(plan.member, task, rows[fold != f], log_proba[fold != f])
            mine = log_proba[inside].astype(np.float64)
            pool.add(mine if fair is None else fair.predict_log_proba(mine))
        pool.finish()
        pooled[inside] = answer
    return pooled


def _fit_calibrator(
    calibrator: MulticlassCalibrator, task: NodeTask, rows: IntArray, log_proba: FloatArray
) -> MulticlassCalibrator | None:
    """Fit on these rows; where none has any weight, nothing can be learnt."""
    weight = None if task.sample_weight is None else task.sample_weight[rows]
    if not len(rows) or (weight is not None and not weight.any()):
        return None
    fitted: MulticlassCalibrator = clone(calibrator)
    return fitted.fit(log_proba, task.codes[rows], sample_weight=weight)


def _sample(plan: Plan, forest: Forest, task: NodeTask, rows: IntArray, rng: Any) -> IntArray:
    """All of the rows, or as many as may be kept with a probability for every class, stratified."""
    n_kept = 1 if plan.member is None else len(forest.trees)
    limit = max(1, _CALIBRATION_BYTES // (4 * forest.n_classes * n_kept))
    if len(rows) <= limit:
        return rows
    chosen: IntArray = rows[fold_of_rows(task.codes[rows], -(-len(rows) // limit), rng) == 0]
    return chosen
