"""`Source`: the data file of a command, and the options about it that all commands share."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dichotomies.cli import options

if TYPE_CHECKING:
    from dichotomies.tables import TableFile


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
