"""Input files of commands: data with labels, and models."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dichotomies._common.chunks import rows_within
from dichotomies.cli.settings import Settings

if TYPE_CHECKING:
    from dichotomies.tables import Columns, TableFile, TableModel


def label_of(file: "TableFile", given: str | None, remembered: str | None = None) -> str:
    """Return the label column: as given, as the format defines it, or as in the model's training file."""
    label = given or file.default_label or remembered
    if label is None:
        from dichotomies.tables.errors import listing

        raise typer.BadParameter(
            f"say which column of {file.path} holds the labels; its columns are {listing(file.names())}",
            param_hint="--label",
        )
    return label


def training_columns(
    label: str,
    settings: Sequence[Settings],
    *,
    text: list[str] | None,
    ignore: list[str] | None,
    weight: str | None,
) -> "Columns":
    """Return the columns for training; missing values are allowed if all base learners accept them."""
    from dichotomies import NestedDichotomyClassifier
    from dichotomies.tables import Columns, allows_missing

    learners = [NestedDichotomyClassifier(each.estimator_for(sparse=False)) for each in settings]
    return Columns(
        label=label,
        text=tuple(text or ()),
        ignore=tuple(ignore or ()),
        weight=weight,
        allow_missing=all(map(allows_missing, learners)),
    )


def load_model(path: Path, n_jobs: int | None = None, trusted: Sequence[str] | None = None) -> "TableModel":
    """Load a model; one that was saved in Python reads the columns it was fitted with."""
    from dichotomies import load
    from dichotomies.tables import TableModel

    model = TableModel.of(load(path, trusted))
    if hasattr(model.classifier, "n_jobs"):
        model.classifier.n_jobs = n_jobs
    return model


def batch_rows(n_classes: int) -> int:
    """Return the rows per batch for which the class probabilities take at most 64 MiB."""
    return rows_within(64 * 2**20, n_classes, at_most=8192)
