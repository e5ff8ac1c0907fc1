"""What a command does when something goes wrong: one sentence on stderr and an exit code.

0: done; 1: the work failed; 2: the command was not understood; 130: interrupted.
"""

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import typer

from dichotomies.cli.settings import SettingsError

F = TypeVar("F", bound=Callable[..., Any])

#: What tells users about their data, files and installation; anything else is a mistake of ours.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)


def in_a_sentence(command: F) -> F:
    """Decorator of commands: errors are said in one sentence, unless the option --debug is there."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say_warning
                return command(*args, **options)
        except BrokenPipeError:  # the reader has seen enough; typer ends quietly
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
    print(f"Warning: {' '.join(str(message).split())}", file=sys.stderr)


def sentence(error: Exception) -> str:
    """What an error says, on one line."""
    said = " ".join(str(error).split())
    if isinstance(error, _EXPECTED) and said:
        return said
    return f"Something unexpected happened ({type(error).__name__}: {said}). --debug shows where."
