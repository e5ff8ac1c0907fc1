"""`ONE_BLAS_THREAD`: one thread of BLAS per task, because parallelism is over tasks."""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any

# threadpoolctl is a dependency of scikit-learn itself, so it is always installed.
from threadpoolctl import ThreadpoolController

from dichotomies._common.forking import FORK_GATE


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
