"""Estimators from files of earlier versions, in which some of the fitted parts were other attributes."""

from __future__ import annotations

from typing import Any

from dichotomies.inference.fitted import FittedForest
from dichotomies.persistence.checks import check_value, expect
from dichotomies.training.external import Calibration, name_of
from dichotomies.tree import ClassTree
from dichotomies.tree.forest import Forest

#: Parameters of earlier versions.
_GONE = ("bootstrap", "member_calibration")


def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """Parameters and fitted attributes of today from those of any earlier version."""
    state = {name: value for name, value in _with_model(state).items() if name not in _GONE}
    if "model_" not in state or "calibration_" in state:
        return state
    internal, external = (name_of(state.get(f"{kind}_calibration")) for kind in ("internal", "external"))
    return state | {"calibration_": Calibration(internal, external)}


def _with_model(state: dict[str, Any]) -> dict[str, Any]:
    """Parameters and fitted attributes of today from those of format 1; others are returned unchanged."""
    if "ensemble" not in state:
        return state
    state = dict(state)
    state["average_folds"] = state.pop("ensemble")
    if "learner_" not in state:
        return state
    expect("external_calibrator_" in state, "there is an external calibrator, or None")
    external = state.pop("external_calibrator_")
    if "_scorer" in state:
        expect("tree_" in state, "there is a tree")
        tree = state.pop("tree_")
        check_value(ClassTree, tree, "tree_", {})
        state["model_"] = FittedForest(Forest.of([tree]), state.pop("_scorer"), external=external)
        return state
    names = ("_forest", "_nodes", "pooling_", "member_calibrators_")
    expect(all(name in state for name in names), "there are trees and their nodes")
    forest, scorer, pooling, members = (state.pop(name) for name in names)
    state["model_"] = FittedForest(forest, scorer, pooling, members, external)
    return state
