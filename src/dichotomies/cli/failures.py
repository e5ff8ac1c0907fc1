"""Error handling of commands: a one-line message on stderr and an exit code.

0: done; 1: the work failed; 2: the command was not understood; 130: interrupted; 143: terminated.
"""

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any

import typer

from dichotomies.cli.options import Debug
from dichotomies.cli.printing import printable
from dichotomies.cli.settings import SettingsError

#: Errors about users' data, files and installation; any other is a bug.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)


def in_a_sentence(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command: print errors as one line, unless its further option --debug is given."""

    @functools.wraps(command)
    def run(*args: Any, debug: bool = False, **options: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say_warning
                return command(*args, **options)
        except BrokenPipeError:  # the reader has closed the pipe; typer exits quietly
            raise
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if debug:
                raise
            print(f"Error: {sentence(error)}", file=sys.stderr)
            raise typer.Exit(2 if isinstance(error, SettingsError) else 1) from None

    option = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
    signature = inspect.signature(command)
    parameters = {**signature.parameters, "debug": option}
    run.__signature__ = signature.replace(parameters=[*parameters.values()])  # type: ignore[attr-defined]
    return run


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"Warning: {printable(' '.join(str(message).split()))}", file=sys.stderr)


def sentence(error: Exception) -> str:
    """Return the message of an error on one line."""
    message = printable(" ".join(str(error).split()))
    if isinstance(error, _EXPECTED) and message:
        return message
    return f"Something unexpected happened ({type(error).__name__}: {message}). --debug shows where."
