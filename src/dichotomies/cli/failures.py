"""Error handling of commands: a one-line message on stderr and an exit code.

0: done; 1: the work failed; 2: the command was not understood; 130: interrupted; 143: terminated.
"""

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import typer

from dichotomies.cli.printing import printable
from dichotomies.cli.settings import SettingsError

F = TypeVar("F", bound=Callable[..., Any])

#: Errors about users' data, files and installation; any other is a bug.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)


def in_a_sentence(command: F) -> F:
    """Decorate a command: print errors as one line, unless the option --debug is given."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say_warning
                return command(*args, **options)
        except BrokenPipeError:  # the reader has closed the pipe; typer exits quietly
            raise
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if options.get("debug"):
                raise
            print(f"Error: {sentence(error)}", file=sys.stderr)
            raise typer.Exit(2 if isinstance(error, SettingsError) else 1) from None

    return run  # type: ignore[return-value]


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"Warning: {printable(' '.join(str(message).split()))}", file=sys.stderr)


def sentence(error: Exception) -> str:
    """Return the message of an error on one line."""
    message = printable(" ".join(str(error).split()))
    if isinstance(error, _EXPECTED) and message:
        return message
    return f"Something unexpected happened ({type(error).__name__}: {message}). --debug shows where."
