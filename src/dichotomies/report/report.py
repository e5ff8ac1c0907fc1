"""Creation of a report: measure, collect the content of the page and the model card, render."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples

from dichotomies._common.typing import Matrix
from dichotomies.diagnostics.evaluated_model import fitted_dichotomy
from dichotomies.report import listings, summary
from dichotomies.report.listings import acceptance_data, acceptance_rows
from dichotomies.report.measurements import Measurements, answer_rows, measure
from dichotomies.report.page import Report, count, name_of, page_of, plural, require_jinja2

_PACKAGES = ("dichotomies", "numpy", "scipy", "scikit-learn")


def model_facts(measured: Measurements) -> list[tuple[str, str]]:
    """Return names and values, in display order."""
    clf = fitted_dichotomy(measured.clf)
    tree, evaluation = measured.tree, measured.evaluation
    intervals = (
        f"{evaluation.confidence_level:.0%}: Wilson for accuracies, bootstrap over rows "
        f"({evaluation.n_resamples} resamples) for the rest"
    )
    lines = [
        ("Model", _steps(measured.clf)),
        ("Classes", f"{tree.n_classes:,}"),
        ("Evaluated on", _rows(measured)),
        ("Features", f"{clf.n_features_in_:,}"),
        (
            "Tree",
            f"{_text(clf.tree_source)}; {tree.mean_depth:.1f} decisions on average, {tree.max_depth} at most",
        ),
        *_pool(clf),
        ("Estimator", _text(clf.base_estimator)),
        ("Training", clf.learner_),
        ("Internal calibration", clf.calibration_.internal),
        ("External calibration", _external(clf)),
        *([("Choice of calibration", str(clf.calibration_))] if clf.calibration_.nll else []),
        ("Intervals", intervals),
        ("Software", ", ".join([f"Python {platform.python_version()}", *_versions()])),
    ]
    return [(name, name_of(value)) for name, value in lines]


def parameters(measured: Measurements) -> list[tuple[str, str]]:
    """Return the parameters of the classifier."""
    given = fitted_dichotomy(measured.clf).get_params(deep=False)
    return [(name, name_of(_text(value))) for name, value in sorted(given.items())]


def _steps(clf: Any) -> str:
    parts = [step for _, step in clf.steps] if isinstance(clf, Pipeline) else [clf]
    return " after ".join(type(part).__name__ for part in reversed(parts))


def _rows(measured: Measurements) -> str:
    rows = plural(len(measured.facts), "row", "rows")
    return (
        rows
        if measured.n_rows == len(measured.facts)
        else f"{rows}, of total weight {count(measured.n_rows)}"
    )


def _pool(clf: Any) -> list[tuple[str, str]]:
    """Return the entries for an ensemble: the tree shown, and the pooling."""
    if not hasattr(clf, "trees_"):
        return []
    n_trees = len(clf.trees_)
    return [
        (
            "Trees",
            f"{n_trees}, their probabilities pooled ({clf.pooling_} mean); the tree shown is the first one, "
            "along which the pooled probabilities are decomposed",
        ),
    ]


def _external(clf: Any) -> str:
    if clf.calibration_.external != "none" and clf.external_calibrator_ is None:
        return f"none: no row could be held out for {clf.calibration_.external}"
    return str(clf.calibration_.external)


def _text(value: Any) -> str:
    """Return a parameter as text on one line."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else " ".join(repr(value).split())


def _versions() -> list[str]:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # imported from the source tree, not installed
            continue
    return found


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
    """Return everything that the template and the scripts show."""
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
        "facts": model_facts(measured),
        "parameters": parameters(measured),
        "n_depths": len(measured.cuts.depths),
        "version": _version(),
        "created": created,
        "data": summary.script_data(measured) | {"accepted": acceptance_data(measured)},
    }


def _version() -> str:
    try:
        return version("dichotomies")
    except PackageNotFoundError:  # imported from the source tree, not installed
        return ""
