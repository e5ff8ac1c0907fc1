"""`Update`: a fitted model with more rows, with more classes or fewer; only nodes concerned are trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import vstack

from dichotomies._kernels.composition import class_log_proba
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.binary.auto import Auto
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.calibrators.multiclass.auto import AutoCalibration
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import GivenScores, edited
from dichotomies.rows import NodeTask, Rows
from dichotomies.structures import GrowingTask
from dichotomies.structures.class_points import class_sums, is_sparse
from dichotomies.training.cross_fitting import CrossFit, wanted_by
from dichotomies.training.external import NONE, Unseen, fit_external
from dichotomies.training.kept_rows import KeptRows, counted_once, unseen_scores
from dichotomies.training.train import conformal_scores
from dichotomies.tree.edited_forest import EditedForest, grafted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.parallel import Context
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, LabelArray, Matrix
    from dichotomies.inference.conformal import ConformalRows
    from dichotomies.training.external import Calibration
    from dichotomies.training.plan import Plan
    from dichotomies.tree import ClassTree


def placed(model: FittedForest, rows: Rows) -> list[ClassTree]:
    """The trees of a model with classes in them that it does not know."""
    is_new = ~np.isin(rows.classes, model.tree.classes)
    new = rows.class_order[is_new[rows.class_order]]
    cosine, taken_for = class_cosines(rows, new), _taken_for(model, rows, new)
    trees = []
    for tree, overlap in zip(model.forest.trees, taken_for, strict=True):
        leaves = np.searchsorted(rows.classes, tree.leaf_labels)
        affinity = cosine[:, np.concatenate([leaves, new])]
        affinity += np.concatenate([overlap[:, tree.leaf_order], overlap @ overlap.T], axis=1)
        trees.append(grafted(tree, rows.classes[new].tolist(), affinity, rows.classes))
    return trees


def _taken_for(model: FittedForest, rows: Rows, new: IntArray) -> FloatArray:
    """Mean square roots of the probabilities of known classes for rows of new ones, by each tree."""
    trees = model.forest.trees
    found = np.empty((len(trees), len(new), model.n_classes))
    for i, code in enumerate(new):
        log_odds = model.scorer.log_odds(rows.features_of(np.flatnonzero(rows.codes == code)))
        for t, tree in enumerate(trees):
            log_proba = class_log_proba(tree, model.forest.log_odds_of_tree(t, log_odds))
            found[t, i] = np.exp(0.5 * log_proba).mean(axis=0)
    return found


def class_cosines(rows: Rows, some: IntArray) -> FloatArray:
    """Cosines between means of some classes and of all, (n_some, n_classes), less the mean of all means."""
    sums = class_sums(GrowingTask(rows))
    mean, place = sums.mean, np.argsort(sums.order)
    centre = np.asarray(mean.mean(axis=0)).ravel()
    with np.errstate(all="ignore"):
        if is_sparse(mean):  # (a - c) (b - c) = a b - a c - b c + c c: differences would be dense
            along = mean @ centre - 0.5 * centre @ centre
            products = _dense(mean[place[some]] @ mean.T) - along[place[some]][:, None] - along
            square = _dense(mean.multiply(mean).sum(axis=1)).ravel() - 2 * along
        else:
            points = (mean - centre) / rows.imputed.std(axis=0)
            points[:, ~np.isfinite(points).all(axis=0)] = 0.0
            products, square = points[place[some]] @ points.T, (points * points).sum(axis=1)
        cosine = products / np.sqrt(np.outer(square[place[some]], square))
    finite: FloatArray = np.nan_to_num(cosine, posinf=0.0, neginf=0.0)
    return finite[:, place]


def _dense(matrix: Any) -> FloatArray:
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix)


class Updated(NamedTuple):
    """An updated model.

    Attributes
    ----------
    source : (n_different,)
        Number of each node in the model before; -1 where it was trained.
    nll : float or None
        Mean out-of-fold NLL of the new rows of known classes.
    added : (n_classes,)
        Number of new rows of each class.
    """

    model: FittedForest
    kept: KeptRows
    conformal: ConformalRows | None
    source: IntArray
    nll: float | None
    added: IntArray


def settled(plan: Plan, calibration: Calibration) -> Plan:
    """The plan with the calibrators that were chosen in place of "auto"."""
    inside, outside = plan.internal_calibration, plan.external_calibration
    if isinstance(inside, Auto):
        inside = None if calibration.internal == NONE else BINARY.create(calibration.internal)
    if isinstance(outside, AutoCalibration):
        outside = None if calibration.external == NONE else MULTICLASS.create(calibration.external)
    return replace(plan, internal_calibration=inside, external_calibration=outside)


@dataclass(frozen=True, eq=False)
class Update:
    """A change of the rows of a model, and the trees for it.

    Attributes
    ----------
    rows : Rows
        Rows that were kept, then new ones, over the classes of the updated model.
    n_old, n_seen : int
        Number of the rows that were kept, and of the rows that they stand for.
    trees : sequence of ClassTree
        The trees with new classes in them, or without those to forget.
    old_sample, old_log_odds
        Rows that have out-of-fold scores, and these; see `KeptRows`.
    """

    plan: Plan
    model: FittedForest
    rows: Rows
    n_old: int
    n_seen: int
    trees: Sequence[ClassTree]
    old_sample: IntArray
    old_log_odds: FloatArray

    @classmethod
    def adding(cls, plan: Plan, model: FittedForest, kept: KeptRows, new: Rows, context: Context) -> Update:
        """Add rows, of known classes and new ones."""
        known = model.tree.classes
        if kept.fold is not None:
            new = new.in_folds(max(2, int(kept.fold.max()) + 1), context.rng, first=kept.n_seen)
        rows = joined_rows(kept, known, new)
        trees = model.forest.trees
        if new.n_classes > len(known):
            trees = placed(model, rows)
        return cls(plan, model, rows, len(kept), kept.n_seen, trees, kept.sample, kept.log_odds)

    @classmethod
    def forgetting(
        cls, plan: Plan, model: FittedForest, kept: KeptRows, labels: LabelArray, n_features: int
    ) -> Update:
        """Leave out classes and their rows."""
        rows, stays = without(kept, model.tree.classes, labels, n_features)
        trees = [tree.restrict(rows.classes) for tree in model.forest.trees]
        scored = stays[kept.sample]
        sample = (np.cumsum(stays) - 1)[kept.sample[scored]]
        n_seen = kept.n_seen * len(rows) // len(kept)
        return cls(plan, model, rows, len(rows), n_seen, trees, sample, kept.log_odds[scored])

    def run(self, context: Context) -> Updated:
        """Train the nodes concerned, and calibrate."""
        plan, rows = self.plan, self.rows
        changed = np.zeros(rows.n_classes, dtype=bool)
        changed[rows.codes[self.n_old :]] = True
        found = EditedForest.of(self.model.forest, self.trees, changed)
        tasks = [
            NodeTask(rows, tree, nodes)
            for tree, nodes in zip(self.trees, found.new_nodes, strict=True)
            if len(nodes)
        ]
        if plan.uses_folds:
            crossed = [CrossFit.fit(plan, task, wanted_by(plan), context) for task in tasks]
            parts = [each.final_scorer() for each in crossed]
        else:
            crossed, parts = [], [plan.learner.fit(task, context) for task in tasks]
        sizes = [(part, task.n_nodes) for part, task in zip(parts, tasks, strict=True)]
        n_before = self.model.forest.n_different
        scorer = edited(self.model.scorer, n_before, found.source, sizes)
        model = FittedForest(found.forest, scorer, plan.pooling)
        unseen, conformal = None, None
        if plan.calibrates_outside or plan.prediction_sets:
            unseen = self._unseen(found, crossed)
            counted = counted_once(rows, self.n_seen + len(rows) - self.n_old)
            if plan.calibrates_outside:
                model = fit_external(plan, model, counted, unseen, self.model)
            if plan.prediction_sets:
                conformal = conformal_scores(plan, model, counted, unseen)
        scores = unseen_scores(unseen, found.forest.n_different)
        nll = self._nll(model, scores)
        kept = KeptRows.of(plan, rows, scores, context.rng, n_old=self.n_old, n_seen=self.n_seen)
        added = np.bincount(rows.codes[self.n_old :], minlength=rows.n_classes)
        return Updated(model, kept, conformal, found.source, nll, added)

    def _unseen(self, found: EditedForest, crossed: Sequence[CrossFit]) -> Unseen:
        """The rows that have scores, and the new ones, with log-odds by models that have not seen them."""
        rows = self.rows
        sample = np.concatenate([self.old_sample, np.arange(self.n_old, len(rows))])
        is_old = found.source >= 0
        log_odds = np.empty((len(sample), len(found.source)), dtype=np.float64)
        n_scored = len(self.old_sample)
        log_odds[:n_scored, is_old] = self.old_log_odds[:, found.source[is_old]]
        if n_scored < len(sample):
            new = rows.features_of(sample[n_scored:])
            log_odds[n_scored:, is_old] = self.model.scorer.log_odds(new)[:, found.source[is_old]]
        if crossed:
            new_nodes = [each.unseen_scorer().log_odds(sample) for each in crossed]
            log_odds[:, ~is_old] = np.concatenate(new_nodes, axis=1)
        return Unseen(sample, FittedForest(found.forest, GivenScores(), self.plan.pooling), log_odds)

    def _nll(self, model: FittedForest, scores: tuple[IntArray, FloatArray]) -> float | None:
        """Mean NLL of new rows of known classes, by nodes that have not seen them."""
        sample, log_odds = scores
        known = np.isin(self.rows.classes, self.model.tree.classes)
        new = np.flatnonzero((sample >= self.n_old) & known[self.rows.codes[sample]])
        if not len(new):
            return None
        given = replace(model, scorer=GivenScores())
        log_proba = given.predict_log_proba(log_odds[new].astype(np.float64))
        own = log_proba[np.arange(len(new)), self.rows.codes[sample[new]]]
        weight = None if self.rows.weight is None else self.rows.weight[sample[new]]
        return None if weight is not None and not weight.any() else -float(np.average(own, weights=weight))


def joined_rows(kept: KeptRows, known: LabelArray, new: Rows) -> Rows:
    """Rows that were kept, of known classes, and new ones, over the classes of the new ones."""
    old, weight, fold = kept.rows(known, new.n_features), None, None
    codes = np.concatenate([np.searchsorted(new.classes, known)[old.codes], new.codes])
    if old.weight is not None or new.weight is not None:
        weight = np.concatenate(
            [np.ones(len(each)) if each.weight is None else each.weight for each in (old, new)]
        )
    if old.fold is not None and new.fold is not None:
        fold = np.concatenate([old.fold, new.fold])
    return Rows(_stacked(old.X, new.X), codes, new.classes, weight, fold)


def without(kept: KeptRows, known: LabelArray, labels: LabelArray, n_features: int) -> tuple[Rows, BoolArray]:
    """Rows that were kept, without those of some classes, and True for the rows that stay."""
    stays = ~np.isin(known, labels)
    rows = kept.rows(known, n_features)
    left = rows.take(np.flatnonzero(stays[rows.codes]))
    return replace(left, codes=(np.cumsum(stays) - 1)[left.codes], classes=known[stays]), stays[rows.codes]


def _stacked(old: Matrix, new: Matrix) -> Matrix:
    if isinstance(old, np.ndarray):
        return np.concatenate([old, new if isinstance(new, np.ndarray) else new.toarray()])
    return vstack([old, new], format="csr")
