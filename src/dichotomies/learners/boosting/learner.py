"""Boosted trees at all nodes: rows are binned once, and shared by every node and fold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dichotomies._common.parallel import even_batches, run
from dichotomies.learners.base import LEARNERS, CrossFitted, Learner, Wanted, out_of_fold_scores
from dichotomies.learners.boosting.binning import bin_rows
from dichotomies.learners.boosting.estimators import HistAdaBoostClassifier, HistGradientBoostClassifier
from dichotomies.learners.boosting.trees import BoostedTrees, Ranges

if TYPE_CHECKING:
    from dichotomies._common.parallel import Context
    from dichotomies._kernels.boosting.ensembles import Bins
    from dichotomies.rows import NodeTask

#: Stands for no fold left out.
_NONE = -1


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

    trains: ClassVar = {"adaboost": HistAdaBoostClassifier, "gradient-boosting": HistGradientBoostClassifier}

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
        """Train all nodes; nothing is random."""
        return self._train(task, [_NONE], context)[0]

    def cross_fit(self, task: NodeTask, wanted: Wanted, context: Context) -> CrossFitted:
        """Train all nodes without each fold, and on all rows, as far as wanted."""
        left_out = list(range(task.rows.n_folds)) if wanted & (Wanted.MEMBERS | Wanted.SCORES) else []
        full_too = [_NONE] if Wanted.FULL in wanted else []
        trained = self._train(task, left_out + full_too, context)
        members = trained[: len(left_out)]
        scores = out_of_fold_scores(task, members, context.n_jobs) if Wanted.SCORES in wanted else None
        return CrossFitted(
            trained[-1] if full_too else None, members if Wanted.MEMBERS in wanted else [], scores
        )

    def _train(self, task: NodeTask, left_out: list[int], context: Context) -> list[BoostedTrees]:
        """Train one model per fold left out."""
        order, leaf, boosting = task.row_order, task.leaf_offset, self.estimator.boosting_parameters()
        rows, bins = task.rows, self._bins(task, context.n_jobs)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight[order]
        fold = None if rows.fold is None else rows.fold[order]
        ranges = Ranges(leaf[task.start], leaf[task.split], leaf[task.stop], task.left_is_positive)

        def train(nodes: range, excluded: int) -> BoostedTrees:
            mine = ranges.take(slice(nodes.start, nodes.stop))
            return BoostedTrees.train(bins, mine, boosting, weight, fold, excluded)

        batches = even_batches(task.node_size, context.n_jobs)
        models = "" if len(left_out) == 1 else f" of {len(left_out)} models"
        progress = context.progress(f"training {task.n_nodes} nodes{models}")
        work = [(batch, excluded) for excluded in left_out for batch in batches]
        done = run(train, work, n_jobs=context.n_jobs, progress=progress, shared_memory=True)
        n = len(batches)
        return [BoostedTrees.joined(done[i * n : (i + 1) * n]) for i in range(len(left_out))]

    def _bins(self, task: NodeTask, n_jobs: int | None) -> Bins:
        """Binned rows, sorted by leaf."""
        rows, max_bins = task.rows, self.estimator.max_bins
        bins = rows.remember(
            ("bins", max_bins),
            lambda: bin_rows(rows.X, np.arange(len(rows)), rows.weight, max_bins, n_jobs),
        )
        sorted_bins: Bins = bins._replace(codes=bins.codes.take(task.row_order, axis=0))
        return sorted_bins
