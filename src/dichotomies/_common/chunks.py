"""Chunks of rows, within a limit of memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from dichotomies._common.parallel import FORK_GATE, run
from dichotomies._common.progress import CALL, Progress
from dichotomies._common.typing import FloatArray, Matrix

#: Bytes of node log-odds held at a time, per worker; and those of chunks of few rows, which may be larger: a
#: model that does not fit into the caches is read once for each chunk.
CHUNK_BYTES, _FEW_ROWS_BYTES = 2**25, 2**27

#: Bytes of log-odds that are used at once, and of several trees' log-probabilities while they are pooled.
_POOLED_BYTES = 2**20

#: Chunks are multiples of this many rows, so that BLAS computes every row at the same place of its blocks.
_ALIGNMENT = 64
_MAX_ROWS = 8192
_FEW_ROWS = 256

#: Arrays of a chunk's size that are held at a time at most, by searches and prediction sets.
_ARRAYS = 10

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def n_bytes(size: Any) -> int | None:
    """Read a size: bytes, a text with a unit, or None for no limit.

    Examples
    --------
    >>> from dichotomies._common.chunks import n_bytes
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
    >>> from dichotomies._common.chunks import written
    >>> written(1_234_567), written(2.5e9)
    ('1.2 MB', '2.5 GB')
    """
    for unit in ("TB", "GB", "MB", "KB"):
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:.1f} {unit}"
    return f"{size:.0f} bytes"


def rows_within(
    n_bytes: int, width: int, *, itemsize: int = 8, multiple_of: int = 1, at_most: int | None = None
) -> int:
    """Number of rows of `width` numbers that fit into `n_bytes`, and at least `multiple_of`.

    Examples
    --------
    >>> from dichotomies._common.chunks import rows_within
    >>> rows_within(2**20, 1000), rows_within(2**20, 1000, multiple_of=64), rows_within(2**20, 10**9)
    (131, 128, 1)
    """
    rows = max(multiple_of, n_bytes // (itemsize * max(1, width)) // multiple_of * multiple_of)
    return rows if at_most is None else min(rows, at_most)


def row_slices(n_rows: int, step: int) -> Iterator[slice]:
    """Slices of `step` consecutive rows; the last may have fewer."""
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def predictions(predict: Callable[[Any], Any], X: Matrix, step: int) -> Iterator[tuple[slice, Any]]:
    """Slices of rows and their predictions, `step` rows at a time."""
    X = X.tocsr() if hasattr(X, "tocsr") else X
    for rows in row_slices(_num_samples(X), step):
        with np.errstate(divide="ignore"):  # the logarithm of a probability of 0
            predicted = predict(_safe_indexing(X, rows))
        yield rows, predicted


def cached_rows(width: int, multiple_of: int = _ALIGNMENT) -> int:
    """Rows per block so that `width` numbers of each stay in a core's cache, if the multiple allows."""
    return rows_within(_POOLED_BYTES, width, multiple_of=multiple_of)


def chunk_rows(width: int, n_workers: int = 1) -> int:
    """Rows per chunk so that `width` numbers of each fit into `CHUNK_BYTES`, and into the call's limit."""
    limit = CALL.get().limit
    if limit is None:
        few = rows_within(_FEW_ROWS_BYTES, width, multiple_of=_ALIGNMENT, at_most=_FEW_ROWS)
        return max(few, rows_within(CHUNK_BYTES, width, multiple_of=_ALIGNMENT, at_most=_MAX_ROWS))
    most = min(CHUNK_BYTES, limit // (_ARRAYS * n_workers))
    return rows_within(most, width, multiple_of=_ALIGNMENT, at_most=_MAX_ROWS)


def bytes_of_chunk(width: int) -> int:
    """Memory that the smallest chunk takes, with all intermediate results."""
    return _ARRAYS * 8 * width * _ALIGNMENT


def _within_limit(width: int, n_jobs: int | None) -> tuple[int, int | None]:
    """Rows of a chunk and number of workers that stay within the limit of the call."""
    limit = CALL.get().limit
    if limit is None:
        return chunk_rows(width), n_jobs
    least = bytes_of_chunk(width)
    if least > limit:
        raise ValueError(
            f"max_memory leaves {written(limit)} for predictions, but chunks of {_ALIGNMENT} rows, the "
            f"smallest there are, take {written(least)} with this model: allow more."
        )
    n_workers = min(effective_n_jobs(n_jobs), limit // least)
    return chunk_rows(width, n_workers), n_workers


def in_chunks(width: int, n_rows: int, work: Callable[[slice], None], n_jobs: int | None = None) -> None:
    """Call `work` with the rows of each chunk, in any order and from several threads."""
    if n_rows == 1:  # one request: limiting BLAS to one thread would take longer than the work
        with FORK_GATE:
            work(slice(0, 1))
    else:
        step, n_jobs = _within_limit(width, n_jobs)
        chunks = [(rows,) for rows in row_slices(n_rows, step)]
        progress = Progress("predict", patience=2.0) if CALL.get().shows_answers else None
        run(work, chunks, n_jobs=n_jobs, shared_memory=True, progress=progress)


def for_each_chunk(
    n_nodes: int,
    scorer: Any,
    X: Matrix,
    consume: Callable[[slice, FloatArray], None],
    n_jobs: int | None = None,
) -> None:
    """Score rows chunk by chunk and hand over the log-odds at every node."""
    in_chunks(n_nodes, X.shape[0], lambda rows: consume(rows, scorer.log_odds(X[rows])), n_jobs)
