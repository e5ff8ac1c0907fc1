"""Growing the trees of a plan, and judging trees with its learner."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._common.parallel import Context
from dichotomies.learners import Wanted
from dichotomies.rows import NodeTask
from dichotomies.rows.sampling import sample_in_folds
from dichotomies.structures import GrowingTask
from dichotomies.training.cross_fitting import CrossFit
from dichotomies.tree.forest import Forest, node_keys

if TYPE_CHECKING:
    from dichotomies.rows import Rows
    from dichotomies.structures import TreeJudge
    from dichotomies.training.plan import Plan
    from dichotomies.tree import ClassTree

#: Folds where `cv` is not a number: the user's folds number all rows, not a sample of them.
_JUDGING_FOLDS = 3


def grow(plan: Plan, rows: Rows, judge: TreeJudge, rng: Any) -> Forest:
    """Grow one tree or several, each on a random share of the features."""
    assert plan.structure is not None
    trees = [
        plan.structure.grow_from(GrowingTask(_with_some_features(rows, plan.max_features, rng), judge), rng)
        for _ in range(plan.n_estimators)
    ]
    forest = Forest.of(trees, shared=not plan.bootstrap)
    if len(trees) > 1 and not plan.bootstrap and forest.n_different == trees[0].n_nodes > 3:
        warnings.warn(
            f"All {len(trees)} trees are the same, so that pooling them changes nothing: choose a "
            "structure with chance, lower max_features, or set bootstrap=True.",
            stacklevel=4,
        )
    return forest


def _with_some_features(rows: Rows, share: float, rng: Any) -> Rows:
    n_taken = max(1, round(share * rows.n_features))
    if n_taken == rows.n_features:
        return rows
    return rows.with_features(np.sort(rng.permutation(rows.n_features)[:n_taken]))


class LearnerJudge:
    """Out-of-fold NLL of trees with the planned learner and internal calibration.

    By Proposition 1 the NLL of a tree is the sum of the NLLs of its nodes over their own rows, so no class
    probability is computed; and a node's NLL depends only on the classes on its two sides, so it is stored:
    of a tree that differs little from those judged before, only the new nodes are trained.
    """

    def __init__(self, plan: Plan, rows: Rows) -> None:
        self._plan = plan
        self._rows = rows
        self._sampled_by: tuple[int, int, bool] | None = None
        self._node_nll: dict[tuple[int, int], float] = {}

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
            self._node_nll.clear()
        new = np.array([k for k, key in enumerate(keys) if key not in self._node_nll], dtype=np.intp)
        if len(new):
            task = NodeTask(self._sample, tree, None if len(new) == tree.n_nodes else new)
            context = Context(np.random.RandomState(seed), self._plan.n_jobs)
            nll = CrossFit.fit(self._plan, task, Wanted.SCORES, context).node_nll()
            self._node_nll |= zip([keys[k] for k in new], nll.tolist(), strict=True)
        return sum(self._node_nll[key] for key in keys) / float(self._sample.class_weight.sum())

    def _draw_sample(self, max_rows: int, seed: int, whole_classes: bool) -> None:
        """Choose the rows to judge on, and forget the NLLs on others."""
        self._sampled_by = max_rows, seed, whole_classes
        self._node_nll.clear()
        n_folds = self._plan.cv if isinstance(self._plan.cv, int) else _JUDGING_FOLDS
        rng = np.random.RandomState(seed)
        self._sample = sample_in_folds(self._rows, max_rows, n_folds, rng, whole_classes=whole_classes)
