"""`FORK_GATE`: processes are forked only while no thread is inside native code of ours."""

from __future__ import annotations

import os
import threading

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
