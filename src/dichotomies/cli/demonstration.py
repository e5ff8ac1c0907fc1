"""Output of ``dichotomies demo``: the paper's six calibration schemes on handwritten digits."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import MultinomialNB

from dichotomies.estimators.classifier import NestedDichotomyClassifier
from dichotomies.metrics import expected_calibration_error

if TYPE_CHECKING:
    from rich.console import Console

#: Scheme: (internal, external), in the order of the paper's tables.
SCHEMES = {
    "none": (None, None),
    "external: vector scaling": (None, "vector"),
    "internal: Platt": ("platt", None),
    "both: Platt and vector scaling": ("platt", "vector"),
    "internal: isotonic": ("isotonic", None),
    "both: isotonic and vector scaling": ("isotonic", "vector"),
}


class Row(NamedTuple):
    """One line of the table."""

    scheme: str
    nll: float
    accuracy: float
    ece: float


def show(console: Console, structure: str, seed: int) -> None:
    """Fit the same tree under every scheme, draw it and compare the metrics."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    rows = []
    for scheme, (internal, external) in track(SCHEMES.items(), "Fitting", console=console, transient=True):
        clf = NestedDichotomyClassifier(
            MultinomialNB(),
            structure,
            internal_calibration=internal,
            external_calibration=external,
            random_state=seed,
        ).fit(X_train, y_train)
        proba = clf.predict_proba(X_test)
        accuracy = float((clf.classes_[proba.argmax(axis=1)] == y_test).mean())
        ece = expected_calibration_error(y_test, proba, labels=clf.classes_)
        rows.append(Row(scheme, log_loss(y_test, proba, labels=clf.classes_), accuracy, ece))
    console.print(f"The tree over the ten digits (structure [b]{structure}[/b], seed {seed}):\n")
    console.print(clf.tree_.draw(), highlight=False, markup=False)
    console.print(_table(rows, n_test=len(y_test)))
    best = min(rows, key=lambda row: row.nll)
    console.print(f"Best by NLL: [b]{best.scheme}[/b], {rows[0].nll / best.nll:.1f} times lower than none.")


def _table(rows: list[Row], n_test: int) -> Table:
    table = Table(
        title=f"\nNaive Bayes at the nodes, on {n_test} digits it has not seen", title_justify="left"
    )
    table.add_column("calibration")
    for name in ("NLL", "accuracy", "ECE"):
        table.add_column(name, justify="right")
    best = min(row.nll for row in rows)
    for row in rows:
        style = "bold" if row.nll == best else ""
        table.add_row(row.scheme, f"{row.nll:.3f}", f"{row.accuracy:.3f}", f"{row.ece:.3f}", style=style)
    return table
