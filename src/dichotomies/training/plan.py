"""`Plan`: the parameters of an estimator, names resolved and values checked."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from sklearn.base import clone

from dichotomies._common.chunks import n_bytes, written
from dichotomies._common.progress import set_call
from dichotomies.calibrators.binary import BINARY, BinaryCalibrator
from dichotomies.calibrators.binary.auto import Auto
from dichotomies.calibrators.multiclass import MULTICLASS, MulticlassCalibrator
from dichotomies.calibrators.multiclass.auto import AutoCalibration
from dichotomies.inference.fitted import least_bytes
from dichotomies.inference.pooling import check_pooling
from dichotomies.learners import Learner, choose
from dichotomies.rows import Rows
from dichotomies.structures import Structure, resolve
from dichotomies.structures.auto import Auto as AutoStructure
from dichotomies.training.parameters import EnsembleParameters, TreeParameters
from dichotomies.tree.forest import Forest


@dataclass(eq=False, kw_only=True)
class Plan(EnsembleParameters):
    """Parameters of `NestedDichotomyClassifier` or `NestedDichotomyEnsemble`, objects in place of names.

    A single tree is an ensemble of one, grown on all features and rows.
    """

    learner: Learner = field()
    structure: Structure | None = None
    internal_calibration: BinaryCalibrator | None = None
    external_calibration: MulticlassCalibrator | None = None
    n_estimators: int = 1
    max_features: float = 1.0

    @classmethod
    def of(cls, given: TreeParameters, base: Any) -> Plan:
        """Check the parameters of an estimator; a subclass's constructor may not have all of them.

        Parameters
        ----------
        base : scikit-learn classifier
            Trained at the nodes.
        """
        values = {each.name: getattr(given, each.name) for each in fields(given)}
        calibrated = values["internal_calibration"] is not None
        checked = {name: check(values[name]) for name, check in _CHECKS.items() if name in values}
        base = _as_member(base, checked.get("n_estimators", 1))
        checked["learner"] = choose(base, values["learner"], calibrated=calibrated)
        if isinstance(given, EnsembleParameters) and isinstance(checked["structure"], AutoStructure):
            checked["structure"] = AutoStructure(diverse=True)
        plan = cls(**(values | checked))
        if plan.keep_rows and plan.calibrates_outside and plan.calibration_size != "cross-fit":
            raise ValueError(
                "keep_rows keeps out-of-fold scores to calibrate on, which calibration_size="
                f"{plan.calibration_size!r} does not compute; leave it at 'cross-fit'."
            )
        return plan

    @property
    def calibrates_outside(self) -> bool:
        """True if class probabilities are calibrated, which takes rows that the nodes were not trained on."""
        return self.external_calibration is not None

    @property
    def chooses(self) -> bool:
        """True if a calibration is to be chosen by out-of-fold NLL, see `training.calibration_choice`."""
        crosses_outside = self.calibration_size == "cross-fit"
        return isinstance(self.internal_calibration, Auto) or (
            crosses_outside and isinstance(self.external_calibration, AutoCalibration)
        )

    @property
    def uses_folds(self) -> bool:
        """True if nodes are trained on folds."""
        crosses_outside = self.calibrates_outside and self.calibration_size == "cross-fit"
        return self.internal_calibration is not None or crosses_outside or self.prediction_sets > 0


def _as_member(base: Any, n_members: int) -> Any:
    """The estimator, told the size of its ensemble if it has a parameter for that."""
    if n_members == 1 or getattr(base, "n_members", None) != "auto":
        return base
    return clone(base).set_params(n_members=n_members)


def check_whole(value: Any, name: str) -> int:
    """Return a whole number, 1 or more; raise otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number, 1 or more, got {value!r}.")
    return int(value)


def _binary(calibrator: Any) -> BinaryCalibrator | None:
    return None if calibrator is None else BINARY.resolve(calibrator, BinaryCalibrator)


def _multiclass(calibrator: Any) -> MulticlassCalibrator | None:
    return None if calibrator is None else MULTICLASS.resolve(calibrator, MulticlassCalibrator)


def _folds(cv: Any) -> Any:
    if isinstance(cv, str) and cv != "auto":
        raise ValueError(f"cv must be 'auto', a number of folds, a splitter or its parts, got {cv!r}.")
    return int(cv) if isinstance(cv, np.integer) else cv


def _nodes(wanted: Any) -> Any:
    """'all', a share as a float, or depths as a tuple of integers."""
    if isinstance(wanted, str) and wanted == "all":
        return wanted
    if isinstance(wanted, float | np.floating) and 0 < wanted <= 1:
        return float(wanted)
    depths = tuple(wanted) if hasattr(wanted, "__iter__") and not isinstance(wanted, str | dict) else ()
    if depths and all(isinstance(depth, int | np.integer) and depth >= 0 for depth in depths):
        return depths
    raise ValueError(
        "calibrated_nodes must be 'all', a list of depths such as [0, 1, 2], or the share of nodes to "
        f"calibrate as a float in (0, 1], got {wanted!r}."
    )


def _calibration_size(size: Any) -> Any:
    if isinstance(size, str) and size == "cross-fit":
        return size
    if not isinstance(size, float | np.floating) or not 0 < size < 1:
        raise ValueError(
            "calibration_size must be the share of rows to hold out as a float between 0 and 1, or "
            f"'cross-fit', got {size!r}."
        )
    return size


def _kept(value: Any) -> Any:
    if isinstance(value, str) and value == "all":
        return value
    if value in (0, None):
        return 0
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"keep_rows must be a number of rows or 'all', got {value!r}.")
    return int(value)


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not 0 < value <= 1:
        raise ValueError(f"max_features must be a share of the features, above 0 and up to 1, got {value!r}.")
    return float(value)


#: By parameter: returns the value to plan with, or raises.
_CHECKS = {
    "structure": resolve,
    "internal_calibration": _binary,
    "external_calibration": _multiclass,
    "cv": _folds,
    "calibrated_nodes": _nodes,
    "calibration_size": _calibration_size,
    "prediction_sets": lambda value: 0 if value in (0, None) else check_whole(value, "prediction_sets"),
    "keep_rows": _kept,
    "n_estimators": lambda value: check_whole(value, "n_estimators"),
    "max_features": _share,
    "max_memory": n_bytes,
    "pooling": check_pooling,
}


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
        set_call(limit=int(_CHUNK_PART * plan.max_memory))
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
