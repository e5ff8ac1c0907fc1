"""Accepting answers above a confidence: how many rows are answered, and how many of them wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies.report.data import numbers
from dichotomies.report.measurements import Measurements
from dichotomies.report.summary import interval
from dichotomies.report.words import count, percent, percents

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
