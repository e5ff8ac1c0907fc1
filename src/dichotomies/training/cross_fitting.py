"""`CrossFit`: nodes trained on folds, their out-of-fold scores, and the calibrated nodes made of them.

A node is trained on the rows of its own classes only, so that all other rows are new to the final model
there. Only at its own nodes, those on the path of its class, does a row need models of the other folds.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dichotomies.calibrators.binary import ScoreMaps, cross_fitted_nll, segment_nll
from dichotomies.calibrators.binary.platt import BinaryTemperature
from dichotomies.inference.scorers import MOST_LOG_ODDS, AveragedScorer, CalibratedScorer
from dichotomies.learners import Wanted
from dichotomies.rows import Segments
from dichotomies.rows.folds import CALIBRATION_FOLDS, calibration_fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.parallel import Context
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies.calibrators.binary import BinaryCalibrator
    from dichotomies.learners import CrossFitted, NodeScorer, Scorer
    from dichotomies.rows import NodeTask
    from dichotomies.rows.rows import OwnPairs
    from dichotomies.training.plan import Plan


@dataclass(frozen=True, eq=False)
class CrossFit:
    """All nodes of a task trained once per fold, without the rows of that fold, and on all rows.

    Attributes
    ----------
    fitted : CrossFitted
        Models and scores of the learner.
    """

    plan: Plan
    task: NodeTask
    fitted: CrossFitted

    @classmethod
    def fit(cls, plan: Plan, task: NodeTask, wanted: Wanted, context: Context) -> CrossFit:
        """Train on the folds of ``task.rows``.

        Parameters
        ----------
        wanted : Wanted
            Results that will be used: at least those of `wanted_by`, and `SCORES` for `unseen_scorer`.
        """
        return cls(plan, task, plan.learner.cross_fit(task, wanted, context))

    def planned(self, plan: Plan) -> CrossFit:
        """The same with another calibration; what was computed of the scores is kept."""
        other = copy(self)
        object.__setattr__(other, "plan", plan)
        return other

    @cached_property
    def _pairs(self) -> OwnPairs:
        """The nodes with their own rows."""
        return self.task.own_pairs()

    @cached_property
    def out_of_fold(self) -> Segments:
        """Out-of-fold scores of every node's own rows, bounded; NaN where the fold's model lacked a side."""
        assert self.fitted.scores is not None
        return self.task.segments(np.clip(self.fitted.scores, -self._bound, self._bound))

    @cached_property
    def _is_known(self) -> BoolArray:
        """Scores in `out_of_fold` that are not missing."""
        return ~np.isnan(self.out_of_fold.scores)

    @cached_property
    def _known(self) -> Segments:
        """Scores in `out_of_fold` without those that are missing."""
        return self.out_of_fold.take(self._is_known)

    @cached_property
    def _fold(self) -> IntArray:
        """Fold of each row in `out_of_fold`."""
        assert self.task.rows.fold is not None
        return self.task.rows.fold[self._pairs.rows]

    @cached_property
    def _calibration_fold(self) -> IntArray:
        """Fold of calibrators of each row in `out_of_fold`."""
        return calibration_fold(self._fold)

    @property
    def _bound(self) -> float:
        """Bound on log-odds before calibration; scores of unknown scale have none."""
        return MOST_LOG_ODDS if self.plan.learner.gives_probabilities else np.inf

    def final_scorer(self) -> Scorer:
        """Nodes to predict with.

        Either one model trained on all rows, its calibrators fitted on the pooled out-of-fold scores; or
        (`average_folds`) the models of the folds, each with calibrators of its own, averaged at every node.
        """
        if self.plan.internal_calibration is not None and self.plan.average_folds:
            return AveragedScorer(
                [self._calibrated(member, self._fold == f) for f, member in enumerate(self.fitted.members)]
            )
        assert self.fitted.full is not None
        return self._calibrated(self.fitted.full)

    def unseen_scorer(self, fold_maps: Sequence[ScoreMaps] | None = None) -> UnseenScorer:
        """Nodes that score the task's rows as if they were new, calibrators included.

        Parameters
        ----------
        fold_maps : sequence of ScoreMaps, optional
            `fold_maps` of the planned calibrator, where they are at hand.
        """
        scores, calibrator = self._completed_scores, self.plan.internal_calibration
        if calibrator is not None:
            segments = replace(self.out_of_fold, scores=np.clip(scores, -self._bound, self._bound))
            for f, maps in enumerate(self.fold_maps(calibrator) if fold_maps is None else fold_maps):
                mine = self._calibration_fold == f
                scores[mine] = maps.apply_segments(segments.take(mine))
        return UnseenScorer(self.task, self.final_scorer(), scores)

    @property
    def _completed_scores(self) -> FloatArray:
        """Out-of-fold scores, with the smoothed log-odds of a node's sides where the model lacked one."""
        assert self.fitted.scores is not None
        scores, missing = self.fitted.scores.copy(), np.flatnonzero(~self._is_known)
        if len(missing):
            n_folds, pairs = self.task.rows.n_folds, self._pairs
            node = np.repeat(np.arange(self.task.n_nodes), self.task.node_size)
            group, is_left = node * n_folds + self._fold, pairs.is_left
            weight = np.ones(len(node)) if self.out_of_fold.weights is None else self.out_of_fold.weights
            left, right = (
                np.bincount(group, weight * side, self.task.n_nodes * n_folds).reshape(-1, n_folds)
                for side in (is_left, ~is_left)
            )
            left, right = (side.sum(axis=1, keepdims=True) - side for side in (left, right))
            scores[missing] = np.log((left + 1) / (right + 1))[node[missing], self._fold[missing]]
        return scores

    def fold_maps(self, calibrator: BinaryCalibrator) -> list[ScoreMaps]:
        """Maps fitted without each calibration fold."""
        segments, fold = self._known, self._calibration_fold[self._is_known]
        maps = calibrator.fit_without(segments, fold, min(self.task.rows.n_folds, CALIBRATION_FOLDS))
        return [self._completed(each, calibrator, segments.take(fold != f)) for f, each in enumerate(maps)]

    def nll_with(self, fold_maps: Sequence[ScoreMaps]) -> float:
        """Sum of the out-of-fold NLLs of all nodes with `fold_maps`; a missing score counts as even odds.

        By Proposition 1 this is the NLL of the tree.
        """
        known = self._is_known
        missing = float(self.out_of_fold.row_weights[~known].sum() * np.log(2))
        parts = [self.out_of_fold.take(known & (self._calibration_fold == f)) for f in range(len(fold_maps))]
        nll = (
            segment_nll(maps.apply_segments(part), part).sum()
            for maps, part in zip(fold_maps, parts, strict=True)
        )
        return float(sum(nll)) + missing

    def _calibrated(self, scorer: NodeScorer, kept: BoolArray | None = None) -> Scorer:
        calibrator = self.plan.internal_calibration
        return scorer if calibrator is None else self._with_maps(scorer, calibrator, kept)

    def _with_maps(
        self, scorer: Scorer, calibrator: BinaryCalibrator, kept: BoolArray | None
    ) -> CalibratedScorer:
        """Nodes with maps fitted on all out-of-fold scores, or on those in `kept`.

        Missing scores are left out: they come from members that answer with a constant, which is no evidence
        about the model to be calibrated.
        """
        segments = self._known if kept is None else self.out_of_fold.take(self._is_known & kept)
        return CalibratedScorer(scorer, self.maps(calibrator, segments), self._bound)

    def maps(self, calibrator: BinaryCalibrator, segments: Segments) -> ScoreMaps:
        """Calibrating map of each node; the identity where a node is not to be calibrated.

        A node without scores of both sides gets a temperature, that of all nodes together: left as it is, a
        naive Bayes of a class with one row would answer with log-odds of 200.
        """
        return self._completed(calibrator.fit_segments(segments), calibrator, segments)

    def _completed(self, maps: ScoreMaps, calibrator: BinaryCalibrator, segments: Segments) -> ScoreMaps:
        """Maps fitted to the segments, with others where a node is not scored or not to be calibrated."""
        scored = (segments.count(segments.targets) > 0) & (segments.count(~segments.targets) > 0)
        if not scored.all():
            whole = np.array([0, len(segments.scores)])
            pooled = Segments(segments.scores, segments.targets, whole, segments.weights)
            common = np.repeat(BinaryTemperature().fit_segments(pooled).parameters, len(maps), axis=0)
            maps = maps.where(scored, ScoreMaps.affine(common, "temperature"))
        return maps.where(self._chosen(calibrator, segments), ScoreMaps.identity(len(maps)))

    def _chosen(self, calibrator: BinaryCalibrator, segments: Segments) -> BoolArray:
        """Nodes to calibrate."""
        wanted = self.plan.calibrated_nodes
        if isinstance(wanted, str):
            return np.ones(len(segments), dtype=bool)
        if isinstance(wanted, float):
            return largest_gains(calibrator, segments, wanted)
        return np.isin(self.task.depth, list(wanted))


