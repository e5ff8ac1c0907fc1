"""Places of new classes in the trees of a fitted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._kernels.composition import class_log_proba
from dichotomies.structures import GrowingTask
from dichotomies.structures.class_points import class_sums, is_sparse
from dichotomies.tree.grafting import grafted

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.inference.fitted import FittedForest
    from dichotomies.rows import Rows
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
