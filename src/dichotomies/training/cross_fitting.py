"""Training on folds, and what becomes of it: out-of-fold scores, calibrated nodes, fair probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.calibrators.binary import ScoreMaps, Segments, cross_fitted_nll, segment_nll
from dichotomies.inference.scorers import MOST_LOG_ODDS, AveragedScorer, CalibratedScorer
from dichotomies.learners import Wanted

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies.calibrators.binary import BinaryCalibrator
    from dichotomies.learners import CrossFitted, NodeScorer, NodeTask, Scorer
    from dichotomies.training.plan import Plan


@dataclass(frozen=True)
class CrossFit:
    """All nodes trained once per fold, without the rows of that fold, and on all rows.

    Attributes
    ----------
    folds : (n_rows,)
        The fold of each row.
    fitted : CrossFitted
        What the learner made of it.
    """

    plan: Plan
    task: NodeTask
    folds: IntArray
    fitted: CrossFitted

    @classmethod
    def fit(
        cls,
        plan: Plan,
        task: NodeTask,
        rng: Any,
        folds: IntArray,
        *,
        wanted: Wanted | None = None,
        title: str = "",
    ) -> CrossFit:
        """Train.

        Parameters
        ----------
        folds : (n_rows,)
            The fold of each row.
        wanted : Wanted
            What will be asked of it beyond `final_scorer`; `fold_scorer` needs `Wanted.MEMBERS`.
        title : str
            Put before progress reports.
        """
        wanted = _wanted_of(plan) if wanted is None else _wanted_of(plan) | wanted
        fitted = plan.learner.cross_fit(task, folds, wanted, random_state=rng, effort=plan.effort(title))
        return cls(plan, task, folds, fitted)

    @cached_property
    def scores(self) -> OutOfFold:
        """Every node's rows, scored by the members that had not seen them, within the bound."""
        assert self.fitted.scores is not None
        return OutOfFold.of(self.task, np.clip(self.fitted.scores, -self._bound, self._bound), self.folds)

    @property
    def _bound(self) -> float:
        """Log-odds are bounded before they are calibrated; scores of no known scale are not."""
        return MOST_LOG_ODDS if self.plan.learner.gives_probabilities else np.inf

    def final_scorer(self) -> Scorer:
        """The nodes to predict with.

        Either one model trained on all rows, its calibrators fitted on the pooled out-of-fold scores; or
        (`ensemble`) the members, each with calibrators of its own, averaged at every node.
        """
        if self.plan.internal is not None and self.plan.ensemble:
            return AveragedScorer(
                [
                    self._calibrated(member, self.scores.fold == f)
                    for f, member in enumerate(self.fitted.members)
                ]
            )
        assert self.fitted.full is not None
        return self.fitted.full if self.plan.internal is None else self._calibrated(self.fitted.full)

    def fold_scorer(self, fold: int) -> Scorer:
        """Nodes which, with their calibrators, have not seen the rows of a fold."""
        member = self.fitted.members[fold]
        return member if self.plan.internal is None else self._calibrated(member, self.scores.fold != fold)

    def _calibrated(self, scorer: NodeScorer, kept: BoolArray | None = None) -> Scorer:
        """Nodes with maps fitted on all out-of-fold scores, or on those in `kept`."""
        return CalibratedScorer(scorer, self._maps(self.scores.segments(kept)), self._bound)

    def _maps(self, segments: Segments) -> ScoreMaps:
        assert self.plan.internal is not None
        maps = self.plan.internal.fit_segments(segments)
        return maps.where(self._chosen(self.plan.internal, segments), ScoreMaps.identity(len(maps)))

    def _chosen(self, calibrator: BinaryCalibrator, segments: Segments) -> BoolArray:
        """Which nodes to calibrate; those without scores of both sides never are."""
        scored = (segments.count(segments.targets) > 0) & (segments.count(~segments.targets) > 0)
        wanted = self.plan.calibrated_nodes
        if isinstance(wanted, str):
            return scored
        if isinstance(wanted, float):
            return scored & largest_gains(calibrator, segments, wanted)
        return scored & np.isin(self.task.depth, list(wanted))


def largest_gains(calibrator: BinaryCalibrator, segments: Segments, share: float) -> BoolArray:
    """The share of nodes where calibration lowers the NLL of the whole tree most, if it lowers it.

    By Proposition 1 the total NLL is the sum of the nodes' NLLs over their own rows, so a gain of d per
    row at node k counts d * n_k / n: the difference of sums, divided by the same n everywhere. It is
    measured on scores that the calibrator was not fitted on.
    """
    gain = segment_nll(segments.scores, segments) - cross_fitted_nll(calibrator, segments)
    chosen = np.zeros(len(gain), dtype=bool)
    chosen[np.argsort(-gain, kind="stable")[: int(np.ceil(share * len(gain)))]] = True
    return chosen & (gain > 0)


@dataclass(frozen=True)
class OutOfFold:
    """Scores of each node's rows by models that had not seen them, node after node."""

    scores: FloatArray
    targets: BoolArray
    fold: IntArray
    offsets: IntArray
    weights: FloatArray | None

    @classmethod
    def of(cls, task: NodeTask, scores: FloatArray, folds: IntArray) -> OutOfFold:
        """Scores of ``task.own_pairs()``, without those that are NaN.

        Where the member that had not seen a row had seen only one side of the node, it answers with a
        constant, which says nothing about the model to be calibrated: such rows are left out.
        """
        pairs = task.own_pairs()
        known = ~np.isnan(scores)
        rows, targets, scores = pairs.rows[known], pairs.is_left[known], scores[known]
        offsets = np.concatenate([[0], np.cumsum(known)])[pairs.offsets]
        weights = None if task.sample_weight is None else task.sample_weight[rows]
        return cls(scores, targets, folds[rows], offsets, weights)

    def segments(self, kept: BoolArray | None = None) -> Segments:
        """What a calibrator is fitted on: all scores, or those in `kept`."""
        if kept is None:
            return Segments(self.scores, self.targets, self.offsets, self.weights)
        offsets = np.concatenate([[0], np.cumsum(kept)])[self.offsets]
        weights = None if self.weights is None else self.weights[kept]
        return Segments(self.scores[kept], self.targets[kept], offsets, weights)


def _wanted_of(plan: Plan) -> Wanted:
    """What `CrossFit.final_scorer` needs."""
    if plan.internal is None:
        return Wanted.FULL
    return Wanted.SCORES | (Wanted.MEMBERS if plan.ensemble else Wanted.FULL)
