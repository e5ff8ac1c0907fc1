"""Commands as typer runs them: groups of options, and errors as one line on stderr with an exit code.

0: done; 1: the work failed; 2: the command was not understood; 130: interrupted; 143: terminated.
"""

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import typer

from dichotomies.cli.options import Debug
from dichotomies.cli.printing import printable
from dichotomies.cli.settings import SettingsError

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