@dataclass(frozen=True, eq=False)
class UnseenScorer:
    """Log-odds of training rows at all nodes, by models and calibrators that have not seen the row.

    It takes row numbers in place of features.

    Attributes
    ----------
    task : NodeTask
    final : Scorer
        The nodes to predict with: they have not seen the rows of classes that are not theirs.
    own : (n_pairs,)
        Scores of every node's own rows, out of fold.
    """

    task: NodeTask
    final: Scorer
    own: FloatArray

    def log_odds(self, rows: IntArray) -> FloatArray:
        """Log-odds of going left for rows with these numbers, (n_rows, n_nodes)."""
        task = self.task
        out = self.final.log_odds(task.rows.features_of(rows))
        leaf = task.leaf_of_row[rows][:, None]
        row, node = np.nonzero((task.start <= leaf) & (leaf < task.stop))
        out[row, node] = self.own[self._first_pair[node] + self._place[rows][row]]
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for the row with number ``X[rows[i]]`` at node ``nodes[i]``."""
        return self.log_odds(X)[rows, nodes]

    @cached_property
    def _place(self) -> IntArray:
        """Place of each row in the order of leaves."""
        place = np.empty(len(self.task.rows), dtype=np.intp)
        place[self.task.row_order] = np.arange(len(place))
        return place

    @cached_property
    def _first_pair(self) -> IntArray:
        """Number of each node's first pair, less the place of its first row."""
        size = self.task.node_size
        return np.cumsum(size) - size - self.task.leaf_offset[self.task.start]


def wanted_by(plan: Plan) -> Wanted:
    """Results of cross-fitting that the plan needs, or the choice of its calibration."""
    if plan.internal_calibration is None:
        is_scored = plan.calibrates_outside or plan.prediction_sets
        return Wanted.FULL | (Wanted.SCORES if is_scored else Wanted(0))
    if not plan.average_folds:
        return Wanted.SCORES | Wanted.FULL
    return Wanted.SCORES | Wanted.MEMBERS | (Wanted.FULL if plan.chooses else Wanted(0))


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
