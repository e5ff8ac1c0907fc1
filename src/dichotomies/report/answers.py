"""Answers as deep as the evidence: how often a class or only a group can be given, and how often it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray, LabelArray, Matrix
from dichotomies.diagnostics.evaluated_model import tree_classifier
from dichotomies.report.words import percent

_CONFIDENCES, _COVERAGES = (0.5, 0.8, 0.9, 0.95), (0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Answers:
    """Answers of one kind for all rows.

    Attributes
    ----------
    asked : str
        Confidence or coverage, in words.
    is_single : float
        Share of answers that are one class.
    size, depth : float
        Mean number of classes; mean depth in the tree, NaN for sets.
    is_right : float
        Share of answers that hold the true class.
    """

    asked: str
    is_single: float
    size: float
    depth: float
    is_right: float


def measure_answers(clf: Any, X: Matrix, y: LabelArray, weight: FloatArray) -> list[Answers]:
    """Answer by confidence and, if sets are calibrated, by coverage."""
    clf, X = tree_classifier(clf, X)
    found = []
    for confidence in _CONFIDENCES:
        nodes = clf.predict_node(X, confidence)
        asked = f"confidence {percent(confidence)}"
        found.append(_summed(asked, weight, nodes.size, nodes.depth, nodes.holds(y)))
    for coverage in _COVERAGES if hasattr(clf, "conformal_") else ():
        sets = clf.predict_set(X, coverage)
        size = np.array([len(labels) for labels in sets])
        held = np.array([label in labels for label, labels in zip(y, sets, strict=True)])
        found.append(_summed(f"sets, coverage {percent(coverage)}", weight, size, np.nan * size, held))
    return found


def _summed(asked: str, weight: FloatArray, size: Any, depth: Any, held: Any) -> Answers:
    """Means over the rows."""
    single, mean_size, mean_depth, right = (
        float(np.average(each, weights=weight)) for each in (size == 1, size, depth, held)
    )
    return Answers(asked, single, mean_size, mean_depth, right)


def answer_rows(answers: list[Answers]) -> list[dict[str, str]]:
    """Cells of the report's table."""
    return [
        {
            "asked": each.asked,
            "single": percent(each.is_single),
            "size": f"{each.size:.1f}",
            "depth": "–" if np.isnan(each.depth) else f"{each.depth:.1f}",
            "right": percent(each.is_right),
        }
        for each in answers
    ]
