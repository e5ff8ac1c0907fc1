"""Memory that a call may take: sizes as users write them, and the limit of the call in progress."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Any

import numpy as np

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}

#: Bytes that the call in progress may take beyond its rows, its model and its answer; None without a limit.
LIMIT: ContextVar[int | None] = ContextVar("bytes that a call may take", default=None)


def n_bytes(size: Any) -> int | None:
    """Read a size: bytes, a text with a unit, or None for no limit.

    Examples
    --------
    >>> from dichotomies._common.memory import n_bytes
    >>> n_bytes("1.5 GB"), n_bytes("64MiB"), n_bytes(1000), n_bytes(None)
    (1500000000, 67108864, 1000, None)
    """
    if size is None:
        return None
    if isinstance(size, int | float | np.integer) and not isinstance(size, bool) and 1 <= size < 2**62:
        return int(size)
    written = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", size) if isinstance(size, str) else None
    if written is not None and written[2].upper() in _UNITS:
        found = float(written[1]) * _UNITS[written[2].upper()]
        if 1 <= found < 2**62:
            return int(found)
    raise ValueError(
        f"max_memory must be a number of bytes, a size such as '2GB' or '500 MiB', or None, got {size!r}."
    )


def written(size: float) -> str:
    """Write a size for users.

    Examples
    --------
    >>> from dichotomies._common.memory import written
    >>> written(1_234_567), written(2.5e9)
    ('1.2 MB', '2.5 GB')
    """
    for unit in ("TB", "GB", "MB", "KB"):
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:.1f} {unit}"
    return f"{size:.0f} bytes"
