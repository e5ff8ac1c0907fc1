"""Progress of a run, as a bar on a terminal or line by line."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Self, TextIO

from rich.progress import BarColumn, Progress, TextColumn

from experiments.running.time_left import Kind, TimeLeft, in_words, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.console import Console

    from experiments.running.result import Result
    from experiments.running.trial import Trial

#: Seconds between lines where there is no terminal.
_EVERY = 30.0


class Account:
    """Trials of a run that are done and left, and an estimate of the time left.

    Parameters
    ----------
    results : iterable of Result
        Earlier results, to judge by.
    n_jobs : int
        Processes at work.
    prior : callable, optional
        Seconds that a trial of a kind is thought to take, as in `TimeLeft`.
    """

    def __init__(
        self,
        results: Iterable[Result[Any]],
        n_jobs: int,
        prior: Callable[[Kind], float] | None = None,
    ) -> None:
        self._time = TimeLeft(results, prior)
        self._n_jobs = n_jobs
        self._begun = time.monotonic()
        self._used = 0.0
        self._left: Counter[Kind] = Counter()
        self.total = self.done = self.failed = 0

    def begin(self, waiting: Sequence[Trial]) -> None:
        """Take note of what is to be run."""
        self._left, self.total = Counter(map(kind_of, waiting)), len(waiting)
        self._begun = time.monotonic()

    def finished(self, result: Result[Any]) -> None:
        """Take note of a result."""
        self._time.note(result)
        self._used += result.seconds
        self._left[kind_of(result.trial)] -= 1
        self.done += 1

    def fail(self, trial: Trial) -> None:
        """Take note of a failure."""
        self._left[kind_of(trial)] -= 1
        self.failed += 1

    def seconds_left(self) -> float | None:
        """Time until the end; None where nothing is known yet."""
        processor = self._time.seconds(self._left)
        if processor is None:
            return None
        # reading data and sharing the machine take time that is not the trials' own
        passed = (time.monotonic() - self._begun) * self._n_jobs
        slowness = max(1.0, passed / self._used) if self._used > 1.0 else 1.0
        return processor * slowness / self._n_jobs

    def __str__(self) -> str:
        left = self.seconds_left()
        words = "time left not known yet" if left is None else f"about {in_words(left)} left"
        failures = f", {self.failed} failed" if self.failed else ""
        return f"{self.done + self.failed} of {self.total} trials{failures}, {words}"


class LineWatcher:
    """Tells a line every half minute, and every failure at once.

    Parameters
    ----------
    account : Account
    stream : text stream, optional
        Output stream; by default standard error.
    every : float, default=30.0
        Seconds between lines.
    """

    def __init__(self, account: Account, stream: TextIO | None = None, every: float = _EVERY) -> None:
        self._account = account
        self._stream = stream or sys.stderr
        self._every = every
        self._told = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def begin(self, waiting: Sequence[Trial]) -> None:
        """Tell how much there is to do."""
        self._account.begin(waiting)
        if waiting:
            self._tell(str(self._account))

    def finished(self, result: Result[Any]) -> None:
        """Tell how far it is, now and then and at the end."""
        self._account.finished(result)
        now, all_done = time.monotonic(), self._account.done + self._account.failed == self._account.total
        if all_done or now - self._told >= self._every:
            self._told = now
            self._tell(str(self._account))

    def failed(self, trial: Trial, sentence: str) -> None:
        """Tell of the failure."""
        self._account.fail(trial)
        self._tell(failure_line(trial, sentence))

    def _tell(self, text: str) -> None:
        self._stream.write(f"[dichotomies] {text}\n")
        self._stream.flush()


class BarWatcher:
    """Draws a bar on a terminal, with failures above it.

    Parameters
    ----------
    account : Account
    console : rich.console.Console
    """

    def __init__(self, account: Account, console: Console) -> None:
        self._account = account
        self._bar = Progress(
            BarColumn(), TextColumn("{task.description}", markup=False), console=console, transient=True
        )
        self._task = self._bar.add_task("")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def begin(self, waiting: Sequence[Trial]) -> None:
        """Draw the empty bar."""
        self._account.begin(waiting)
        self._draw("")

    def finished(self, result: Result[Any]) -> None:
        """Draw the bar a little fuller."""
        self._account.finished(result)
        self._draw(f"; {', '.join(kind_of(result.trial)[:2])}")

    def failed(self, trial: Trial, sentence: str) -> None:
        """Print the failure above the bar."""
        self._account.fail(trial)
        self._bar.console.print(failure_line(trial, sentence), markup=False, highlight=False)
        self._draw("")

    def _draw(self, last: str) -> None:
        self._bar.update(
            self._task,
            total=self._account.total,
            completed=self._account.done + self._account.failed,
            description=f"{self._account}{last}",
        )


def failure_line(trial: Trial, sentence: str) -> str:
    """A failure in one line."""
    return f"failed: {trial}: {sentence}"
