"""Out-of-fold NLL of trees and learners, as it will be after calibration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dichotomies._common.parallel import Context
from dichotomies.calibrators.binary import PlattScaling, cross_fitted_nll, segment_nll
from dichotomies.calibrators.binary.auto import Auto
from dichotomies.learners import Wanted
from dichotomies.rows import NodeTask
from dichotomies.rows.sampling import sample_in_folds
from dichotomies.training.cross_fitting import CrossFit
from dichotomies.tree.forest import node_keys

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray
    from dichotomies.calibrators.binary import BinaryCalibrator
    from dichotomies.rows import Rows
    from dichotomies.training.plan import Plan
    from dichotomies.tree import ClassTree

#: Folds where `cv` is not a number: the user's folds number all rows, not a sample of them.
JUDGING_FOLDS = 3
#: Scales of all nodes' log-odds, one of which stands for external calibration.
_SCALES = (1.0, 0.25, 0.35, 0.5, 0.7, 1.4, 2.0)


def node_losses(plan: Plan, task: NodeTask, seed: int) -> FloatArray:
    """Sums of the out-of-fold NLLs of each node's own rows, by way to calibrate, (n_ways, n_nodes).

    By Proposition 1 the NLL of a tree is the sum of the NLLs of its nodes over their own rows, so no class
    probability is computed. Stand-ins for the calibration that is planned: where it is the internal one, that
    itself; where it is still to be chosen, Platt scaling as well as none; where the class probabilities are
    calibrated, one scale for the log-odds of all nodes, which is a kind of temperature scaling. A missing
    score counts as log-odds of 0. The NLL of a node with rows on one side only is 0.
    """
    crossed = CrossFit.fit(plan, task, Wanted.SCORES, Context(np.random.RandomState(seed), plan.n_jobs))
    scores = np.nan_to_num(crossed.out_of_fold.scores, nan=0.0, posinf=np.inf, neginf=-np.inf)
    segments = replace(crossed.out_of_fold, scores=scores)
    losses = []
    for calibrator in _inside(plan):
        if calibrator is not None:
            losses.append(cross_fitted_nll(calibrator, segments))
            continue
        scales = _SCALES if plan.external_calibration is not None else _SCALES[:1]
        losses += [segment_nll(scale * scores, segments) for scale in scales]
    n_left = segments.count(segments.targets)
    return np.where((n_left > 0) & (n_left < np.diff(segments.offsets)), losses, 0.0)


def _inside(plan: Plan) -> list[BinaryCalibrator | None]:
    planned = plan.internal_calibration
    return [None, PlattScaling()] if isinstance(planned, Auto) else [planned]


class LearnerJudge:
    """Out-of-fold NLL of trees with the planned learner and calibration.

    A node's NLL depends only on the classes on its two sides, so it is stored: of a tree that differs little
    from those judged before, only the new nodes are trained.
    """

    def __init__(self, plan: Plan, rows: Rows) -> None:
        self._plan = plan
        self._rows = rows
        self._sampled_by: tuple[int, int, bool] | None = None
        self._known: dict[tuple[int, int], FloatArray] = {}

    @property
    def is_quick(self) -> bool:
        """See `Learner.is_quick`."""
        return self._plan.learner.is_quick

    def __call__(self, tree: ClassTree, *, max_rows: int, seed: int, whole_classes: bool = False) -> float:
        """Mean out-of-fold NLL of the tree on at most about `max_rows` rows, see `TreeJudge`."""
        if self._sampled_by != (max_rows, seed, whole_classes):
            self._draw_sample(max_rows, seed, whole_classes)
        keys = node_keys(tree).sides
        if not self._plan.learner.nodes_are_independent:
            self._known.clear()
        new = np.array([k for k, key in enumerate(keys) if key not in self._known], dtype=np.intp)
        if len(new):
            task = NodeTask(self._sample, tree, None if len(new) == tree.n_nodes else new)
            losses = node_losses(self._plan, task, seed)
            self._known |= zip([keys[k] for k in new], losses.T, strict=True)
        total = sum(self._known[key] for key in keys)
        return float(np.min(total)) / float(self._sample.class_weight.sum())

    def _draw_sample(self, max_rows: int, seed: int, whole_classes: bool) -> None:
        """Choose the rows to judge on, and forget the NLLs on others."""
        self._sampled_by = max_rows, seed, whole_classes
        self._known.clear()
        n_folds = self._plan.cv if isinstance(self._plan.cv, int) else JUDGING_FOLDS
        rng = np.random.RandomState(seed)
        self._sample = sample_in_folds(self._rows, max_rows, n_folds, rng, whole_classes=whole_classes)
