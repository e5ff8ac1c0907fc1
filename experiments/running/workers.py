"""Worker processes that leave no trace: silent when interrupted, gone when their parent is."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds between looks at the parent.
_EVERY = 1.0


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Processes started inside ignore Ctrl-C, which reaches them too: their parent ends them."""
    if threading.current_thread() is not threading.main_thread():  # only that one may set handlers
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@cache
def depend_on(parent: int) -> None:
    """End this process soon after its parent has ended, however that came about.

    Parameters
    ----------
    parent : int
        The parent's process id; nothing happens in the parent itself.
    """
    if os.getpid() != parent:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_EVERY)
    os._exit(1)  # nobody is left to hand results to
