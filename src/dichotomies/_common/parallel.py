"""Parallel loops, here or on a cluster: one thread of BLAS per task, and no fork meanwhile."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

# threadpoolctl is a dependency of scikit-learn itself, so it is always installed.
from threadpoolctl import ThreadpoolController

from dichotomies._common.progress import Bar, Progress, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dichotomies._common.progress import Reporter
    from dichotomies._common.typing import IntArray


#: Enough for load balancing and progress reports, few enough to be cheap.
_BATCHES_PER_JOB = 16

#: Backends of joblib that stand for a cluster.
_CLUSTERS = ("DaskDistributedBackend", "RayBackend")

#: Seconds of work on one core below which a cluster would only take longer.
_WORTH_SENDING = 1.0

#: Seconds that a fork waits for other threads to finish the task they are at.
_PATIENCE = 10.0


class _ForkGate:
    """Context of work in native libraries, which may hold locks of their own.

    A child made by ``fork`` has a copy of every lock, but none of the threads that would release it: BLAS
    locks its buffers and its pool of threads, and a child that was made at that moment waits forever.
    Therefore a fork waits until other threads have left this context, which they enter for one task (a chunk
    of rows, a batch of nodes) at a time, and no thread enters until the fork is done. A thread may enter
    several times.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = self._forks = 0
        self._own = threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._close, after_in_parent=self._open, after_in_child=self._open_in_child
            )

    def __enter__(self) -> None:
        depth = self._depth()
        if depth == 0:
            with self._changed:
                self._changed.wait_for(lambda: self._forks == 0, _PATIENCE)
                self._inside += 1
        self._own.depth = depth + 1

    def __exit__(self, *exception: object) -> None:
        self._own.depth = self._depth() - 1
        if self._own.depth == 0:
            with self._changed:
                self._inside = max(0, self._inside - 1)
                self._changed.notify_all()

    def _depth(self) -> int:
        """Times that this thread has entered and not left."""
        return getattr(self._own, "depth", 0)

    def _close(self) -> None:
        mine = 1 if self._depth() else 0
        with self._changed:
            self._forks += 1
            self._changed.wait_for(lambda: self._inside <= mine, _PATIENCE)

    def _open(self) -> None:
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def _open_in_child(self) -> None:
        self._changed = threading.Condition()
        self._forks, self._inside = 0, 1 if self._depth() else 0


FORK_GATE = _ForkGate()


class _OneBlasThread:
    """Context in which BLAS uses one thread: the first to enter sets the limit, the last to leave lifts it.

    The limit applies to the whole process, so threads that enter and leave in any order must share it. A
    process made by ``fork`` has none of its parent's other threads, so what they held is released there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._release)

    def _release(self) -> None:
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 0
            self._limit.__exit__(None, None, None)

    def __enter__(self) -> None:
        with FORK_GATE, self._lock:
            if self._inside == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with FORK_GATE, self._lock:
            if self._inside == 1:
                self._limit.__exit__(None, None, None)
            self._inside = max(0, self._inside - 1)  # 0 already if it was entered before a fork


ONE_BLAS_THREAD = _OneBlasThread()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def with_one_blas_thread(task: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with its arguments in one thread of BLAS."""
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
        if len(arguments) <= 1 or effective_n_jobs(n_jobs) == 1:
            return _run_alone(task, arguments, progress, span)
        pool = _ReportingParallel(n_jobs=n_jobs, require="sharedmem" if shared_memory else None)
        pool.progress, pool.total, pool.span = progress, len(arguments), span
        results: list[Any] = pool(delayed(with_one_blas_thread)(task, *each) for each in arguments)
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
    _sent: dict[int, Any] = field(default_factory=dict, repr=False, compare=False)

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

        Several workers start with the most expensive tasks. On a cluster `shared` is sent once per worker,
        and its large arrays once per call; work of less than `_WORTH_SENDING` stays here.

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
        if len(arguments) > 1 and self.is_on_cluster(float(np.sum(seconds))):
            first = np.argsort(-np.asarray(seconds), kind="stable").tolist()
            results: dict[int, Any] = {}
            for i, result in self.results(function, shared, [arguments[i] for i in first]):
                results[first[i]] = result
                if progress is not None:
                    progress.show(len(results) / len(arguments))
            return [results[i] for i in range(len(arguments))]
        cost, n_jobs = np.asarray(seconds), effective_n_jobs(self.n_jobs)
        if n_jobs == 1:  # the largest nodes come first, and need most memory
            cost = np.zeros(len(arguments))
        order = np.argsort(-cost, kind="stable")
        tasks, call = [arguments[i] for i in order], partial(function, shared)
        done = run(call, tasks, n_jobs=self.n_jobs, progress=progress, shared_memory=threads)
        return [done[i] for i in np.argsort(order)]

    def is_on_cluster(self, seconds: float) -> bool:
        """Return True if joblib's backend is a cluster's, and work of so many seconds is worth sending."""
        if seconds < _WORTH_SENDING or type(get_active_backend()[0]).__name__ not in _CLUSTERS:
            return False
        from dichotomies._common.cluster import is_in_dask_task

        return not is_in_dask_task() and effective_n_jobs(self.n_jobs) > 1

    def results(
        self, function: Callable[..., Any], shared: Any, arguments: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        """Results of tasks on a cluster, with their numbers, in the order in which they end; see `map`."""
        from dichotomies._common.cluster import results

        return results(function, shared, arguments, self.n_jobs, self._sent)

    def titled(self, title: str, i: int = 0, n: int = 1) -> Context:
        """Copy with a longer title prefix, for part `i` of `n` of the work."""
        return replace(self, title=self.title + title, span=self._part(i, n))

    def stage(self, name: str) -> None:
        """Begin a stage of the call, where progress is reported; see `Bar.stage`."""
        if self.verbose:
            Bar.stage(name)

    def progress(self, work: str, i: int = 0, n: int = 1) -> Reporter | None:
        """Progress report on part `i` of `n` of the work; None if not verbose."""
        if not self.verbose:
            return None
        bar = Bar.current()
        return Progress(self.title + work) if bar is None else bar.part(self.title + work, self._part(i, n))

    def _part(self, i: int, n: int) -> tuple[float, float]:
        return within(self.span, i / n), within(self.span, (i + 1) / n)
