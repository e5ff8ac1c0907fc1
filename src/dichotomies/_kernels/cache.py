"""Compiled kernels on disk, one file each; a damaged or read-only disk costs time and nothing else.

A file's name identifies everything that its contents depend on (sources, versions, signature, processor), so
that processes that start at once write the same file, each by an atomic rename, and a folder copied from
another machine is ignored. Files of other versions are removed. A file begins with a checksum of the rest. If
reading fails, the kernel is compiled again; if writing fails, the next process has to; one warning says so.
"""

import hashlib
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config, serialize
from numba.core.compiler import CompileResult

_DIGEST_SIZE = 32

# numba's types for them are not complete
_RESULT: Any = CompileResult
_CONFIG: Any = config
_SERIALIZE: Any = serialize


class KernelCache:
    """The compiled signatures of one kernel; what numba's dispatcher loads from and saves to.

    Parameters
    ----------
    function : callable
        The kernel's code.
    on_miss : callable
        Called before a signature is compiled.
    """

    def __init__(self, function: Any, on_miss: Callable[[], None]) -> None:
        module = function.__module__.rpartition(".")[2]
        self._name = f"{module}.{function.__qualname__}"
        self._on_miss = on_miss

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled signature; None if it has to be compiled."""
        target_context.refresh()
        name = self._file_name(signature, target_context)
        for folder in folders():
            try:
                content = (folder / name).read_bytes()
                if hashlib.sha256(content[_DIGEST_SIZE:]).digest() == content[:_DIGEST_SIZE]:
                    return _RESULT._rebuild(target_context, *pickle.loads(content[_DIGEST_SIZE:]))
            except OSError:
                continue
            except Exception as error:
                _warn_once(f"cannot be read: {error!r}")
        self._on_miss()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled signature in the first folder that can be written to."""
        if result.library.has_dynamic_globals or any(not lifted.can_cache for lifted in result.lifted):
            return
        content = _SERIALIZE.dumps(result._reduce())
        content = hashlib.sha256(content).digest() + content
        name = self._file_name(signature, result.target_context)
        for folder in folders():
            try:
                _write(folder, name, content)
            except OSError:
                continue
            return
        _warn_once("cannot be written")

    def _file_name(self, signature: Any, target_context: Any) -> str:
        """Kernel, types and machine, and last what changes with versions."""
        machine = sys.implementation.cache_tag, target_context.codegen().magic_tuple()
        parts = _hash(signature, *machine), _hash(_sources(), numba.__version__, sys.version)
        return ".".join([self._name, *parts, "nbk"])


def folders() -> list[Path]:
    """Folders of compiled kernels: ``NUMBA_CACHE_DIR``, or one beside the package and one at home."""
    chosen = os.environ.get("NUMBA_CACHE_DIR") or _CONFIG.CACHE_DIR
    if chosen:
        return [Path(chosen) / "dichotomies"]
    own = Path(__file__).parent / "__pycache__"
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home folder
        return [own]
    return [own, home / "dichotomies"]


def _write(folder: Path, name: str, content: bytes) -> None:
    """Write a file so that others see all of it or nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(folder / name)
        for other in folder.glob(name.rsplit(".", 2)[0] + ".*.nbk"):
            if other.name != name:  # of another version
                other.unlink(missing_ok=True)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _hash(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@cache
def _sources() -> str:
    """A checksum of the code of all kernels: they call one another across files."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _warn_once(trouble: str) -> None:
    where = ", ".join(map(str, folders()))
    warnings.warn(
        f"The cache of compiled kernels in {where} {trouble}. Kernels are compiled again in every process; "
        "set NUMBA_CACHE_DIR to a folder that can be written to.",
        RuntimeWarning,
        stacklevel=2,
    )
