"""Many trials run, over several processes, each result stored as it comes."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from dichotomies.experiments.measure import measure
from dichotomies.experiments.workers import depend_on, without_interrupts

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from dichotomies.experiments.result import Result
    from dichotomies.experiments.store import Store
    from dichotomies.experiments.trial import Trial


class WorkerKilledError(ChildProcessError):
    """A worker process was ended from outside; the message says what to do."""


class Watcher(Protocol):
    """Whoever wants to know how a run goes on."""

    def begin(self, waiting: Sequence[Trial]) -> None:
        """These trials are about to be run."""

    def finished(self, result: Result) -> None:
        """A trial has a result, and it is stored."""

    def failed(self, trial: Trial, sentence: str) -> None:
        """A trial ended with an error, and that is noted."""


class Silent:
    """A watcher that does nothing."""

    def begin(self, waiting: Sequence[Trial]) -> None:
        """Do nothing."""

    def finished(self, result: Result) -> None:
        """Do nothing."""

    def failed(self, trial: Trial, sentence: str) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class RunSummary:
    """How a run ended: how many trials were finished before it, how many it finished, how many failed."""

    already: int
    done: int
    failed: int


@dataclass(frozen=True)
class _Failed:
    trial: Trial
    sentence: str


def run(
    trials: Sequence[Trial],
    store: Store,
    *,
    folds: int = 10,
    n_jobs: int = 1,
    data_dir: Path | None = None,
    watcher: Watcher | None = None,
) -> RunSummary:
    """Run the trials that have no result yet, and store each result as it comes.

    A trial that ends with an error is noted in the store and does not stop the others; it is tried again
    next time. Workers only compute; this process alone writes.

    Parameters
    ----------
    trials : sequence of Trial
        What to run, in this order; trials of one dataset should follow each other.
    store : Store
        Where results are, and go.
    folds : int, default=10
        Folds of cross-validation; one store takes one number.
    n_jobs : int, default=1
        Processes.
    data_dir : path, optional
        The folder of datasets, as in `dichotomies.datasets.load`.
    watcher : Watcher, optional
        Told how the run goes on.

    Returns
    -------
    RunSummary
    """
    watcher = watcher or Silent()
    store.settle("folds", folds)
    finished = store.finished()
    waiting = [trial for trial in trials if trial not in finished]
    watcher.begin(waiting)
    failed = 0
    with closing(_outcomes(waiting, folds, n_jobs, data_dir)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome, _Failed):
                failed += 1
                store.add_failure(outcome.trial, outcome.sentence)
                watcher.failed(outcome.trial, outcome.sentence)
            else:
                store.add(outcome)
                watcher.finished(outcome)
    return RunSummary(len(trials) - len(waiting), len(waiting) - failed, failed)


def _outcomes(
    trials: Sequence[Trial], folds: int, n_jobs: int, data_dir: Path | None
) -> Generator[Result | _Failed, None, None]:
    """Results in the order in which they are ready."""
    pool = Parallel(n_jobs=n_jobs, backend="loky", batch_size=1, return_as="generator_unordered")
    with without_interrupts():
        outcomes = pool(delayed(_attempt)(trial, folds, data_dir, os.getpid()) for trial in trials)
    try:
        yield from outcomes
    except TerminatedWorkerError as error:
        raise WorkerKilledError(
            "A worker process was ended by the operating system, most likely for want of memory. Everything "
            "finished is stored: start again to go on, with fewer jobs at a time where memory is short."
        ) from error


def _attempt(trial: Trial, folds: int, data_dir: Path | None, parent: int) -> Result | _Failed:
    """One trial with one thread: more would fight with the other processes, and change the last digits."""
    depend_on(parent)
    try:
        with threadpool_limits(limits=1):
            return measure(trial, folds=folds, data_dir=data_dir)
    except Exception as error:  # whatever it is, the other trials go on
        return _Failed(trial, f"{type(error).__name__}: {' '.join(str(error).split())}")
