"""Native libraries: one thread of BLAS per task (`ONE_BLAS_THREAD`), no fork meanwhile (`FORK_GATE`)."""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any

# threadpoolctl is a dependency of scikit-learn itself, so it is always installed.
from threadpoolctl import ThreadpoolController

#: Seconds that a fork waits for other threads to finish the task they are at.
_PATIENCE = 10.0


class _ForkGate:
    """Context of work in native libraries, which may hold locks of their own.

    A child made by ``fork`` has a copy of every lock, but none of the threads that would release it: BLAS
    locks its buffers and its pool of threads, and a child that was made at that moment waits for ever.
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
