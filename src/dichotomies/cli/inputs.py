"""Input files of commands: data with labels, and models."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dichotomies.cli.settings import SettingsError

if TYPE_CHECKING:
    from dichotomies.tables import TableFile, TableModel


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


def check_not_read(output: Path, *inputs: Path | None) -> None:
    """Raise if a file to be written is one that the same command reads."""
    for each in inputs:
        if each is not None and output.exists() and each.exists() and output.samefile(each):
            raise SettingsError(
                f"{output} is read by this command, and would be overwritten; write another file (--output)."
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
    from dichotomies._common.chunks import rows_within

    return rows_within(64 * 2**20, n_classes, at_most=8192)
