"""Conversion of measurements to the dictionary of texts, tables and data that the page is rendered from."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dichotomies.diagnostics.evaluated_model import fitted_dichotomy
from dichotomies.report import card, data, listings, summary
from dichotomies.report.acceptance import acceptance_data, acceptance_rows
from dichotomies.report.answers import answer_rows
from dichotomies.report.measurements import Measurements
from dichotomies.report.words import name_of, plural


def content_of(measured: Measurements, examples: Sequence[Any] | None, created: str) -> dict[str, Any]:
    """Return everything that the template and the scripts show.

    Parameters
    ----------
    measured : Measurements
    examples : sequence, optional
        Name of each row.
    created : str
        Date in the footer; omitted if empty.
    """
    bands = summary.bands(measured)
    names = measured.tree.leaf_labels.tolist()
    return {
        "title": f"Report on a {type(fitted_dichotomy(measured.clf)).__name__}",
        "subtitle": f"{measured.tree.n_classes:,} classes · {plural(len(measured.facts), 'row', 'rows')}",
        **summary.headline(bands, measured.n_rows),
        "summary": summary.sentences(measured),
        "tiles": summary.tiles(measured),
        "bands": summary.band_rows(bands),
        "acceptance": acceptance_rows(measured),
        "answers": answer_rows(measured.answers),
        "ledger_text": summary.ledger_text(measured),
        "search_hint": name_of(names[0])[:24],
        "classes": listings.worst_classes(measured),
        "classes_text": listings.classes_text(measured),
        "pairs": listings.confused(measured),
        "mistakes": listings.mistakes(measured, examples),
        "has_examples": examples is not None,
        "facts": card.facts(measured),
        "parameters": card.parameters(measured),
        "n_depths": len(measured.cuts.depths),
        "version": _version(),
        "created": created,
        "data": data.script_data(measured) | {"accepted": acceptance_data(measured)},
    }


def _version() -> str:
    try:
        return version("dichotomies")
    except PackageNotFoundError:  # imported from the source tree, not installed
        return ""
