"""Growing the trees of a plan."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import diags_array

from dichotomies.structures import GrowingTask
from dichotomies.structures.class_points import CLASS_TOTALS
from dichotomies.tree.forest import Forest

if TYPE_CHECKING:
    from dichotomies.rows import Rows
    from dichotomies.rows.row_counts import RowCounts
    from dichotomies.structures import TreeJudge
    from dichotomies.training.plan import Plan


def grow(plan: Plan, rows: Rows, judge: TreeJudge, rng: Any, notes: list[str] | None = None) -> Forest:
    """Grow one tree or several, each on a random share of the features; `notes` receives remarks."""
    assert plan.structure is not None
    notes = [] if notes is None else notes
    trees = [
        plan.structure.grow_from(
            GrowingTask(_with_some_features(rows, plan.max_features, rng), judge, notes), rng
        )
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


def with_totals(rows: Rows, counts: RowCounts) -> Rows:
    """A sample of rows whose classes have the mean features of all rows, which were counted."""
    if np.isfinite(counts.totals.sum()):
        every = counts.size if counts.weight is None else counts.weight
        share = np.divide(rows.class_weight, every, out=np.zeros(len(every)), where=every > 0)
        rows.memo[CLASS_TOTALS] = diags_array(share, format="csr") @ counts.totals
    return rows


def _with_some_features(rows: Rows, share: float, rng: Any) -> Rows:
    n_taken = max(1, round(share * rows.n_features))
    if n_taken == rows.n_features:
        return rows
    return rows.with_features(np.sort(rng.permutation(rows.n_features)[:n_taken]))
