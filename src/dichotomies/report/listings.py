"""Lists of the report: poorly calibrated classes, confused pairs, confident mistakes; all cells are text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.report.words import count, example_text, name_of, percent, percents, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies.report.measurements import Measurements

_LINES = 20

#: Minimum expected number of errors for a pair without an observed one to count as confused.
_MIN_MASS = 0.5

_VERDICTS = {"over": "overconfident", "under": "underconfident", "fine": "within chance"}


def worst_classes(measured: Measurements) -> list[dict[str, Any]]:
    """Return the classes with the worst calibration."""
    leaf_of = _leaf_of_label(measured)
    return [
        _worst_class(row, leaf_of[row["class"]])
        for row in measured.classes.worst(_LINES)
        if row["answered"] > 0
    ]


def _worst_class(row: dict[str, Any], leaf: int) -> dict[str, Any]:
    kind = "fine" if row["excess"] == 0 else "over" if row["confidence"] > row["precision"] else "under"
    return {
        "name": name_of(row["class"]),
        "leaf": leaf,
        "says": percent(row["confidence"]),
        "right": percent(row["precision"]),
        "interval": percents(row["precision_lower"], row["precision_upper"]),
        "answers": count(row["answered"]),
        "kind": kind,
        "verdict": _VERDICTS[kind],
    }


def confused(measured: Measurements) -> list[dict[str, Any]]:
    """Return the pairs of classes that were confused."""
    leaf_of = _leaf_of_label(measured)
    size = measured.book.n_classes
    return [
        {
            "first": name_of(row["first"]),
            "second": name_of(row["second"]),
            "first_leaf": leaf_of[row["first"]],
            "second_leaf": leaf_of[row["second"]],
            "errors": count(row["errors"]),
            "mass": f"{row['mass']:.1f}",
            "rows": count(row["rows"]),
            "node": row["node"],
            "where": f"depth {row['depth']}, among {plural(int(size[row['node']]), 'class', 'classes')}",
        }
        for row in measured.pairs.to_table()
        if row["errors"] > 0 or row["mass"] >= _MIN_MASS
    ]


def mistakes(measured: Measurements, examples: Sequence[Any] | None) -> list[dict[str, Any]]:
    """Return the most confident mistakes."""
    facts = measured.facts
    wrong = np.flatnonzero((facts.rank > 0) & (facts.weight > 0))
    most_confident = wrong[np.argsort(-facts.confidence[wrong], kind="stable")][:_LINES]
    return [_mistake(measured, int(row), examples) for row in most_confident]


def _mistake(measured: Measurements, row: int, examples: Sequence[Any] | None) -> dict[str, Any]:
    facts, classes, leaf_of = measured.facts, measured.tree.classes, measured.tree.leaf_position
    truth, answer = facts.codes[row], facts.predicted[row]
    return {
        "row": str(row),
        "example": "" if examples is None else example_text(examples[row]),
        "truth": name_of(classes[truth]),
        "answer": name_of(classes[answer]),
        "truth_leaf": int(leaf_of[truth]),
        "answer_leaf": int(leaf_of[answer]),
        "says": percent(facts.confidence[row], 1),
        "gave": percent(float(np.exp(facts.log_proba[row])), 1),
    }


def _leaf_of_label(measured: Measurements) -> dict[Any, int]:
    return {label: position for position, label in enumerate(measured.tree.leaf_labels.tolist())}
