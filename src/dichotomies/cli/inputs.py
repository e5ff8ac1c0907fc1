"""Input files of commands: data with labels, and models."""

import functools
import inspect
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dichotomies._common.chunks import rows_within
from dichotomies.cli import options
from dichotomies.cli.settings import Settings, SettingsError

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


@dataclass(frozen=True)
class Source:
    """The data file of a command, and what its options say about the file."""

    path: Path
    format: str | None
    first_id: int | None
    dialect: dict[str, Any]

    def opened(self) -> "TableFile":
        """Open the file."""
        from dichotomies.tables import open_table

        return open_table(self.path, self.format, **self.dialect)


#: Options about a data file, of every command that reads one.
_OF_SOURCE = {
    "format": options.Format,
    "delimiter": options.Delimiter,
    "encoding": options.Encoding,
    "decimal": options.Decimal,
    "max_line": options.MaxLine,
    "first_id": options.FirstId,
}


def reads_a_file(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: make of a command's parameter ``source`` the argument DATA and the options about it."""
    signature = inspect.signature(command)
    parameters = dict(signature.parameters)
    given = parameters.pop("source")
    data = given.replace(name="data", annotation=options.Data)
    own = [data if name == "source" else each for name, each in signature.parameters.items()]
    made = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OF_SOURCE.items()
    ]

    @functools.wraps(command)
    def run(*args: Any, data: Path, **values: Any) -> Any:
        form, first, line = (values.pop(name) for name in ("format", "first_id", "max_line"))
        dialect = {name: values.pop(name) for name in ("delimiter", "encoding", "decimal")}
        dialect |= {} if line is None else {"max_line": line * 2**20}
        return command(*args, source=Source(data, form, first, dialect), **values)

    run.__signature__ = signature.replace(parameters=[*own, *made])  # type: ignore[attr-defined]
    return run


def check_not_read(output: Path, *inputs: Path | None) -> None:
    """Raise if a file to be written is one that the same command reads."""
    for each in inputs:
        if each is not None and output.exists() and each.exists() and output.samefile(each):
            raise typer.BadParameter(
                f"{output} is read by this command, and would be overwritten; give another file",
                param_hint="--output",
            )


def training_columns(
    file: "TableFile", label: str, settings: Sequence[Settings], *, columns_file: Path | None, **given: Any
) -> "Columns":
    """Return the columns for training, with a role for every column of a file with named columns.

    In other files, missing values are allowed if all base learners accept them.
    """
    from dichotomies import NestedDichotomyClassifier
    from dichotomies.tables import Columns, allows_missing

    said = {name: tuple(names or ()) for name, names in given.items() if name in ROLES}
    for name, names in roles_in(columns_file).items():
        said[name] = (*said[name], *names)
    others = {name: value for name, value in given.items() if name not in ROLES}
    learners = [NestedDichotomyClassifier(each.estimator_for(sparse=False)) for each in settings]
    allow_missing = all(map(allows_missing, learners))
    return file.with_roles(Columns(label=label, allow_missing=allow_missing, **said, **others))


#: Roles that options and files give to columns.
ROLES = ("text", "categorical", "numeric", "date", "ignore")


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


def roles_in_words(columns: "Columns") -> list[str]:
    """Describe how columns are read, one line for each role."""
    from dichotomies.tables.errors import listing

    lines = []
    for role, title in _TITLES.items():
        names = [
            f"{each.column} ({each.remark})" if each.remark else each.column
            for each in columns.found
            if each.role == role
        ]
        if names:
            lines.append(f"{title:<12}{listing(names)}")
    return lines


_TITLES = {
    "number": "numbers",
    "category": "categories",
    "date": "dates",
    "text": "texts",
    "left out": "left out",
}


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
