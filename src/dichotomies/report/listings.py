"""Lists and tables of the report: classes, confused pairs, mistakes, accepted answers; all cells are text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import betainc

from dichotomies._common.typing import BoolArray, FloatArray
from dichotomies.diagnostics.reliability import ClassCalibration
from dichotomies.report.measurements import Measurements
from dichotomies.report.page import count, example_text, name_of, percent, percents, plural
from dichotomies.report.summary import interval, numbers

_LINES = 20

#: Share of false verdicts among those on classes.
_FALSE_DISCOVERIES = 0.05

#: Minimum expected number of errors for a pair without an observed one to count as confused.
_MIN_MASS = 0.5

_VERDICTS = {"over": "overconfident", "under": "underconfident", "fine": "within chance"}


def worst_classes(measured: Measurements) -> list[dict[str, Any]]:
    """Return the classes with the worst calibration."""
    leaf_of = _leaf_of_label(measured)
    beyond_chance = set(measured.classes.classes[_beyond_chance(measured)].tolist())
    return [
        _worst_class(row, leaf_of[row["class"]], is_chance=row["class"] not in beyond_chance)
        for row in measured.classes.worst(_LINES)
        if row["answered"] > 0
    ]


def classes_text(measured: Measurements) -> str:
    """Say how many classes lie outside their interval, how many chance would give, and how many remain."""
    found = measured.classes
    judged, outside = int((found.answered > 0).sum()), int((found.excess > 0).sum())
    return (
        f"{outside:,} of {plural(judged, 'class', 'classes')} do so, where chance alone would give about "
        f"{(1 - found.level) * judged:.1f}; called over- or underconfident are those "
        f"({int(_beyond_chance(measured).sum()):,}) that remain if at most 5 % of these verdicts may be "
        "false (Benjamini and Hochberg)."
    )


def _beyond_chance(measured: Measurements) -> BoolArray:
    """Mask of classes whose gap is significant at a false discovery rate of 5 %."""
    found = measured.classes
    p = np.where(found.answered > 0, _binomial_p(found), 1.0)
    order = np.argsort(p)
    passing = p[order] <= _FALSE_DISCOVERIES * (np.arange(len(p)) + 1) / max(
        1, int((found.answered > 0).sum())
    )
    mask = np.zeros(len(p), dtype=bool)
    mask[order[: int(np.flatnonzero(passing).max(initial=-1)) + 1]] = True
    return mask & (found.excess > 0)


def _binomial_p(found: ClassCalibration) -> FloatArray:
    """Two-sided probability of as many right predictions, were the mean confidence that of each."""
    n, p = found.answered, np.nan_to_num(found.confidence)
    right = n * np.nan_to_num(found.precision)
    as_many = np.where(right > 0, betainc(np.maximum(right, 1e-9), n - right + 1, p), 1.0)
    as_few = np.where(right < n, betainc(np.maximum(n - right, 1e-9), right + 1, 1 - p), 1.0)
    tail: FloatArray = np.minimum(as_many, as_few)
    return np.minimum(2 * tail, 1.0)


def _worst_class(row: dict[str, Any], leaf: int, *, is_chance: bool) -> dict[str, Any]:
    kind = "fine" if is_chance else "over" if row["confidence"] > row["precision"] else "under"
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


#: Confidences of the table.
_SHOWN = np.array([0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
#: Confidences of the slider and the curve.
_STEPS = np.arange(101) / 100


def accepted(measured: Measurements, least: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weight of the rows whose confidence is `least` or more, and of the wrong ones among them."""
    facts = measured.facts
    order = np.argsort(facts.confidence)
    weight = facts.weight[order]
    wrong = np.where(facts.rank[order] > 0, weight, 0.0)
    first = np.searchsorted(facts.confidence[order], least)
    return _from(weight, first), _from(wrong, first)


def _from(weight: FloatArray, first: Any) -> FloatArray:
    total = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
    found: FloatArray = total[first]
    return found


def acceptance_rows(measured: Measurements) -> list[dict[str, str]]:
    """Return the table of some confidences."""
    rows = []
    for least, n, wrong in zip(_SHOWN.tolist(), *map(list, accepted(measured, _SHOWN)), strict=True):
        lower, upper = interval(wrong, n) if n else (0.0, 1.0)
        rows.append(
            {
                "least": percent(least) if least else "all answers",
                "answered": percent(n / measured.n_rows, 1),
                "rows": count(n),
                "wrong": count(wrong),
                "share": percent(wrong / n, 1) if n else "–",
                "interval": percents(lower, upper, 1) if n else "–",
            }
        )
    return rows


def acceptance_data(measured: Measurements) -> dict[str, Any]:
    """Return the curve for the script: answered and wrong rows at every hundredth of confidence."""
    answered, wrong = accepted(measured, _STEPS)
    return {"rows": measured.n_rows, "answered": numbers(answered), "wrong": numbers(wrong)}
