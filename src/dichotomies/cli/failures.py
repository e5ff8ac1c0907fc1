"""Commands as typer runs them: groups of options, and errors as one line on stderr with an exit code.

0: done; 1: the work failed; 2: the command was not understood; 130: interrupted; 143: terminated.
"""

import functools
import inspect
import json
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import typer

from dichotomies.cli.options import Debug
from dichotomies.cli.settings import SettingsError


def print_json(document: Any) -> None:
    """Print one JSON document; NaN and infinity become null."""
    print(json.dumps(_plain(document), ensure_ascii=False, indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with text in the first column and numbers in the others; lines are never wrapped."""
    lines = [columns, *rows]
    full = [line for line in lines if len(line) == len(columns)]
    widths = [max(len(line[place]) for line in full) for place in range(len(columns))]
    widths[0] = max(len(line[0]) for line in lines)
    for line in lines:
        if len(line) < len(columns):
            print(f"{line[0].ljust(widths[0])}  {line[1]}")
            continue
        cells = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join([line[0].ljust(widths[0]), *cells]).rstrip())


def printable(text: str) -> str:
    """Return a text without control characters, by which labels could command a terminal."""
    return "".join(mark if mark.isprintable() or mark == "\n" else repr(mark)[1:-1] for mark in text)


def tell(text: str) -> None:
    """Print a message to stderr."""
    print(text, file=sys.stderr, flush=True)


def plural(number: int, thing: str) -> str:
    """Format a count with the singular or plural of its unit."""
    if number == 1:
        return f"1 {thing}"
    return f"{number:,} {thing}{'es' if thing.endswith('s') else 's'}"


def size_of(n_bytes: int) -> str:
    """Format a number of bytes."""
    for unit, size in {"MB": 1e6, "kB": 1e3}.items():
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"


#: Errors about users' data, files and installation; any other is a bug.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)


def in_a_sentence(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function: errors are one line, unless its further option --debug is given.

    A parameter whose type is a dataclass is a group of options, one for each field.
    """
    groups: dict[str, Any] = {}
    parameters: dict[str, inspect.Parameter] = {}
    for name, each in inspect.signature(command).parameters.items():
        if is_dataclass(each.annotation):
            groups[name] = each.annotation
            parameters |= {field.name: _parameter(field) for field in fields(each.annotation)}
        else:
            parameters[name] = each.replace(kind=each.KEYWORD_ONLY)
    debug = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug)

    @functools.wraps(command)
    def run(*, debug: bool = False, **values: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say_warning
                _check_files(values.get("model"), values.get("data"))
                for name, group in groups.items():
                    values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
                command(**values)
        except (BrokenPipeError, typer.Exit, typer.Abort, typer.BadParameter):
            raise  # typer exits quietly where the reader has closed the pipe
        except Exception as error:
            if debug:
                raise
            print(f"Error: {sentence(error)}", file=sys.stderr)
            raise typer.Exit(2 if isinstance(error, SettingsError) else 1) from None

    all_parameters = [*(parameters | {"debug": debug}).values()]
    run.__signature__ = inspect.Signature(all_parameters)  # type: ignore[attr-defined]
    return run


def _parameter(field: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=field.type
    )


def _check_files(*paths: Any) -> None:
    """Raise for a missing file before libraries are imported, which takes seconds."""
    for path in paths:
        if hasattr(path, "exists") and not path.exists():
            raise FileNotFoundError(f"There is no file {path}.")


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"Warning: {printable(' '.join(str(message).split()))}", file=sys.stderr)


def sentence(error: Exception) -> str:
    """Return the message of an error on one line."""
    message = printable(" ".join(str(error).split()))
    if isinstance(error, _EXPECTED) and message:
        return message
    return f"Something unexpected happened ({type(error).__name__}: {message}). --debug shows where."
