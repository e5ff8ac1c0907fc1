"""Measurements shown in the report, computed in chunks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, Matrix
from dichotomies.diagnostics import (
    ClassCalibration,
    ConfusedPairs,
    DepthCuts,
    Ledger,
    confused_pairs,
    depth_cuts,
    ledger,
)
from dichotomies.diagnostics.classes import of_evaluation
from dichotomies.metrics import Evaluation, RowFacts, evaluate
from dichotomies.metrics.binning import sums_by_index
from dichotomies.report.answers import Answers, measure_answers
from dichotomies.tree import ClassTree

_PAIRS = 20


@dataclass(frozen=True)
class Measurements:
    """A classifier and its measurements on some rows.

    Attributes
    ----------
    clf : fitted classifier
        The nested dichotomy, or a pipeline that ends in one.
    evaluation : Evaluation
        Metrics of the final probabilities, with intervals and per-row quantities.
    book : Ledger
        NLL by node.
    cuts : DepthCuts
        Reliability of the tree cut at each depth.
    classes : ClassCalibration
        Calibration class by class.
    pairs : ConfusedPairs
        The most confused pairs.
    answers : list of Answers
        Answers as deep as the evidence, for several confidences and coverages.
    """

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
