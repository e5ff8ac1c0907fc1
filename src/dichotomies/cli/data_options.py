"""Files of commands: the data (`Source`), the roles of its columns (`ColumnOptions`), models."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dichotomies._common.progress import Bar
from dichotomies.cli import options
from dichotomies.cli.failures import printable
from dichotomies.cli.settings import Settings, SettingsError

if TYPE_CHECKING:
    from dichotomies.tables import Columns, TableFile, TableModel


@dataclass(frozen=True)
class Source:
    """The data file of a command, and what its options say about the file."""

    data: options.Data
    format: options.Format = None
    delimiter: options.Delimiter = None
    encoding: options.Encoding = None
    decimal: options.Decimal = None
    max_line: options.MaxLine = None
    first_id: options.FirstId = None

    def opened(self) -> "TableFile":
        """Open the file."""
        from dichotomies.tables import open_table

        dialect: dict[str, Any] = {"encoding": self.encoding, "decimal": self.decimal}
        if self.max_line is not None:
            dialect["max_line"] = self.max_line * 2**20
        return open_table(self.data, self.format, self.delimiter, **dialect)


#: Roles that options and files give to columns.
ROLES = ("text", "categorical", "numeric", "date", "ignore")


@dataclass(frozen=True)
class ColumnOptions:
    """The options of a command that trains about the columns of its data."""

    label: options.Label = None
    text: options.Text = None
    ngrams: options.NGrams = "word"
    categorical: options.Categorical = None
    numeric: options.Numeric = None
    date: options.Date = None
    ignore: options.Ignore = None
    columns: options.ColumnsFile = None
    scale: options.Scale = None
    weight: options.Weight = None

    def of(self, file: "TableFile", settings: Sequence[Settings], **others: Any) -> "Columns":
        """Return the columns for training, with a role for every column of a file with named columns."""
        from dichotomies import NestedDichotomyClassifier
        from dichotomies.tables import Columns, allows_missing

        label, listed = label_of(file, self.label), roles_in(self.columns)
        roles: Any = {role: (*(getattr(self, role) or ()), *listed.get(role, ())) for role in ROLES}
        if (bar := Bar.current()) is not None:
            file.on_progress = bar.show
        Bar.stage("finding out what columns hold")
        learners = [NestedDichotomyClassifier(each.estimator_for(sparse=False)) for each in settings]
        missing = all(map(allows_missing, learners))
        columns = Columns(label=label, allow_missing=missing, weight=self.weight, **roles, **others)
        found = file.with_roles(columns)
        Bar.stage("reading")
        return found


def roles_in(path: Path | None) -> dict[str, list[str]]:
    """Return the columns by role that a TOML file lists."""
    found = {} if path is None else toml_of(path)
    for role, names in found.items():
        if role not in ROLES or not (isinstance(names, list) and all(isinstance(n, str) for n in names)):
            raise SettingsError(
                f"{path} should hold lists of columns under the names {', '.join(ROLES)}; {role} = ... is "
                "something else."
            )
    return found


def toml_of(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"There is no file {path}.") from None
    except ValueError as error:
        raise SettingsError(f"{path} is not TOML ({error}).") from error


def print_roles(columns: "Columns") -> None:
    """Print how columns are read, one line for each role."""
    from dichotomies.tables.errors import listing

    for role, title in _TITLES.items():
        names = [
            f"{each.column} ({each.remark})" if each.remark else each.column
            for each in columns.found
            if each.role == role
        ]
        if names:
            print(printable(f"{title:<12}{listing(names)}"))


_TITLES = {
    "number": "numbers",
    "category": "categories",
    "date": "dates",
    "text": "texts",
    "left out": "left out",
}


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
