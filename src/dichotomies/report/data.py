"""Data for the page's scripts: the tree with its ledger, and reliability by depth, as plain lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray
from dichotomies.diagnostics import CutStage, Reliability
from dichotomies.report.measurements import Measurements
from dichotomies.report.words import name_of

_DIGITS = 4


def script_data(measured: Measurements) -> dict[str, Any]:
    """Return everything that the scripts read."""
    return {
        "total": measured.book.total,
        "cuts": _cuts(measured),
        "tree": {**_tree(measured), **_classes(measured), "colourings": _colourings(measured)},
    }


def _tree(measured: Measurements) -> dict[str, Any]:
    tree = measured.tree
    places = ("start", "stop", "depth", "parent", "left", "right")
    return {
        "names": [name_of(label) for label in tree.leaf_labels.tolist()],
        **{name: getattr(tree, name).tolist() for name in places},
        "rows": numbers(measured.book.rows),
        "nll": numbers(measured.book.nll),
    }


def _classes(measured: Measurements) -> dict[str, Any]:
    """Return the properties of the classes, by leaf position."""
    facts = measured.facts
    return {
        "class_rows": numbers(measured.book.class_rows),
        "class_right": numbers(measured.leaf_means(facts.rank == 0)),
        "class_nll": numbers(measured.leaf_means(-facts.log_proba)),
    }


def _colourings(measured: Measurements) -> list[dict[str, Any]]:
    """Return the quantities that nodes can be coloured by, the default first."""
    book = measured.book
    by_node, by_subtree = book.by_node(), book.by_subtree()
    made = [
        _colouring("loss of the decision, per row", "Loss here, per row", by_node["nll_per_row"], book.rows),
        _colouring("loss of the branch, per row", "Here and below", by_subtree["nll_per_row"], book.rows),
        _colouring("loss of the decision, of the total", None, book.nll, book.rows),
        _colouring("possible gain of recalibration", "Recalibration could gain", book.recoverable, book.rows),
    ]
    if book.internal_gain is not None:
        label, short = "gain of internal calibration", "Calibration gained"
        made.append({**_colouring(label, short, book.internal_gain, book.rows), "diverging": True})
    return made


def _colouring(label: str, short: str | None, values: FloatArray, rows: FloatArray) -> dict[str, Any]:
    known = np.where(rows > 0, values, np.nan)
    return {"label": label, "short": short, "values": numbers(known), "diverging": False}


def _cuts(measured: Measurements) -> dict[str, Any]:
    cuts = measured.cuts
    stages = [_stage(cuts.before, "before", "before external calibration", "before")]
    if cuts.after is None:
        stages = [_stage(cuts.before, "after", "the model", "the model")]
    else:
        stages.append(_stage(cuts.after, "after", "after external calibration", "after"))
    return {"depths": cuts.depths.tolist(), "groups": cuts.n_groups.tolist(), "stages": stages}


def _stage(stage: CutStage, key: str, name: str, short: str) -> dict[str, Any]:
    amounts = ("accuracy", "confidence", "ece_top_label", "ece_pooled")
    return {
        "key": key,
        "name": name,
        "short": short,
        "top_label": _curves(stage.top_label),
        "pooled": _curves(stage.pooled),
        **{amount: numbers(getattr(stage, amount)) for amount in amounts},
    }


def _curves(curves: Reliability) -> list[list[list[float | None]]]:
    """Return the non-empty bins of each depth: mean score, frequency, interval, count."""
    lower, upper = curves.interval()
    columns = np.stack([curves.mean_score, curves.observed, lower, upper, curves.count], axis=-1)
    return [[numbers(point) for point in bins[bins[:, -1] > 0]] for bins in columns]


def numbers(values: npt.ArrayLike) -> list[float | None]:
    """Return numbers rounded to a few digits; None for values that are not finite."""
    return [_number(value) for value in np.asarray(values, dtype=np.float64).tolist()]


def _number(value: float) -> float | None:
    if not np.isfinite(value):
        return None
    if value.is_integer() and abs(value) < 2**53:
        return int(value)
    return float(f"{value:.{_DIGITS}g}")
