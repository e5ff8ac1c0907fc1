"""Options about the data of a command: the file (`Source`) and the roles of its columns (`ColumnOptions`)."""

import functools
import inspect
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dichotomies._common.progress import TRAINING, Bar
from dichotomies.cli import options
from dichotomies.cli.inputs import label_of
from dichotomies.cli.printing import printable
from dichotomies.cli.settings import Settings, SettingsError

if TYPE_CHECKING:
    from dichotomies.tables import Columns, TableFile


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
    """Decorator: replace a command's parameter ``source`` by the argument DATA and the options about it."""
    signature = inspect.signature(command)
    data = signature.parameters["source"].replace(name="data", annotation=options.Data)
    own = [data if name == "source" else each for name, each in signature.parameters.items()]
    made = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OF_SOURCE.items()
    ]

    @functools.wraps(command)
    def run(*args: Any, data: Path, **values: Any) -> Any:
        for path in (values.get("model"), data):  # before libraries are imported, which takes seconds
            if path is not None and not path.exists():
                raise FileNotFoundError(f"There is no file {path}.")
        form, first, line = (values.pop(name) for name in ("format", "first_id", "max_line"))
        dialect = {name: values.pop(name) for name in ("delimiter", "encoding", "decimal")}
        dialect |= {} if line is None else {"max_line": line * 2**20}
        return command(*args, source=Source(data, form, first, dialect), **values)

    run.__signature__ = signature.replace(parameters=[*own, *made])  # type: ignore[attr-defined]
    return run


@dataclass(frozen=True)
class ColumnOptions:
    """The options of a command that trains about the columns of its data."""

    label: str | None
    ngrams: str
    file: Path | None
    scale: bool | None
    weight: str | None
    roles: dict[str, list[str] | None]

    def of(self, file: "TableFile", settings: Sequence[Settings], **others: Any) -> "Columns":
        """Return the columns for training, with a role for every column of a file with named columns.

        In other files, missing values are allowed if all base learners accept them.
        """
        from dichotomies import NestedDichotomyClassifier
        from dichotomies.tables import Columns, allows_missing

        label = label_of(file, self.label)
        said: dict[str, Any] = {name: tuple(names or ()) for name, names in self.roles.items()}
        for name, names in roles_in(self.file).items():
            said[name] = (*said[name], *names)
        if (bar := Bar.current()) is not None:
            file.on_progress = bar.show
        Bar.stage(LOOKING)
        learners = [NestedDichotomyClassifier(each.estimator_for(sparse=False)) for each in settings]
        missing = all(map(allows_missing, learners))
        columns = Columns(label=label, allow_missing=missing, weight=self.weight, **said, **others)
        found = file.with_roles(columns)
        Bar.stage(READING)
        return found


#: Types and defaults of these options.
_OF_COLUMNS: dict[str, tuple[Any, Any]] = {
    "label": (options.Label, None),
    "text": (options.Text, None),
    "ngrams": (options.NGrams, "word"),
    "categorical": (options.Categorical, None),
    "numeric": (options.Numeric, None),
    "date": (options.Date, None),
    "ignore": (options.Ignore, None),
    "columns": (options.ColumnsFile, None),
    "scale": (options.Scale, None),
    "weight": (options.Weight, None),
}


def reads_columns(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: replace a command's parameter ``columns`` by the options about the columns of its data."""
    signature = inspect.signature(command)
    parameters: list[inspect.Parameter] = []
    for name, each in signature.parameters.items():
        if name != "columns":
            parameters.append(each)
            continue
        parameters += [
            each.replace(name=own, annotation=kind, default=default)
            for own, (kind, default) in _OF_COLUMNS.items()
        ]

    @functools.wraps(command)
    def run(*args: Any, **values: Any) -> Any:
        given = {name: values.pop(name) for name in _OF_COLUMNS}
        roles = {name: given.pop(name) for name in ROLES}
        file = given.pop("columns")
        return command(*args, columns=ColumnOptions(file=file, roles=roles, **given), **values)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


#: Stages of the progress bar.
LOOKING, READING, ENCODING, SAVING = "finding out what columns hold", "reading", "encoding", "saving"


def expected_seconds(path: Path) -> dict[str, float]:
    """Estimates for the progress bar, from the size of a file, until the classifier has better ones."""
    size = path.stat().st_size if path.is_file() else 0
    seconds = {LOOKING: 2e-8, READING: 1e-8, ENCODING: 2.5e-8, TRAINING: 1.2e-7}
    return {stage: each * size for stage, each in seconds.items()}


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
