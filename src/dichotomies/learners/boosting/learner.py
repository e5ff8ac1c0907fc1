"""Boosted trees at all nodes: rows are binned once, and shared by every node and fold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dichotomies._kernels.boosting.node_rows import Ranges
from dichotomies.learners.base import LEARNERS, CrossFitted, Learner, Wanted, out_of_fold_scores
from dichotomies.learners.boosting.adaboost import HistAdaBoostClassifier
from dichotomies.learners.boosting.binning import Binning
from dichotomies.learners.boosting.gradient import HistGradientBoostClassifier
from dichotomies.learners.boosting.training import NONE, SortedRows, train_models

if TYPE_CHECKING:
    from dichotomies._common.parallel import Context
    from dichotomies._common.typing import FloatArray
    from dichotomies._kernels.boosting.node_rows import Bins
    from dichotomies.learners.boosting.trees import BoostedTrees
    from dichotomies.rows import NodeTask, Rows


@LEARNERS.register("boosting")
class BoostingLearner(Learner):
    """Boosted small trees: `HistAdaBoostClassifier` and `HistGradientBoostClassifier`.

    Rows are binned once and sorted by leaf of the class tree, so that a node's rows are a range of the binned
    ones. If no feature has more than ``max_bins`` distinct values, the result is exactly that of one clone
    per node, which would bin its own rows; otherwise, clones have finer bins at nodes with few rows. Models
    of folds share the bins of all rows, which depend on features but not on labels.

    Parameters
    ----------
    estimator : HistAdaBoostClassifier or HistGradientBoostClassifier
    """

    trains: ClassVar = {"adaboost": HistAdaBoostClassifier, "boosting": HistGradientBoostClassifier}

    def __init__(self, estimator: HistAdaBoostClassifier | HistGradientBoostClassifier) -> None:
        self.estimator = estimator

    @classmethod
    def recognise(cls, estimator: Any) -> Self:
        """Recognise the two histogram boosters, not scikit-learn's AdaBoost, which breaks ties at random."""
        estimator._validate_params()
        return cls(estimator)

    @property
    def description(self) -> str:
        """One line for users: the name of the learner and its method."""
        kind = type(self.estimator).__name__
        return f"boosting: {kind} at all nodes together, on features binned once"

    def fit(self, task: NodeTask, context: Context) -> BoostedTrees:
        """Train all nodes."""
        (model,), _ = self._train(task, [NONE], context)
        return model

    def cross_fit(self, task: NodeTask, wanted: Wanted, context: Context) -> CrossFitted:
        """Train all nodes without each fold, and on all rows, as far as wanted."""
        left_out = list(range(task.rows.n_folds)) if wanted & (Wanted.MEMBERS | Wanted.SCORES) else []
        full_too = [NONE] if Wanted.FULL in wanted else []
        trained, scores = self._train(task, left_out + full_too, context)
        members = trained[: len(left_out)]
        if self.estimator.stops_early and Wanted.SCORES in wanted:
            scores = out_of_fold_scores(task, members, context.n_jobs)
        return CrossFitted(
            trained[-1] if full_too else None,
            members if Wanted.MEMBERS in wanted else [],
            scores if Wanted.SCORES in wanted else None,
        )

    def _train(
        self, task: NodeTask, left_out: list[int], context: Context
    ) -> tuple[list[BoostedTrees], FloatArray]:
        """Train one model per fold left out."""
        order, leaf, rows = task.row_order, task.leaf_offset, task.rows
        ranges = Ranges(leaf[task.start], leaf[task.split], leaf[task.stop], task.left_is_positive)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight[order]
        fold = None if rows.fold is None else rows.fold[order]
        sorted_rows = SortedRows(*self._bins(rows, context.n_jobs), order, ranges, weight, fold)
        return train_models(self.estimator, sorted_rows, left_out, context)

    def preset(self, rows: Rows, binning: Binning, bins: Bins) -> None:
        """Train on the `bins` of `rows`, which were found before by a `binning`."""
        rows.memo[self._key(rows.n_features)] = binning, bins

    def _key(self, n_features: int) -> tuple[Any, ...]:
        is_categorical = self.estimator.is_categorical(n_features)
        return "bins", self.estimator.max_bins, tuple(np.flatnonzero(is_categorical))

    def _bins(self, rows: Rows, n_jobs: int | None) -> tuple[Binning, Bins]:
        """Binned rows."""

        def find() -> tuple[Binning, Bins]:
            is_categorical = self.estimator.is_categorical(rows.n_features)
            binning = Binning.find(rows.X, rows.weight, self.estimator.max_bins, is_categorical, n_jobs)
            return binning, binning.encode(rows.X, n_jobs)

        found: tuple[Binning, Bins] = rows.remember(self._key(rows.n_features), find)
        return found
