"""Many trials run, over several processes, each result stored as it comes."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from experiments.running.result import Result
from experiments.running.trial import Trial
from experiments.running.workers import depend_on, without_interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from experiments.running.store import ResultStore

T = TypeVar("T", bound=Trial)
R = TypeVar("R", bound=Result[Any])


class WorkerKilledError(ChildProcessError):
    """A worker process was ended from outside; the message says what to do."""


class Watcher(Protocol):
    """Observer of a run."""

    def begin(self, waiting: Sequence[Trial]) -> None:
        """These trials are about to be run."""

    def finished(self, result: Result[Any]) -> None:
        """A trial has a result, and it is stored."""

    def failed(self, trial: Trial, sentence: str) -> None:
        """A trial ended with an error, and that is noted."""


class Silent:
    """A watcher that does nothing."""

    def begin(self, waiting: Sequence[Trial]) -> None:
        """Do nothing."""

    def finished(self, result: Result[Any]) -> None:
        """Do nothing."""

    def failed(self, trial: Trial, sentence: str) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class RunSummary:
    """Counts of trials: finished before the run, finished by it, failed, and left when the time was up."""

    already: int
    done: int
    failed: int
    left: int = 0


@dataclass(frozen=True)
class _Failed(Generic[T]):
    trial: T
    sentence: str


def run_all(
    trials: Sequence[T],
    store: ResultStore[T, R],
    measure: Callable[[T], R],
    *,
    n_jobs: int = 1,
    seconds: float | None = None,
    watcher: Watcher | None = None,
) -> RunSummary:
    """Run the trials that have no result yet, and store each result as it comes.

    A trial that ends with an error is noted in the store and does not stop the others; it is tried again
    next time. Workers only compute; this process alone writes.

    Parameters
    ----------
    trials : sequence of trials
        Trials to run, in this order; trials of one dataset should follow each other.
    store : ResultStore
        Store of earlier and new results.
    measure : callable
        From a trial to its result; it must be possible to send it to another process.
    n_jobs : int, default=1
        Processes.
    seconds : float, optional
        No trial is begun later than so many seconds from now.
    watcher : Watcher, optional
        Told how the run goes on.

    Returns
    -------
    RunSummary
    """
    watcher = watcher or Silent()
    finished = store.finished()
    waiting = [trial for trial in trials if trial not in finished]
    watcher.begin(waiting)
    done = failed = 0
    with closing(_outcomes(waiting, measure, n_jobs, seconds)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome, _Failed):
                failed += 1
                store.add_failure(outcome.trial, outcome.sentence)
                watcher.failed(outcome.trial, outcome.sentence)
            else:
                done += 1
                store.add(outcome)
                watcher.finished(outcome)
    return RunSummary(len(trials) - len(waiting), done, failed, len(waiting) - done - failed)


def _outcomes(
    trials: Sequence[T], measure: Callable[[T], R], n_jobs: int, seconds: float | None
) -> Generator[R | _Failed[T], None, None]:
    """Results in the order in which they are ready."""
    end = float("inf") if seconds is None else time.monotonic() + seconds
    in_time = takewhile(lambda _: time.monotonic() < end, trials)
    pool = Parallel(n_jobs=n_jobs, backend="loky", batch_size=1, return_as="generator_unordered")
    with without_interrupts():
        outcomes = pool(delayed(_attempt)(trial, measure, os.getpid()) for trial in in_time)
    try:
        yield from outcomes
    except TerminatedWorkerError as error:
        raise WorkerKilledError(
            "A worker process was ended by the operating system, most likely for want of memory. Everything "
            "finished is stored: start again to go on, with fewer jobs at a time where memory is short."
        ) from error


def _attempt(trial: T, measure: Callable[[T], R], parent: int) -> R | _Failed[T]:
    """One trial with one thread: more would fight with the other processes, and change the last digits."""
    depend_on(parent)
    try:
        with threadpool_limits(limits=1):
            return measure(trial)
    except Exception as error:  # whatever it is, the other trials go on
        return _Failed(trial, f"{type(error).__name__}: {' '.join(str(error).split())}")
