"""A file that is still arriving: locked, continued, checked, and moved into its place when it is whole."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dichotomies._common.progress import say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DISK_IS_FULL = {errno.ENOSPC, errno.EDQUOT}


class FetchError(OSError):
    """A file could not be fetched; the message says why and what to do."""


class PartialFile:
    """``<target>.part``, open for appending and locked against other processes while in the context.

    Beside it, ``<target>.part.validator`` holds what the server calls this version of the file. Both are
    kept when the context is left early, so that the next call can go on.

    Parameters
    ----------
    target : Path
        Path of the complete file.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(target.name + ".part")
        self._validator_path = target.with_name(target.name + ".part.validator")
        self._file: Any = None

    def __enter__(self) -> PartialFile:
        with disk_errors(self.path):
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._open_locked()
        self.size = self._size_at_first = os.fstat(self._file.fileno()).st_size
        return self

    def __exit__(self, *exception: object) -> None:
        if self.size == 0:  # nothing worth keeping
            self._remove()
        self._file.close()

    def _open_locked(self) -> Any:
        while True:
            file = self.path.open("ab", buffering=0)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"waiting for another process that fetches {self.target.name}")
                fcntl.flock(file, fcntl.LOCK_EX)
            # The process waited for has moved or removed the file that was locked: then there is a new one.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                    return file
            file.close()

    @property
    def has_grown(self) -> bool:
        """True if bytes were added since it was opened."""
        return self.size > self._size_at_first

    @property
    def validator(self) -> str:
        """The server's name for the version of the file that these bytes belong to; empty if unknown."""
        return self._validator_path.read_text("ascii").strip() if self._validator_path.is_file() else ""

    @validator.setter
    def validator(self, value: str) -> None:
        with disk_errors(self.path):
            self._validator_path.write_text(value, "ascii", errors="replace")

    def start_over(self) -> None:
        """Forget the bytes so far."""
        if self.size:
            self._file.truncate(0)
            self.size = 0

    def append(self, data: bytes) -> None:
        """Write all of `data` at the end."""
        view = memoryview(data)
        with disk_errors(self.path):
            while view:
                written = self._file.write(view)
                self.size += written
                view = view[written:]

    def expect_room(self, total: int | None) -> None:
        """Raise before anything is written if the disk cannot hold the whole file."""
        missing = (total or 0) - self.size
        free = shutil.disk_usage(self.target.parent).free
        if missing > free:
            raise FetchError(
                f"The disk that holds {self.target.parent} has {free:,} bytes left and {self.target.name} "
                f"needs {missing:,}: free some space and try again."
            )

    def finish(self, expected: str | None, origin: str) -> None:
        """Check the whole file, record its checksum and move it to its place."""
        digest = digest_of(self.path)
        if expected is not None and digest != expected.lower():
            self.start_over()
            raise FetchError(
                f"The file from {origin} has the SHA-256 {digest} and not {expected}, so it was thrown away: "
                f"it was damaged on the way or has changed at its source. Try again; if it has changed, "
                f"check the new one and put it as {self.target} yourself, with its checksum in "
                f"{_record_path(self.target)}."
            )
        with disk_errors(self.path):
            os.fsync(self._file.fileno())
            _record_path(self.target).write_text(f"{digest}  {self.target.name}\n", "utf-8")
            self._validator_path.unlink(missing_ok=True)
            self.path.replace(self.target)

    def _remove(self) -> None:
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._file.fileno()), self.path.stat()):
                self.path.unlink()
                self._validator_path.unlink(missing_ok=True)


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def recorded_digest(path: Path) -> str | None:
    """The checksum that the first download of the file had, if there was one."""
    record = _record_path(path)
    return record.read_text("utf-8").split()[0] if record.is_file() else None


def checked(path: Path, expected: str | None) -> Path:
    """A file that is there already, after a look at its checksum."""
    if expected is not None and (digest := digest_of(path)) != expected.lower():
        raise FetchError(
            f"{path} has the SHA-256 {digest} and not {expected}: remove it to have it fetched again."
        )
    return path


def _record_path(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the disk says into sentences."""
    try:
        yield
    except OSError as raised:
        # replaced_when_done has made a sentence of its own
        error = raised.__cause__ if isinstance(raised.__cause__, OSError) else raised
        if error.errno in _DISK_IS_FULL:
            raise FetchError(
                f"The disk that holds {path} is full: free some space and try again; what was downloaded so "
                f"far is kept."
            ) from error
        raise FetchError(f"{path} cannot be written ({error.strerror}).") from error
