"""Errors about users' files, with messages for their owners."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

_SHOWN = 8
#: Errors that readers raise on damaged archives, encrypted ones and those of unknown versions.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
    KeyError,
)


class TableFileError(ValueError):
    """A file that cannot be read as a table; the message is a sentence for the user."""


@contextmanager
def readable(path: Path, kind: str) -> Iterator[None]:
    """Translate errors of readers on missing and damaged files to messages that name the file."""
    try:
        yield
    except TableFileError:
        raise
    except FileNotFoundError:
        raise TableFileError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise TableFileError(f"{path} is a folder; give a file.") from None
    except PermissionError:
        raise TableFileError(f"{path} may not be read by this user.") from None
    except MemoryError as error:
        raise TableFileError(f"{path} needs more memory than there is ({_first_line(error)}).") from error
    except _DAMAGE as error:
        raise TableFileError(f"{path} is damaged or not a {kind} file ({_first_line(error)}).") from error
    except (ValueError, OSError) as error:  # pyarrow's errors are of these kinds
        raise TableFileError(f"{path} could not be read as {kind}: {_first_line(error)}.") from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


def pyarrow(module: str = "") -> Any:
    """Import a module of pyarrow; raise with installation instructions if it is missing."""
    try:
        return import_module(f"pyarrow{module}")
    except ImportError as error:
        raise ImportError(
            "CSV and Parquet files are read with pyarrow, which is missing: pip install 'dichotomies[cli]'."
        ) from error


def listing(names: Iterable[object]) -> str:
    """Join names for a message, shortened if there are many."""
    found = [str(name) for name in names]
    more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more
