"""Training on folds, and what becomes of it: out-of-fold scores, calibrated nodes, fair probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._parallel import even_batches, run
from dichotomies.calibrators.binary import ScoreMaps, Segments, cross_fitted_nll, segment_nll
from dichotomies.folds import fold_of_rows
from dichotomies.inference import log_proba_of
from dichotomies.scorers import MOST_LOG_ODDS, AveragedScorer, CalibratedScorer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._typing import BoolArray, FloatArray, IntArray
    from dichotomies.calibrators.binary import BinaryCalibrator
    from dichotomies.learners import NodeScorer, NodeTask, Scorer
    from dichotomies.plan import Plan


@dataclass(frozen=True)
class CrossFit:
    """All nodes trained once per fold, without the rows of that fold.

    Attributes
    ----------
    folds : (n_rows,)
        The fold of each row.
    members : list of NodeScorer
        ``members[f]`` has not seen the rows of fold ``f``.
    """

    plan: Plan
    task: NodeTask
    folds: IntArray
    members: Sequence[NodeScorer]

    @classmethod
    def fit(cls, plan: Plan, task: NodeTask, rng: Any, folds: IntArray | None = None) -> CrossFit:
        """Deal the rows to folds, unless they are given, and train on all but one, for each."""
        folds = fold_of_rows(task.codes, plan.cv, rng) if folds is None else folds
        n_folds = int(folds.max()) + 1
        members = [
            plan.fit_nodes(task.subset(np.flatnonzero(folds != f)), rng, f"fold {f + 1} of {n_folds}: ")
            for f in range(n_folds)
        ]
        return cls(plan, task, folds, members)

    @cached_property
    def scores(self) -> OutOfFold:
        """Every node's rows, scored by the members that had not seen them, within the bound."""
        scores = OutOfFold.of(self.task, self.members, self.folds, self.plan.n_jobs)
        return replace(scores, scores=np.clip(scores.scores, -self._bound, self._bound))

    @property
    def _bound(self) -> float:
        """Log-odds are bounded before they are calibrated; scores of no known scale are not."""
        return MOST_LOG_ODDS if self.plan.learner.gives_probabilities else np.inf

    def final_scorer(self, rng: Any) -> Scorer:
        """The nodes to predict with.

        Either one model trained on all rows, its calibrators fitted on the pooled out-of-fold scores; or
        (`ensemble`) the members, each with calibrators of its own, averaged at every node.
        """
        if self.plan.internal is None:
            return self.plan.fit_nodes(self.task, rng)
        if not self.plan.ensemble:
            return self._calibrated(self.plan.fit_nodes(self.task, rng))
        return AveragedScorer(
            [self._calibrated(member, self.scores.fold == f) for f, member in enumerate(self.members)]
        )

    def log_proba(self, rows: IntArray) -> FloatArray:
        """Class log-probabilities of rows by models, and node calibrators, that had not seen them."""
        out: FloatArray = np.empty((len(rows), self.task.tree.n_classes), dtype=np.float32)
        for f, member in enumerate(self.members):
            scorer: Scorer = member
            if self.plan.internal is not None:
                scorer = self._calibrated(member, self.scores.fold != f)
            inside = np.flatnonzero(self.folds[rows] == f)
            X = self.task.take(rows[inside])
            out[inside] = log_proba_of(self.task.tree, scorer, X, n_jobs=self.plan.n_jobs, dtype=np.float32)
        return out

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
        return scored & np.isin(self.task.tree.depth, list(wanted))


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
    def of(
        cls, task: NodeTask, members: Sequence[NodeScorer], folds: IntArray, n_jobs: int | None = None
    ) -> OutOfFold:
        """Score every node's rows.

        Where the member that had not seen a row had seen only one side of the node, it answers with a
        constant, which says nothing about the model to be calibrated: such rows are left out.
        """
        batches = [(task, members, folds, nodes) for nodes in even_batches(task.node_size, n_jobs)]
        parts = list(chain(*run(_score_nodes, batches, n_jobs=n_jobs, shared_memory=True)))
        rows, scores, targets = (np.concatenate(column) for column in zip(*parts, strict=True))
        offsets = np.cumsum([0, *(len(part[0]) for part in parts)])
        weights = None if task.sample_weight is None else task.sample_weight[rows]
        return cls(scores, targets, folds[rows], offsets, weights)

    def segments(self, kept: BoolArray | None = None) -> Segments:
        """What a calibrator is fitted on: all scores, or those in `kept`."""
        if kept is None:
            return Segments(self.scores, self.targets, self.offsets, self.weights)
        offsets = np.concatenate([[0], np.cumsum(kept)])[self.offsets]
        weights = None if self.weights is None else self.weights[kept]
        return Segments(self.scores[kept], self.targets[kept], offsets, weights)


def _score_nodes(
    task: NodeTask, members: Sequence[NodeScorer], folds: IntArray, nodes: range
) -> list[tuple[IntArray, FloatArray, BoolArray]]:
    return [_score_node(task, members, folds, node) for node in nodes]


def _score_node(
    task: NodeTask, members: Sequence[NodeScorer], folds: IntArray, node: int
) -> tuple[IntArray, FloatArray, BoolArray]:
    """Rows of one node, their scores, and whether each belongs to the left side."""
    rows, is_left = task.rows(node)
    scores = np.full(len(rows), np.nan)
    for f, member in enumerate(members):
        inside = np.flatnonzero(folds[rows] == f)
        if len(inside) and member.is_trained(node):
            scores[inside] = member.node_log_odds(node, task.take(rows[inside]))
    known = ~np.isnan(scores)
    return rows[known], scores[known], is_left[known]
