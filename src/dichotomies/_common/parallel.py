"""Parallel loops with one BLAS thread per task, progress reports, and the `Context` of a call."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

# threadpoolctl is a dependency of scikit-learn itself, so it is always installed.
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dichotomies._common.typing import IntArray


#: Enough for load balancing and progress reports, few enough to be cheap.
_BATCHES_PER_JOB = 16


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
        with self._lock:
            if self._inside == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            if self._inside == 1:
                self._limit.__exit__(None, None, None)
            self._inside = max(0, self._inside - 1)  # 0 already if it was entered before a fork


ONE_BLAS_THREAD = _OneBlasThread()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _with_one_blas_thread(task: Callable[..., Any], *arguments: Any) -> Any:
    with ONE_BLAS_THREAD:
        return task(*arguments)


def run(
    task: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int | None,
    progress: Progress | None = None,
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
    progress: Progress | None,
    span: tuple[float, float],
) -> list[Any]:
    results = []
    for each in arguments:
        results.append(task(*each))
        if progress is not None:
            progress.show(_within(span, len(results) / len(arguments)))
    return results


def _within(span: tuple[float, float], fraction: float) -> float:
    return span[0] * (1 - fraction) + span[1] * fraction


def even_batches(sizes: IntArray, n_jobs: int | None, per_job: int = _BATCHES_PER_JOB) -> list[range]:
    """Divide consecutive pieces of work into batches of about equal total size, several per worker."""
    n_batches = per_job * effective_n_jobs(n_jobs)
    work = np.cumsum(sizes)
    batch_of_piece = (work - sizes) * n_batches // max(1, work[-1])
    edges = [0, *(np.flatnonzero(np.diff(batch_of_piece)) + 1).tolist(), len(sizes)]
    return [range(a, b) for a, b in pairwise(edges)]


class _ReportingParallel(Parallel):
    """joblib's Parallel, reporting to `Progress` instead of printing."""

    progress: Progress | None
    total: int
    span: tuple[float, float]

    def print_progress(self) -> None:
        """Report progress; joblib calls this after every task, on every backend."""
        if self.progress is not None:
            self.progress.show(_within(self.span, self.n_completed_tasks / self.total))


def say(text: str) -> None:
    """Write a line to stderr, where progress is reported."""
    sys.stderr.write(f"[dichotomies] {text}\n")
    sys.stderr.flush()


class Progress:
    """A line on stderr with the fraction of work done and the estimated time left.

    Parameters
    ----------
    title : str
        The work.
    patience : float, default=0
        Seconds below which the work is not worth a line.
    """

    def __init__(self, title: str, patience: float = 0.0) -> None:
        self._title, self._patience = title, patience
        self._begun = self._shown = time.monotonic()
        self._finished = False

    def show(self, fraction: float) -> None:
        """Report the fraction done; at most every half second, and always the end."""
        now = time.monotonic()
        if self._finished or (fraction < 1 and now - self._shown < 0.5) or now - self._begun < self._patience:
            return
        self._shown, self._finished = now, fraction >= 1
        seconds = now - self._begun
        left = f"{seconds * (1 / fraction - 1):.0f} s left" if fraction < 1 else f"took {seconds:.1f} s"
        tty = sys.stderr.isatty()
        line = f"[dichotomies] {self._title}: {fraction:4.0%}, {left}"
        end = "\n" if fraction >= 1 or not tty else ""
        sys.stderr.write(("\r" + line.ljust(72) if tty else line) + end)
        sys.stderr.flush()


#: Set while long predictions are to report their progress, see `dichotomies.inference.composition`.
SHOWS_ANSWERS: ContextVar[bool] = ContextVar("shows the progress of answers", default=False)


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
    """

    rng: Any = None
    n_jobs: int | None = None
    verbose: bool = False
    title: str = ""

    def titled(self, title: str) -> Context:
        """Copy with a longer title prefix."""
        return replace(self, title=self.title + title)

    def progress(self, work: str) -> Progress | None:
        """Progress report on some work; None if not verbose."""
        return Progress(self.title + work) if self.verbose else None
