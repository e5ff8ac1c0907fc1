"""``dichotomies demo``: the paper's six calibration schemes on handwritten digits."""

from typing import Annotated, Any, NamedTuple

import typer

from dichotomies.cli import options
from dichotomies.cli.failures import in_a_sentence

EXAMPLE = "Example: dichotomies demo --structure class-balanced"

#: Scheme: (internal, external), in the order of the paper's tables.
SCHEMES = {
    "none": (None, None),
    "external: vector scaling": (None, "vector"),
    "internal: Platt": ("platt", None),
    "both: Platt and vector scaling": ("platt", "vector"),
    "internal: isotonic": ("isotonic", None),
    "both: isotonic and vector scaling": ("isotonic", "vector"),
}


class Scores(NamedTuple):
    """Metrics of one scheme on the test rows."""

    scheme: str
    nll: float
    accuracy: float
    ece: float


@in_a_sentence
def demo(
    structure: Annotated[str, typer.Option(help="How to grow the tree; see 'dichotomies list'.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the tree and of the train/test split.")] = 0,
    debug: options.Debug = False,  # noqa: ARG001 - read by the error handler
) -> None:
    """Fit nested dichotomies to handwritten digits, draw the tree and show how good they are."""
    from rich.console import Console

    from dichotomies.structures import STRUCTURES

    if structure not in STRUCTURES.names():
        raise typer.BadParameter(f"choose from {', '.join(STRUCTURES.names())}", param_hint="--structure")
    console = Console()
    scores, tree, n_test = _fit_schemes(console, structure, seed)
    console.print(f"The tree over the ten digits (structure [b]{structure}[/b], seed {seed}):\n")
    console.print(tree.draw(), highlight=False, markup=False)
    console.print(_table(scores, n_test))
    best = min(scores, key=lambda row: row.nll)
    console.print(f"Best by NLL: [b]{best.scheme}[/b], {scores[0].nll / best.nll:.1f} times lower than none.")


def _fit_schemes(console: Any, structure: str, seed: int) -> tuple[list[Scores], Any, int]:
    """Fit the same tree under every scheme; return the scores, the tree and the number of test rows."""
    from rich.progress import track
    from sklearn.datasets import load_digits
    from sklearn.metrics import log_loss
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import MultinomialNB

    from dichotomies.estimators.classifier import NestedDichotomyClassifier
    from dichotomies.metrics import expected_calibration_error

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    scores = []
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
        scores.append(Scores(scheme, log_loss(y_test, proba, labels=clf.classes_), accuracy, ece))
    return scores, clf.tree_, len(y_test)


def _table(scores: list[Scores], n_test: int) -> Any:
    from rich.table import Table

    title = f"\nNaive Bayes at the nodes, on {n_test} digits it has not seen"
    table = Table(title=title, title_justify="left")
    table.add_column("calibration")
    for name in ("NLL", "accuracy", "ECE"):
        table.add_column(name, justify="right")
    best = min(row.nll for row in scores)
    for row in scores:
        style = "bold" if row.nll == best else ""
        table.add_row(row.scheme, f"{row.nll:.3f}", f"{row.accuracy:.3f}", f"{row.ece:.3f}", style=style)
    return table
