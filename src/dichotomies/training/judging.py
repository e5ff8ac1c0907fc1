"""How good a whole tree would be: its NLL out of fold, with the learner that will be trained on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.calibrators.binary import Segments, cross_fitted_nll, segment_nll
from dichotomies.inference.scorers import MOST_LOG_ODDS
from dichotomies.learners import Effort, NodeTask, Wanted
from dichotomies.rows.folds import fold_of_rows
from dichotomies.structures import GrowingTask
from dichotomies.tree.node_keys import node_keys

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies.training.plan import Plan
    from dichotomies.tree import ClassTree

#: Folds in which trees are judged where the user's folds number all rows.
_JUDGING_FOLDS = 3
_ROWS_AT_A_TIME = 4_096


class LearnerJudge:
    """Judges trees by their out-of-fold NLL with the planned base learner and internal calibration.

    By Proposition 1 the NLL of the tree is the sum of the nodes' NLLs over their own rows, so no class
    probability is needed; and a node's NLL depends only on the classes on its two sides, so it is
    remembered: of a tree that differs little from those judged before, only the nodes that are new are
    trained. Where a fold's model had seen only one side of a node, it counts as knowing nothing. Rows that
    are equal go into the same fold, so that a row twice is a row of weight two.

    Parameters
    ----------
    plan : Plan
        The learner and the internal calibration.
    X, codes, sample_weight
        The rows.
    """

    def __init__(self, plan: Plan, X: Matrix, codes: IntArray, sample_weight: FloatArray | None) -> None:
        self._plan = plan
        self._rows = X, codes, sample_weight
        self._asked: tuple[int, int, bool] | None = None
        self._known: dict[tuple[int, int], float] = {}

    @property
    def is_quick(self) -> bool:
        """Whether the learner is."""
        return self._plan.learner.is_quick

    def __call__(self, tree: ClassTree, *, max_rows: int, seed: int, whole_classes: bool = False) -> float:
        """Mean out-of-fold NLL of the tree on at most about `max_rows` rows, see `TreeJudge`."""
        if self._asked != (max_rows, seed, whole_classes):
            self._look_at(tree, max_rows, seed, whole_classes)
        keys = node_keys(tree).sides
        if not self._plan.learner.nodes_are_independent:
            self._known.clear()
        new = np.array([k for k, key in enumerate(keys) if key not in self._known], dtype=np.intp)
        if len(new):
            task = self._task.of_tree(tree, None if len(new) == tree.n_nodes else new)
            for k, nll in zip(new.tolist(), self._nll(task).tolist(), strict=True):
                self._known[keys[k]] = nll
        return sum(self._known[key] for key in keys) / self._weight

    def _look_at(self, tree: ClassTree, max_rows: int, seed: int, whole_classes: bool) -> None:
        """Choose the rows to judge on, and forget what is known from others."""
        self._asked = max_rows, seed, whole_classes
        self._known.clear()
        rng = np.random.RandomState(seed)
        rows, self._folds = _judging_rows(self._plan, *self._rows, max_rows, rng, whole_classes)
        self._task = NodeTask(tree, *self._rows).subset(rows)
        weight = self._task.sample_weight
        self._weight = float(len(rows) if weight is None else weight.sum())

    def _nll(self, task: NodeTask) -> FloatArray:
        """Sum of the out-of-fold NLLs of each node's own rows; 0 where all are on one side."""
        assert self._asked is not None
        plan, rng = self._plan, np.random.RandomState(self._asked[1])
        fitted = plan.learner.cross_fit(
            task, self._folds, Wanted.SCORES, random_state=rng, effort=Effort(plan.n_jobs)
        )
        assert fitted.scores is not None
        scores = np.where(np.isnan(fitted.scores), 0.0, fitted.scores)
        if plan.learner.gives_probabilities:
            scores = np.clip(scores, -MOST_LOG_ODDS, MOST_LOG_ODDS)
        pairs = task.own_pairs()
        weight = None if task.sample_weight is None else task.sample_weight[pairs.rows]
        segments = Segments(scores, pairs.is_left, pairs.offsets, weight)
        if plan.internal is None:
            nll = segment_nll(scores, segments)
        else:
            nll = cross_fitted_nll(plan.internal, segments)
        n_left = segments.count(segments.targets)
        return np.where((n_left > 0) & (n_left < np.diff(pairs.offsets)), nll, 0.0)


def _judging_rows(
    plan: Plan,
    X: Matrix,
    codes: IntArray,
    sample_weight: FloatArray | None,
    max_rows: int,
    rng: Any,
    whole_classes: bool,
) -> tuple[IntArray, IntArray]:
    """Rows to judge trees on, at most about `max_rows` different ones, and their folds.

    Classes are taken in the order that their rows give, so that their names have no part in it.
    """
    order = GrowingTask(X, codes, np.arange(int(codes.max()) + 1), sample_weight).order
    codes = np.argsort(order)[codes]
    rows = np.arange(len(codes)) if sample_weight is None else np.flatnonzero(sample_weight > 0)
    content = np.stack([codes, _content(X)], axis=1)[rows]
    _, first, which = np.unique(content, axis=0, return_index=True, return_inverse=True)
    different = codes[rows[first]]
    chosen = np.arange(len(different))
    if len(different) > max_rows and whole_classes:
        chosen = np.flatnonzero(_some_classes(different, max_rows, rng)[different])
    elif len(different) > max_rows:
        chosen = np.flatnonzero(fold_of_rows(different, -(-len(different) // max_rows), rng) == 0)
    n_folds = plan.cv if isinstance(plan.cv, int | np.integer) else _JUDGING_FOLDS
    fold = np.full(len(different), -1, dtype=np.intp)
    fold[chosen] = fold_of_rows(different[chosen], n_folds, rng)
    of_row = fold[which.ravel()]
    return rows[of_row >= 0], of_row[of_row >= 0]


def _some_classes(codes: IntArray, max_rows: int, rng: Any) -> BoolArray:
    """Draw classes, at least two, that have at most so many rows between them."""
    counts = np.bincount(codes)
    order = rng.permutation(len(counts))
    is_chosen = np.zeros(len(counts), dtype=bool)
    is_chosen[order] = np.cumsum(counts[order]) <= max_rows
    is_chosen[order[:2]] = True
    return is_chosen


def _content(X: Matrix) -> FloatArray:
    """A number for each row that is the same, to the last bit, for rows that are equal."""
    mixing = np.random.RandomState(0).standard_normal(X.shape[1])
    if not isinstance(X, np.ndarray):
        return np.asarray(X @ mixing)
    chunks = range(0, len(X), _ROWS_AT_A_TIME)
    return np.concatenate([(X[a : a + _ROWS_AT_A_TIME] * mixing).sum(axis=1) for a in chunks])
