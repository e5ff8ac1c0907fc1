"""``dichotomies demo``: the paper's six calibration schemes on handwritten digits, and the defaults."""

from typing import Annotated, Any, NamedTuple

import typer

from dichotomies.cli.failures import in_a_sentence

#: Scheme: (internal, external), in the order of the paper's tables.
SCHEMES = {
    "none": (None, None),
    "external: vector scaling": (None, "vector"),
    "internal: Platt": ("platt", None),
    "both: Platt and vector scaling": ("platt", "vector"),
    "internal: isotonic": ("isotonic", None),
    "both: isotonic and vector scaling": ("isotonic", "vector"),
}


class Measured(NamedTuple):
    """Metrics of one classifier on the test rows."""

    name: str
    nll: float
    accuracy: float
    ece: float


class Digits(NamedTuple):
    """Rows to train on and rows to test on."""

    X: Any
    X_test: Any
    y: Any
    y_test: Any

    def scores(self, name: str, classifier: Any) -> Measured:
        """Fit a classifier, and measure it."""
        from sklearn.metrics import log_loss

        from dichotomies.metrics import expected_calibration_error

        proba = classifier.fit(self.X, self.y).predict_proba(self.X_test)
        accuracy = float((classifier.classes_[proba.argmax(axis=1)] == self.y_test).mean())
        ece = expected_calibration_error(self.y_test, proba, labels=classifier.classes_)
        return Measured(name, log_loss(self.y_test, proba, labels=classifier.classes_), accuracy, ece)


@in_a_sentence
def demo(
    structure: Annotated[str, typer.Option(help="How to grow the tree; see 'dichotomies list'.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the tree and of the train/test split.")] = 0,
) -> None:
    """Draw a tree over handwritten digits, calibrate it in six ways, and compare with a flat model."""
    from rich.console import Console
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from dichotomies.structures import STRUCTURES

    if structure not in STRUCTURES.names():
        raise typer.BadParameter(f"choose from {', '.join(STRUCTURES.names())}", param_hint="--structure")
    console = Console()
    X, y = load_digits(return_X_y=True)
    digits = Digits(*train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed))
    scores, tree = _fit_schemes(console, digits, structure, seed)
    console.print(f"A tree over the ten digits (structure [b]{structure}[/b], seed {seed}):\n")
    console.print(tree.draw(), highlight=False, markup=False)
    title = f"Naive Bayes at its nodes, on {len(digits.y_test)} digits it has not seen"
    console.print(_table(title, "calibration", scores))
    best = min(scores, key=lambda row: row.nll)
    console.print(f"Best by NLL: [b]{best.name}[/b], {scores[0].nll / best.nll:.1f} times lower than none.")
    title = "The defaults, which choose learner and calibration, on the same digits"
    console.print(_table(title, "classifier", _fit_defaults(digits, seed)))


def _fit_schemes(console: Any, digits: Digits, structure: str, seed: int) -> tuple[list[Measured], Any]:
    """Fit the same tree under every scheme; return the scores and the tree."""
    from rich.progress import track
    from sklearn.naive_bayes import MultinomialNB

    from dichotomies.estimators.classifier import NestedDichotomyClassifier

    scores = []
    for scheme, (internal, external) in track(SCHEMES.items(), "Fitting", console=console, transient=True):
        clf = NestedDichotomyClassifier(
            MultinomialNB(),
            structure,
            internal_calibration=internal,
            external_calibration=external,
            random_state=seed,
        )
        scores.append(digits.scores(scheme, clf))
    return scores, clf.tree_


def _fit_defaults(digits: Digits, seed: int) -> list[Measured]:
    """Fit one tree, ten trees, and the flat model to compare them with."""
    from sklearn.linear_model import LogisticRegression

    from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble

    classifiers = {
        "flat: LogisticRegression()": LogisticRegression(max_iter=10_000),
        "one tree: NestedDichotomyClassifier()": NestedDichotomyClassifier(random_state=seed),
        "ten trees: NestedDichotomyEnsemble()": NestedDichotomyEnsemble(random_state=seed),
    }
    return [digits.scores(name, each) for name, each in classifiers.items()]


def _table(title: str, header: str, scores: list[Measured]) -> Any:
    from rich.table import Table

    table = Table(title=f"\n{title}", title_justify="left")
    table.add_column(header)
    for name in ("NLL", "accuracy", "ECE"):
        table.add_column(name, justify="right")
    best = min(row.nll for row in scores)
    for row in scores:
        style = "bold" if row.nll == best else ""
        table.add_row(row.name, f"{row.nll:.3f}", f"{row.accuracy:.3f}", f"{row.ece:.3f}", style=style)
    return table
