"""Progress reports on stderr: a line for some work, or one for each stage of a call."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, ClassVar, NamedTuple, Protocol

#: Stages of a fit.
CHOOSING, GROWING, TRAINING, CALIBRATING = "choosing the learner", "growing", "training", "calibrating"
_WIDTH = 72


class Call(NamedTuple):
    """Settings of the call in progress.

    Attributes
    ----------
    kernels : str
        State of kernels, see `dichotomies._kernels.compile`.
    limit : int or None
        Bytes that the call may take beyond its rows, its model and its answer; None without a limit.
    shows_answers : bool
        True if long predictions report their progress.
    """

    kernels: str = "answering"
    limit: int | None = None
    shows_answers: bool = False


CALL: ContextVar[Call] = ContextVar("settings of the call in progress", default=Call())  # noqa: B039 - immutable


def set_call(**settings: Any) -> Token[Call]:
    """Change settings of the call in progress; ``CALL.reset`` takes them back."""
    return CALL.set(CALL.get()._replace(**settings))


def say(text: str) -> None:
    """Write a line to stderr, where progress is reported."""
    _write(f"[dichotomies] {text}", ends=True)


def _write(line: str, *, ends: bool) -> None:
    """Write a line over the unfinished one of a terminal; elsewhere every line ends."""
    is_terminal = sys.stderr.isatty()
    sys.stderr.write(f"\r{line.ljust(_WIDTH)}" if is_terminal else line)
    sys.stderr.write("\n" if ends or not is_terminal else "")
    sys.stderr.flush()


def within(span: tuple[float, float], fraction: float) -> float:
    """Return the number that divides a span at a fraction."""
    return span[0] * (1 - fraction) + span[1] * fraction


class Reporter(Protocol):
    """Receives the fraction of some work that is done."""

    def show(self, fraction: float) -> None:
        """Report the fraction done."""


class Progress:
    """A line on stderr with the fraction of some work that is done.

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
        took = f", took {now - self._begun:.1f} s" if self._finished else ""
        _write(f"[dichotomies] {self.title}: {fraction:4.0%}{took}", ends=self._finished)


class Bar:
    """One line over the stages of a call: what is being done, and the fraction of the stage that is done."""

    _current: ClassVar[Bar | None] = None

    def __init__(self, title: str, patience: float = 0.0) -> None:
        self._line = Progress(title, patience)

    @classmethod
    def current(cls) -> Bar | None:
        """Return the bar of the call that is running; None without one."""
        return cls._current

    @classmethod
    @contextmanager
    def over(cls, title: str, *, shown: bool = True, patience: float = 0.0) -> Iterator[None]:
        """Show one bar until the end of the block; stages of blocks inside it are stages of the same bar."""
        if not shown or Bar._current is not None:
            yield
            return
        bar = Bar._current = cls(title, patience)
        try:
            yield
        finally:
            Bar._current = None
        bar._line.title = title
        bar._line.show(1.0)

    @classmethod
    def stage(cls, name: str) -> None:
        """Begin another stage."""
        if Bar._current is not None:
            Bar._current._line.title = name
            Bar._current.show(0.0)

    def show(self, fraction: float) -> None:
        """Report the fraction of the current stage that is done."""
        self._line.show(min(fraction, 0.99))

    def part(self, title: str, span: tuple[float, float]) -> Reporter:
        """Return a reporter on a part of the current stage."""
        self._line.title = title
        return _Part(self, span)


class _Part(NamedTuple):
    bar: Bar
    span: tuple[float, float]

    def show(self, fraction: float) -> None:
        self.bar.show(within(self.span, fraction))
