"""Atomic file writes."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def check_place(path: Path) -> None:
    """Raise if a file cannot be moved to `path`, or would replace a device or a pipe."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the path of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to save {path.name} in; make it first.")
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is a device or a pipe, which a file would replace; give the path of a file.")


@contextmanager
def replaced_when_done(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file in the same folder that replaces `path` at the end of the block."""
    target = Path(os.path.realpath(path))
    check_place(target)
    unfinished = target.with_name(f".dichotomies-{secrets.token_hex(8)}.part")
    try:
        yield unfinished
        _flush(unfinished, os.O_RDWR)
        if target.exists():
            shutil.copymode(target, unfinished)
        unfinished.replace(target)
    except OSError as error:
        reason = error.strerror or str(error).replace(str(unfinished), str(path))
        raise type(error)(
            f"{path} could not be written ({reason}); whatever was there is unchanged."
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    with suppress(OSError):  # not every system can flush a folder; the file itself is safe
        _flush(target.parent, os.O_RDONLY)


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
