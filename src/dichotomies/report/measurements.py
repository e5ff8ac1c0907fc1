"""Measurements shown in the report, computed in chunks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, LabelArray, Matrix
from dichotomies.diagnostics import (
    ClassCalibration,
    ConfusedPairs,
    DepthCuts,
    Ledger,
    confused_pairs,
    depth_cuts,
    ledger,
)
from dichotomies.diagnostics.evaluated_model import last_step
from dichotomies.diagnostics.reliability import of_evaluation
from dichotomies.metrics import Evaluation, RowFacts, evaluate
from dichotomies.metrics.binning import sums_by_index
from dichotomies.report.page import percent
from dichotomies.tree import ClassTree

_CONFIDENCES, _COVERAGES = (0.5, 0.8, 0.9, 0.95), (0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Answers:
    """Answers of one kind for all rows."""

    asked: str
    is_single: float
    size: float
    depth: float
    is_right: float


def measure_answers(clf: Any, X: Matrix, y: LabelArray, weight: FloatArray) -> list[Answers]:
    """Answer by confidence and, if sets are calibrated, by coverage."""
    clf, X = last_step(clf, X)
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


_PAIRS = 20


@dataclass(frozen=True)
class Measurements:
    """A classifier and its measurements on some rows."""

    clf: Any
    evaluation: Evaluation
    book: Ledger
    cuts: DepthCuts
    classes: ClassCalibration
    pairs: ConfusedPairs
    answers: list[Answers]

    @property
    def tree(self) -> ClassTree:
        """The tree."""
        return self.book.tree

    @property
    def facts(self) -> RowFacts:
        """Per-row quantities."""
        return self.evaluation.facts

    @property
    def n_rows(self) -> float:
        """Total weight of the rows; their number if unweighted."""
        return float(self.facts.weight.sum())

    def leaf_means(self, values: npt.ArrayLike) -> FloatArray:
        """Return the mean over the rows of each class, by leaf position; NaN for a class without rows."""
        weighed = self.facts.weight > 0
        leaves, weight = self.tree.leaf_position[self.facts.codes[weighed]], self.facts.weight[weighed]
        amounts = weight * np.asarray(values, dtype=np.float64)[weighed]
        sums, rows = (sums_by_index(leaves, each, self.tree.n_classes) for each in (amounts, weight))
        means: FloatArray = np.divide(sums, rows, out=np.full(len(rows), np.nan), where=rows > 0)
        return means


def measure(clf: Any, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> Measurements:
    """Evaluate the classifier on the rows, once for each part of the report."""
    book = ledger(clf, X, y, sample_weight=sample_weight)  # first: it raises if clf is not a nested dichotomy
    evaluation = evaluate(clf, X, y, sample_weight=sample_weight)
    return Measurements(
        clf=clf,
        evaluation=evaluation,
        book=book,
        cuts=depth_cuts(clf, X, y, sample_weight=sample_weight),
        classes=of_evaluation(evaluation),
        pairs=confused_pairs(clf, X, y, _PAIRS, by="errors", sample_weight=sample_weight),
        answers=measure_answers(clf, X, book.tree.classes[evaluation.facts.codes], evaluation.facts.weight),
    )
