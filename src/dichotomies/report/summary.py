"""The first screen of the report: the quality of the probabilities, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray
from dichotomies.diagnostics import CutStage, Reliability
from dichotomies.metrics.binning import bin_of, bin_sums
from dichotomies.metrics.reliability import wilson_interval
from dichotomies.report.measurements import Measurements
from dichotomies.report.page import count, name_of, percent, percents, plural

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


#: Borders of the confidence bands: the band 80 % covers 75 % to 85 %.
_BORDERS = np.array([0.0, 0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 1.0])

#: Minimum rows of a band for the headline; if no band has as many, the headline says so.
_MIN_ROWS = 30

#: Gap between confidence and accuracy that matters little even if it is significant.
_SMALL_GAP = 0.03


#: Maximum odds against the true class that are spelt out.
_WORST_ODDS = 1e9


@dataclass(frozen=True)
class Band:
    """Predictions of about the same confidence, and the number that were right."""

    low: float
    high: float
    rows: float
    says: float
    right: float
    lower: float
    upper: float


def bands(measured: Measurements) -> list[Band]:
    """Return the confidence bands that have rows."""
    events = measured.facts.events()
    place = bin_of(events.score, _BORDERS)
    rows, says, right = bin_sums(place, events.score, events.happened, events.weight, len(_BORDERS) - 1)
    sides = np.column_stack([_BORDERS[:-1], _BORDERS[1:], rows, says, right])[rows > 0].tolist()
    return [Band(low, high, n, s / n, r / n, *interval(r, n)) for low, high, n, s, r in sides]


def interval(right: float, rows: float) -> tuple[float, float]:
    """Return the 95 % interval of a proportion."""
    lower, upper = wilson_interval(np.array([right]), np.array([rows]), 0.95)
    return float(lower[0]), float(upper[0])


def band_rows(found: list[Band]) -> list[dict[str, str]]:
    """Return the bands as table rows."""
    return [
        {
            "says": percents(band.low, band.high),
            "mean": percent(band.says, 1),
            "right": percent(band.right, 1),
            "interval": percents(band.lower, band.upper),
            "rows": count(band.rows),
        }
        for band in found
    ]


def headline(found: list[Band], n_rows: float) -> dict[str, str]:
    """Return the headline, and the evidence for it."""
    judged = [band for band in found if band.rows >= _MIN_ROWS]
    band = max(judged, key=_surprise) if judged else max(found, key=lambda each: each.rows)
    basis = (
        f"The worst range of confidence: {plural(band.rows, 'row', 'rows')} of {count(n_rows)} with one "
        f"between {percent(band.low)} and {percent(band.high)}; 95 % interval of their accuracy: "
        f"{percents(band.lower, band.upper)}."
    )
    if judged and all(each.lower <= each.says <= each.upper for each in judged):
        basis += " In no range does it differ from the confidence by more than chance."
    sentence = f"When it says {percent(band.says)}, it is right {percent(band.right)} of the time."
    if band.rows < _MIN_ROWS:
        sentence += f" That rests on {plural(band.rows, 'row', 'rows')}: too few to be conclusive."
    return {"headline": sentence, "headline_basis": basis}


def _surprise(band: Band) -> float:
    """Return the gap between confidence and accuracy in standard errors."""
    return abs(band.says - band.right) / float(np.sqrt(max(band.says * (1 - band.says), 1e-6) / band.rows))


def sentences(measured: Measurements) -> list[str]:
    """Return the other key statements."""
    return [*_overall(measured), *_calibrations(measured), *_confusion(measured), *_absent(measured)]


def _overall(measured: Measurements) -> Iterator[str]:
    facts, n_rows = measured.facts, measured.n_rows
    right, says = facts.mean(facts.rank == 0), facts.mean(facts.confidence)
    lower, upper = interval(right * n_rows, n_rows)
    judgement = "neither over- nor underconfident by more than chance"
    if not lower <= says <= upper:
        degree = "slightly " if abs(says - right) < _SMALL_GAP else ""
        judgement = degree + ("overconfident" if says > upper else "underconfident")
    yield (
        f"Overall it is right {percent(right, 1)} of the time, with a mean confidence of {percent(says, 1)}: "
        f"{judgement}."
    )
    nll, k = measured.evaluation.metrics["nll"], measured.tree.n_classes
    yield (
        f"It gives the true class a probability of {_odds(nll)} (geometric mean), where guessing "
        f"among the {k:,} classes gives 1 in {k:,}."
    )


def _odds(nll: float) -> str:
    if nll > np.log(_WORST_ODDS):
        return f"less than 1 in {_WORST_ODDS:,.0f}"
    odds = float(np.exp(nll))
    return f"1 in {odds:.2f}" if odds < 10 else f"1 in {odds:,.0f}"


def _calibrations(measured: Measurements) -> Iterator[str]:
    book, cuts = measured.book, measured.cuts
    if book.raw_total is not None:
        yield (
            "Internal calibration, that of the nodes, changed the loss from "
            f"{book.raw_total:.3f} to {book.total:.3f} nats per row{_if_worse(book.raw_total, book.total)}."
        )
    if cuts.after is not None:
        before, after = cuts.before.ece_top_label[-1], cuts.after.ece_top_label[-1]
        yield (
            "External calibration changed the calibration error from "
            f"{percent(before, 1)} to {percent(after, 1)}, and the loss from {book.total:.3f} to "
            f"{book.final_nll:.3f} nats per row{_if_worse(book.total, book.final_nll)}."
        )


def _if_worse(before: float, after: float) -> str:
    """Return a remark if the loss has increased, in the digits shown."""
    return ", which is worse on these rows" if round(after, 3) > round(before, 3) else ""


def _confusion(measured: Measurements) -> Iterator[str]:
    pairs = measured.pairs
    if len(pairs) and pairs.errors[0] > 0:
        first, second = name_of(pairs.first[0]), name_of(pairs.second[0])
        yield (
            f"The two classes most often confused are “{first}” and “{second}”: "
            f"{count(pairs.errors[0])} of {plural(pairs.rows[0], 'row', 'rows')}."
        )


def _absent(measured: Measurements) -> Iterator[str]:
    absent = int((measured.book.class_rows == 0).sum())
    if absent:
        verb = "has" if absent == 1 else "have"
        yield (
            f"{absent:,} of the {measured.tree.n_classes:,} classes {verb} no row here and cannot be "
            "evaluated."
        )


def ledger_text(measured: Measurements) -> str:
    """Describe the tree and how concentrated the loss is."""
    book = measured.book
    text = (
        "The loss (negative log-likelihood) of a row is the sum of the losses of the decisions on the path "
        "to its class, so the total can be attributed to the decisions."
    )
    if book.total > 0 and len(book.nll) > 1:
        half = int(np.searchsorted(np.sort(book.nll)[::-1].cumsum(), book.total / 2)) + 1
        share = "one decision accounts" if half == 1 else f"{half:,} decisions account"
        text += f" Of {len(book.nll):,}, {share} for half of it."
    if measured.cuts.after is not None:
        text += " Shown is the loss of the tree before external calibration."
    return text


def tiles(measured: Measurements) -> list[dict[str, Any]]:
    """Return the headline numbers with their intervals."""
    intervals, k = measured.evaluation.intervals, measured.tree.n_classes
    shares = [
        ("accuracy", "Accuracy", "rows whose most probable class is the true one"),
        ("top_5_accuracy", "Top-5 accuracy", "rows whose true class is one of the five most probable"),
    ]
    made = [
        _share_tile(name, meaning, value, interval(value * measured.n_rows, measured.n_rows))
        for key, name, meaning in shares
        if key != "top_5_accuracy" or k > 5
        for value in [measured.evaluation.metrics[key]]
    ]
    value, *bounds = intervals["ece"]
    meaning = "average gap between confidence and accuracy (ECE, 20 bins)"
    made.append(_share_tile("Calibration error", meaning, value, bounds))
    losses = [
        ("nll", "Loss", "nats per row (negative log-likelihood); lower is better"),
        ("brier", "Brier score", "squared error of the probabilities, 0 to 2; lower is better"),
    ]
    return made + [
        {"name": name, "meaning": meaning, "value": f"{value:.3f}", "interval": f"{low:.3f} to {high:.3f}"}
        for key, name, meaning in losses
        for value, low, high in [intervals[key]]
    ]


def _share_tile(name: str, meaning: str, value: float, bounds: Sequence[float]) -> dict[str, Any]:
    return {
        "name": name,
        "meaning": meaning,
        "value": percent(value, 1),
        "interval": percents(bounds[0], bounds[1], 1),
    }
