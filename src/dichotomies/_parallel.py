"""Running many small pieces of work: joblib as the user configured it, one BLAS thread each, progress."""

from __future__ import annotations

import sys
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from sklearn.utils.parallel import Parallel, delayed

# threadpoolctl is a dependency of scikit-learn itself, so it is always there.
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def run(
    task: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int | None,
    progress: Progress | None = None,
    shared_memory: bool = False,
) -> list[Any]:
    """Call `task` with each tuple of arguments; the results come in that order.

    The work is spread over *tasks*, so every task gets one BLAS thread: on the small matrices of tree
    nodes, BLAS threads of its own would only fight with it.

    Parameters
    ----------
    shared_memory : bool
        Whether tasks write into arrays of the caller, which only threads can do. Otherwise the backend
        is the user's (``joblib.parallel_config``), processes by default.
    """
    with _blas().limit(limits=1, user_api="blas"):
        if len(arguments) == 1:
            return [task(*arguments[0])]
        pool = _ReportingParallel(n_jobs=n_jobs, require="sharedmem" if shared_memory else None)
        pool.progress, pool.total = progress, len(arguments)
        results: list[Any] = pool(delayed(task)(*each) for each in arguments)
        return results


class _ReportingParallel(Parallel):
    """joblib's Parallel, telling our `Progress` instead of printing its own."""

    progress: Progress | None
    total: int

    def print_progress(self) -> None:
        """Report; joblib calls this whenever a task is done, on every backend."""
        if self.progress is not None:
            self.progress.show(self.n_completed_tasks / self.total)


class Progress:
    """A line on stderr that says how far the work is and how long it may still take."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._begun = self._shown = time.monotonic()
        self._finished = False

    def show(self, fraction: float) -> None:
        """Report the fraction done; at most every half second, and always the end."""
        now = time.monotonic()
        if self._finished or (fraction < 1 and now - self._shown < 0.5):
            return
        self._shown, self._finished = now, fraction >= 1
        seconds = now - self._begun
        left = f"{seconds * (1 / fraction - 1):.0f} s left" if fraction < 1 else f"took {seconds:.1f} s"
        tty = sys.stderr.isatty()
        line = f"[dichotomies] {self._title}: {fraction:4.0%}, {left}"
        end = "\n" if fraction >= 1 or not tty else ""
        sys.stderr.write(("\r" + line.ljust(72) if tty else line) + end)
        sys.stderr.flush()
