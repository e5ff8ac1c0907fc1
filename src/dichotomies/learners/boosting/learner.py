"""Boosted trees at all nodes: rows are binned once, and shared by every node and fold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dichotomies._common.parallel import even_batches, run
from dichotomies.learners.base import LEARNERS, CrossFitted, Effort, Learner, Wanted, out_of_fold_scores
from dichotomies.learners.boosting.binning import bin_rows
from dichotomies.learners.boosting.estimators import HistAdaBoostClassifier, HistGradientBoostClassifier
from dichotomies.learners.boosting.trees import BoostedTrees, Ranges

if TYPE_CHECKING:
    from dichotomies._common.typing import IntArray
    from dichotomies._kernels.boosting.ensembles import Bins
    from dichotomies.learners.base import NodeTask

#: Instead of the number of a fold: leave out none.
_NONE = -1


@LEARNERS.register("boosting")
class BoostingLearner(Learner):
    """Boosted small trees: `HistAdaBoostClassifier` and `HistGradientBoostClassifier`.

    Rows are binned once, in the order of the leaves of the class tree, so that a node's rows are a range of
    the binned ones. As long as no feature has more than ``max_bins`` different values, the result is exactly
    that of one clone per node, which would bin its own rows; beyond that, clones have finer bins where a
    node has few rows. Models of folds share the bins of all rows, which know features but no labels.

    Parameters
    ----------
    estimator : HistAdaBoostClassifier or HistGradientBoostClassifier
    """

    def __init__(self, estimator: HistAdaBoostClassifier | HistGradientBoostClassifier) -> None:
        self.estimator = estimator

    @classmethod
    def recognise(cls, estimator: Any) -> Self | None:
        """Our own two; scikit-learn's AdaBoost breaks ties at random, which only its clones can do."""
        if type(estimator) not in (HistAdaBoostClassifier, HistGradientBoostClassifier):
            return None
        estimator._validate_params()
        return cls(estimator)

    @property
    def description(self) -> str:
        """Which way the nodes are trained, for people."""
        kind = type(self.estimator).__name__
        return f"boosting: {kind} at all nodes together, on features binned once"

    def fit(
        self, task: NodeTask, *, random_state: Any, effort: Effort | None = None, title: str = ""
    ) -> BoostedTrees:
        """Train all nodes; nothing is random."""
        del random_state
        return self._train(task, None, [_NONE], effort or Effort(), title)[0]

    def cross_fit(
        self,
        task: NodeTask,
        folds: IntArray,
        wanted: Wanted,
        *,
        random_state: Any,
        effort: Effort | None = None,
    ) -> CrossFitted:
        """Train all nodes once per fold, without its rows, and on all rows, as far as wanted."""
        del random_state
        effort = effort or Effort()
        left_out = list(range(int(folds.max()) + 1)) if wanted & (Wanted.MEMBERS | Wanted.SCORES) else []
        full_too = [_NONE] if Wanted.FULL in wanted else []
        trained = self._train(task, folds, left_out + full_too, effort)
        members = trained[: len(left_out)]
        scores = out_of_fold_scores(task, members, folds, effort.n_jobs) if Wanted.SCORES in wanted else None
        return CrossFitted(
            trained[-1] if full_too else None, members if Wanted.MEMBERS in wanted else [], scores
        )

    def _train(
        self, task: NodeTask, folds: IntArray | None, left_out: list[int], effort: Effort, title: str = ""
    ) -> list[BoostedTrees]:
        """One model per fold to leave out."""
        order, boosting = task.row_order, self.estimator._boosting()
        bins = self._bins(task, effort)
        weight = np.ones(len(order)) if task.sample_weight is None else task.sample_weight[order]
        fold = None if folds is None else folds[order]
        leaf = task.leaf_offset
        bounds = leaf[task.start], leaf[task.split], leaf[task.stop]
        ranges = Ranges(*bounds, task.left_is_positive)

        def train(nodes: range, excluded: int) -> BoostedTrees:
            mine = ranges.take(slice(nodes.start, nodes.stop))
            return BoostedTrees.train(bins, mine, boosting, weight, fold, excluded)

        batches = even_batches(task.node_size, effort.n_jobs)
        models = "" if len(left_out) == 1 else f" of {len(left_out)} models"
        progress = effort.progress(f"{title}training {task.n_nodes} nodes{models}")
        work = [(batch, excluded) for excluded in left_out for batch in batches]
        done = run(train, work, n_jobs=effort.n_jobs, progress=progress, shared_memory=True)
        n = len(batches)
        return [BoostedTrees.joined(done[i * n : (i + 1) * n]) for i in range(len(left_out))]

    def _bins(self, task: NodeTask, effort: Effort) -> Bins:
        """The binned rows, in the order of the leaves."""
        max_bins = self.estimator.max_bins
        rows = np.arange(len(task.codes))
        bins = task.memo.get(
            ("bins", max_bins), lambda: bin_rows(task.X, rows, task.sample_weight, max_bins, effort.n_jobs)
        )
        sorted_bins: Bins = bins._replace(codes=bins.codes.take(task.row_order, axis=0))
        return sorted_bins
