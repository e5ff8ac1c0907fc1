"""Progress reports on stderr: a line for some work, or one for all stages of a call."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

#: Stages of a fit.
CHOOSING, GROWING, TRAINING, CALIBRATING = "choosing the learner", "growing", "training", "calibrating"
_WIDTH = 72

#: Set while long predictions are to report their progress, see `dichotomies._common.chunks`.
SHOWS_ANSWERS: ContextVar[bool] = ContextVar("shows the progress of answers", default=False)


def say(text: str) -> None:
    """Write a line to stderr, where progress is reported."""
    over = "\r" if sys.stderr.isatty() else ""  # the unfinished line of a terminal
    sys.stderr.write(f"{over}{f'[dichotomies] {text}'.ljust(_WIDTH if over else 0)}\n")
    sys.stderr.flush()


def within(span: tuple[float, float], fraction: float) -> float:
    """Return the number that divides a span at a fraction."""
    return span[0] * (1 - fraction) + span[1] * fraction


class Reporter(Protocol):
    """Receives the fraction of some work that is done."""

    def show(self, fraction: float) -> None:
        """Report the fraction done."""


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
        self.title, self._patience = title, patience
        self._begun = self._shown = time.monotonic()
        self._finished = False

    def show(self, fraction: float) -> None:
        """Report the fraction done; at most every half second, and always the end."""
        now = time.monotonic()
        if self._finished or (fraction < 1 and now - self._shown < 0.5) or now - self._begun < self._patience:
            return
        self._shown, self._finished = now, fraction >= 1
        seconds = now - self._begun
        left = f"{seconds * (1 / max(fraction, 1e-3) - 1):.0f} s left"
        left = left if fraction < 1 else f"took {seconds:.1f} s"
        tty = sys.stderr.isatty()
        line = f"[dichotomies] {self.title}: {fraction:4.0%}, {left}"
        end = "\n" if fraction >= 1 or not tty else ""
        sys.stderr.write(("\r" + line.ljust(_WIDTH) if tty else line) + end)
        sys.stderr.flush()


class Bar:
    """One line of progress over consecutive stages.

    Every stage has an estimate of the seconds it takes. Once it ends, the time it took replaces the estimate,
    and the rest is estimated at the pace so far. The fraction shown is thus one of the whole time, as far
    as that can be known; it never falls.

    Parameters
    ----------
    title : str
        The whole work, named at the end.
    expected : mapping
        Estimated seconds by stage.
    patience : float, default=0
        Seconds before the line appears.
    """

    _current: ContextVar[Bar | None] = ContextVar("bar", default=None)

    def __init__(self, title: str, expected: Mapping[str, float], patience: float = 0.0) -> None:
        self._line, self._left = Progress(title, patience), dict(expected)
        self._stage, self._begun = "", time.monotonic()
        self._spent = self._foreseen = self._fraction = self._shown = 0.0

    @classmethod
    def current(cls) -> Bar | None:
        """Return the bar of the call that is running; None without one."""
        return cls._current.get()

    @classmethod
    @contextmanager
    def over(
        cls, title: str, expected: Mapping[str, float], *, shown: bool = True, patience: float = 0.0
    ) -> Iterator[None]:
        """Show one bar until the end of the block; stages of blocks inside it are parts of the same bar."""
        if not shown:
            yield
        elif (outer := cls.current()) is not None:
            outer._left.update(expected)
            yield
        else:
            bar = cls(title, expected, patience)
            token = cls._current.set(bar)
            try:
                yield
            finally:
                cls._current.reset(token)
            bar._line.title = title
            bar._line.show(1.0)

    @classmethod
    def stage(cls, name: str, expected: Mapping[str, float] | None = None) -> None:
        """End the current stage and begin another; `expected` has seconds of those to come."""
        bar = cls.current()
        if bar is not None:
            bar._begin(name, expected or {})

    def _begin(self, name: str, expected: Mapping[str, float]) -> None:
        now = time.monotonic()
        self._spent += now - self._begun
        self._foreseen += self._left.pop(self._stage, 0.0)
        pace = self._pace()
        self._left.update({stage: seconds / pace for stage, seconds in expected.items()})
        self._stage, self._begun, self._fraction = name, now, 0.0
        self._line.title = name
        self.show(0.0)

    def show(self, fraction: float) -> None:
        """Report the fraction of the current stage that is done."""
        self._fraction = max(self._fraction, fraction)
        pace = self._pace()
        done = self._spent + self._fraction * pace * self._left.get(self._stage, 0.0)
        total = max(self._spent + pace * sum(self._left.values()), 1e-9)
        self._shown = max(self._shown, min(done / total, 0.99))
        self._line.show(self._shown)

    def _pace(self) -> float:
        """Seconds that a second of the estimates has taken so far."""
        if self._foreseen < 1:
            return 1.0
        return min(max(self._spent / self._foreseen, 0.2), 5.0)

    def part(self, title: str, span: tuple[float, float]) -> _Part:
        """Return a reporter on a part of the current stage."""
        self._line.title = title
        return _Part(self, span)


@dataclass(frozen=True)
class _Part:
    bar: Bar
    span: tuple[float, float]

    def show(self, fraction: float) -> None:
        self.bar.show(within(self.span, fraction))
