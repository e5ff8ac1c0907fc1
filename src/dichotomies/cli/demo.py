"""What ``dichotomies demo`` shows: nested dichotomies of several base learners on the digits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from dichotomies.classifier import NestedDichotomyClassifier

if TYPE_CHECKING:
    from rich.console import Console

_LEARNERS = {
    "logistic regression": LogisticRegression(C=0.1, max_iter=1000),
    "Gaussian naive Bayes": GaussianNB(),
    "decision tree, depth 5": DecisionTreeClassifier(max_depth=5),
}


def show(console: Console, structure: str, seed: int) -> None:
    """Fit, draw and compare."""
    X, y = load_digits(return_X_y=True)
    data = train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=seed)
    rows = []
    for name, learner in track(_LEARNERS.items(), "Fitting", console=console, transient=True):
        nested = NestedDichotomyClassifier(learner, structure=structure, random_state=seed)
        rows.append((name, *_scores(nested, *data)))
    console.print(f"The tree over the ten digits (structure [b]{structure}[/b], seed {seed}):\n")
    console.print(nested.tree_.draw(), highlight=False, markup=False)
    console.print(_table(rows, n_test=len(data[1])))


def _scores(classifier: Any, X_train: Any, X_test: Any, y_train: Any, y_test: Any) -> tuple[float, float]:
    proba = classifier.fit(X_train, y_train).predict_proba(X_test)
    predicted = classifier.classes_[proba.argmax(axis=1)]
    return accuracy_score(y_test, predicted), log_loss(y_test, proba)


def _table(rows: list[tuple[str, float, float]], n_test: int) -> Table:
    table = Table(title=f"\nOn {n_test} digits it has not seen", title_justify="left")
    table.add_column("classifier at each node")
    table.add_column("accuracy", justify="right")
    table.add_column("NLL (lower is better)", justify="right")
    best = min(nll for _, _, nll in rows)
    for name, accuracy, nll in rows:
        style = "bold" if nll == best else ""
        table.add_row(name, f"{accuracy:.3f}", f"{nll:.3f}", style=style)
    return table
