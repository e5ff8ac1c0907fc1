"""Work in parts: chunks of rows within a limit of memory, batches, parallel loops here or on a cluster."""

from __future__ import annotations

import re
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from dichotomies._common.blas import FORK_GATE, ONE_BLAS_THREAD
from dichotomies._common.progress import Bar, Progress, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from dichotomies._common.cluster import Cluster
    from dichotomies._common.progress import Reporter
    from dichotomies._common.typing import IntArray, Matrix


#: Enough for load balancing and progress reports, few enough to be cheap.
_BATCHES_PER_JOB = 16

#: Backends of joblib that stand for a cluster.
_CLUSTERS = ("DaskDistributedBackend", "RayBackend")

#: Seconds of work on one core below which a cluster would only take longer.
_WORTH_SENDING = 1.0

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}

#: Bytes that the call in progress may take beyond its rows, its model and its answer; None without a limit.
LIMIT: ContextVar[int | None] = ContextVar("bytes that a call may take", default=None)


def n_bytes(size: Any) -> int | None:
    """Read a size: bytes, a text with a unit, or None for no limit.

    Examples
    --------
    >>> from dichotomies._common.parallel import n_bytes
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
    >>> from dichotomies._common.parallel import written
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
    >>> from dichotomies._common.parallel import rows_within
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
    """Slices of rows and their predictions, `step` rows at a time.

    Parameters
    ----------
    predict : callable
        A method of a fitted classifier, such as ``predict_log_proba``.
    X : array, sparse matrix, data frame or list of rows
    """
    X = X.tocsr() if hasattr(X, "tocsr") else X
    for rows in row_slices(_num_samples(X), step):
        with np.errstate(divide="ignore"):  # the logarithm of a probability of 0
            predicted = predict(_safe_indexing(X, rows))
        yield rows, predicted


def _with_one_blas_thread(task: Callable[..., Any], *arguments: Any) -> Any:
    with ONE_BLAS_THREAD, FORK_GATE:
        return task(*arguments)


def run(
    task: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int | None,
    progress: Reporter | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    shared_memory: bool = False,
) -> list[Any]:
    """Call `task` with each tuple of arguments; return the results in the same order.

    Every task gets one BLAS thread: parallelism is over tasks, and on the small matrices of tree nodes BLAS
    threads would only compete with them.

    Parameters
    ----------
    span : (float, float)
        Fractions of the reported work at which these tasks begin and end.
    shared_memory : bool
        True if tasks write into arrays of the caller, which requires threads. Otherwise the backend is the
        user's (``joblib.parallel_config``), processes by default.
    """
    with ONE_BLAS_THREAD:
        if len(arguments) == 1 or effective_n_jobs(n_jobs) == 1:
            return _run_alone(task, arguments, progress, span)
        pool = _ReportingParallel(n_jobs=n_jobs, require="sharedmem" if shared_memory else None)
        pool.progress, pool.total, pool.span = progress, len(arguments), span
        results: list[Any] = pool(delayed(_with_one_blas_thread)(task, *each) for each in arguments)
        return results


def _run_alone(
    task: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    progress: Reporter | None,
    span: tuple[float, float],
) -> list[Any]:
    results = []
    for each in arguments:
        with FORK_GATE:
            results.append(task(*each))
        if progress is not None:
            progress.show(within(span, len(results) / len(arguments)))
    return results


def even_batches(sizes: IntArray, n_jobs: int | None, per_job: int = _BATCHES_PER_JOB) -> list[range]:
    """Divide consecutive pieces of work into batches of about equal total size, several per worker."""
    if len(sizes) == 0:
        return []
    n_batches = per_job * effective_n_jobs(n_jobs)
    work = np.cumsum(sizes)
    batch_of_piece = (work - sizes) * n_batches // max(1, work[-1])
    edges = [0, *(np.flatnonzero(np.diff(batch_of_piece)) + 1).tolist(), len(sizes)]
    return [range(a, b) for a, b in pairwise(edges)]


class _ReportingParallel(Parallel):
    """joblib's Parallel, reporting to `Progress` instead of printing."""

    progress: Reporter | None
    total: int
    span: tuple[float, float]

    def print_progress(self) -> None:
        """Report progress; joblib calls this after every task, on every backend."""
        if self.progress is not None:
            self.progress.show(within(self.span, self.n_completed_tasks / self.total))


