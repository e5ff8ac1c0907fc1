"""Creation of a report: measure, collect the content of the page, render."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy.typing as npt
from sklearn.utils.validation import _num_samples

from dichotomies._common.typing import Matrix
from dichotomies.diagnostics.evaluated_model import fitted_dichotomy
from dichotomies.report import card, data, listings, summary
from dichotomies.report.acceptance import acceptance_data, acceptance_rows
from dichotomies.report.answers import answer_rows
from dichotomies.report.measurements import Measurements, measure
from dichotomies.report.page import Report, page_of, require_jinja2
from dichotomies.report.words import name_of, plural


def make(
    clf: Any,
    X: Matrix,
    y: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    examples: Sequence[Any] | npt.ArrayLike | None = None,
    created: str | None = None,
) -> Report:
    """Report on a fitted nested dichotomy: the quality of its probabilities, and where it errs.

    Parameters
    ----------
    clf : fitted NestedDichotomyClassifier, or a pipeline that ends in one
    X : array, CSR matrix or data frame of shape (n_rows, n_features)
        Held-out rows.
    y : array of shape (n_rows,)
        Their labels, all among the classifier's classes.
    sample_weight : array of shape (n_rows,), optional
        Weight of each row, as a count.
    examples : sequence of length n_rows, optional
        Name of each row (an identifier, a text, a file name), shown beside confident mistakes.
    created : str, optional
        Date in the page's footer; today by default, omitted if empty.

    Returns
    -------
    Report
        With ``save(path)``; notebooks display it inline.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.report import make
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(random_state=0).fit(X[:1000] / 16, y[:1000])
    >>> make(clf, X[1000:] / 16, y[1000:])
    <Report: 10 classes · 797 rows, 1.2 MB; save(path) writes it as HTML>
    """
    require_jinja2()  # fail early, as for the examples
    named = None if examples is None else _one_per_row(examples, _num_samples(X))
    measured = measure(clf, X, y, sample_weight)
    content = content_of(measured, named, date.today().isoformat() if created is None else created)
    return Report(page_of(content), content)


def _one_per_row(examples: Any, n_rows: int) -> list[Any]:
    names = None if isinstance(examples, str) else list(examples)
    if names is None or len(names) != n_rows:
        given = "one text" if names is None else f"{len(names):,}"
        raise ValueError(f"examples must name each of the {n_rows:,} rows, got {given}.")
    return names


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
