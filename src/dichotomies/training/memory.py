"""Memory of a fit: what it takes at most, and how many rows calibration may hold within `max_memory`.

The factors are upper bounds of what was measured; tests/test_memory.py holds them.
"""

from __future__ import annotations

import numpy as np

from dichotomies._common.chunks import LIMIT, written
from dichotomies.inference.fitted import least_bytes
from dichotomies.rows import Rows
from dichotomies.training.plan import Plan
from dichotomies.tree.forest import Forest

#: Bytes that do not grow with the rows: modules, kernels, samples that learners and trees are compared on.
_FIXED = 60 * 10**6
#: Copies of X, sorted, in folds or in bins; numbers for each row and node on its path; numbers for each
#: class of each calibration row, where one calibration is fitted and where several are compared.
_COPIES, _BY_PATH, _BY_CLASS, _BY_CLASS_COMPARED = 2.6, 14, 4, 10
#: Part of the limit that chunks of predictions may take; they shrink to it.
_CHUNK_PART = 0.25
#: Rows that external calibration needs: at least these, and so many per class.
_LEAST_ROWS, _ROWS_PER_CLASS = 1_000, 2


def set_limit(plan: Plan, forest: Forest, rows: Rows) -> None:
    """Limit the predictions within a fit; raise if the rows cannot be fitted within ``plan.max_memory``."""
    assert plan.max_memory is not None
    parts = _parts(plan, forest, rows)
    parts["calibration"] = _least_rows(plan, rows) * _bytes_per_row(plan, forest)
    needed = max(sum(parts.values()) / (1 - _CHUNK_PART), least_bytes(forest) / _CHUNK_PART)
    if needed <= plan.max_memory:
        LIMIT.set(int(_CHUNK_PART * plan.max_memory))
        return
    parts["chunks of predictions"] = needed - sum(parts.values())
    named = ", ".join(f"{name} {written(size)}" for name, size in parts.items() if size)
    raise ValueError(
        f"max_memory is {written(plan.max_memory)}, but fitting may take {written(needed)} beyond the rows "
        f"({named}): allow more, give fewer rows or single precision, or calibrate less "
        "(calibration_size=0.1 holds rows out, internal_calibration=None needs no scores at the nodes)."
    )


def most_calibration_rows(plan: Plan, forest: Forest, rows: Rows) -> int:
    """Rows whose class probabilities may be held at a time."""
    if plan.max_memory is None:
        return len(rows)
    left = (1 - _CHUNK_PART) * plan.max_memory - sum(_parts(plan, forest, rows).values())
    return max(_least_rows(plan, rows), int(left / max(_bytes_per_row(plan, forest), 1)))


def _parts(plan: Plan, forest: Forest, rows: Rows) -> dict[str, float]:
    """Bytes by what takes them, without those of external calibration."""
    n_models = rows.n_folds + 1 if rows.fold is not None else 1 + plan.uses_folds * plan.cv
    on_paths = sum(float(rows.class_size[tree.leaf_order] @ tree.leaf_depth) for tree in forest.trees)
    is_dense = isinstance(rows.base, np.ndarray)
    size = rows.base.itemsize * rows.base.shape[1] if is_dense else 16 * rows.base.nnz / rows.base.shape[0]
    of_nodes = 16.0 * forest.n_different * rows.n_features
    return {
        "modules and samples": _FIXED,
        "copies of X": _COPIES * len(rows) * size,
        "models": n_models * (of_nodes if is_dense else min(of_nodes, on_paths * size)),
        "scores at the nodes": 8.0 * _BY_PATH * on_paths * (plan.internal_calibration is not None),
    }


def _least_rows(plan: Plan, rows: Rows) -> int:
    wanted = max(_LEAST_ROWS, _ROWS_PER_CLASS * rows.n_classes)
    return min(len(rows), wanted) if plan.calibrates_outside or plan.prediction_sets else 0


def _bytes_per_row(plan: Plan, forest: Forest) -> float:
    width = max(forest.n_classes, forest.n_different)
    return 8.0 * width * (_BY_CLASS_COMPARED if plan.chooses else _BY_CLASS)