def active(n_jobs: int | None) -> Cluster | None:
    """Cluster of joblib's active backend; None where work stays on this machine."""
    if not _is_on_cluster():
        return None
    from dichotomies._common.cluster import connected

    return connected(get_active_backend()[0], n_jobs)


def shipping_once() -> AbstractContextManager[object]:
    """Send arrays and rows at most once to the workers of a cluster, where one is active, in a block."""
    if not _is_on_cluster():
        return nullcontext()
    from dichotomies._common.shipping import shipment

    return shipment()


def _is_on_cluster() -> bool:
    return type(get_active_backend()[0]).__name__ in _CLUSTERS


@dataclass(frozen=True)
class Context:
    """Random numbers, workers and progress reports of one call.

    Attributes
    ----------
    rng : RandomState
        Source of all randomness; None if nothing is random.
    n_jobs : int or None
        Number of workers, as everywhere in scikit-learn. No result depends on it.
    verbose : bool
        Report progress on stderr.
    title : str
        Prefix of every progress report, such as ``"tree 2 of 10: "``.
    span : (float, float)
        Fractions of the stage at which the work of this context begins and ends.
    """

    rng: Any = None
    n_jobs: int | None = None
    verbose: bool = False
    title: str = ""
    span: tuple[float, float] = (0.0, 1.0)

    def map(
        self,
        function: Callable[..., Any],
        shared: Any,
        arguments: Sequence[tuple[Any, ...]],
        seconds: Sequence[float],
        *,
        work: str = "",
        threads: bool = True,
    ) -> list[Any]:
        """Call ``function(shared, *each)`` for each tuple of arguments; return the results in their order.

        On a cluster (`dichotomies._common.cluster`) the most expensive tasks start first, and `shared` is
        sent once per worker. Work of less than `_WORTH_SENDING` stays here.

        Parameters
        ----------
        function : callable
            A function of a module, not a closure.
        seconds : sequence of float
            Rough estimate for each task.
        work : str
            Title of the progress report.
        threads : bool
            On this machine, run in threads; otherwise in processes, unless joblib is told otherwise.
        """
        progress = self.progress(work)
        remote = self.cluster(float(np.sum(seconds)))
        if remote is not None and len(arguments) > 1:
            results: dict[int, Any] = {}
            for i, result in remote.results(function, shared, arguments, seconds):
                results[i] = result
                if progress is not None:
                    progress.show(len(results) / len(arguments))
            return [results[i] for i in range(len(arguments))]
        task = partial(function, shared)
        return run(task, arguments, n_jobs=self.n_jobs, progress=progress, shared_memory=threads)

    def cluster(self, seconds: float) -> Cluster | None:
        """Cluster for work that takes so long on one core; None where it is to stay on this machine."""
        return active(self.n_jobs) if seconds >= _WORTH_SENDING else None

    def titled(self, title: str, i: int = 0, n: int = 1) -> Context:
        """Copy with a longer title prefix, for part `i` of `n` of the work."""
        return replace(self, title=self.title + title, span=self._part(i, n))

    def stage(self, name: str, expected: Mapping[str, float] | None = None) -> None:
        """Begin a stage of the call, where progress is reported; see `Bar.stage`."""
        if self.verbose:
            Bar.stage(name, expected)

    def progress(self, work: str, i: int = 0, n: int = 1) -> Reporter | None:
        """Progress report on part `i` of `n` of the work; None if not verbose."""
        if not self.verbose:
            return None
        bar = Bar.current()
        return Progress(self.title + work) if bar is None else bar.part(self.title + work, self._part(i, n))

    def _part(self, i: int, n: int) -> tuple[float, float]:
        return within(self.span, i / n), within(self.span, (i + 1) / n)
