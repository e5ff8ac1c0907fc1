"""The most memory a piece of work held."""

from __future__ import annotations

import resource
from pathlib import Path

_RESET = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


class PeakMemory:
    """The most memory this process holds from the making of this object on.

    Linux lets a process forget its earlier peak; elsewhere the peak is that of the whole process.

    Examples
    --------
    >>> from experiments.running.memory import PeakMemory
    >>> peak = PeakMemory()
    >>> peak.megabytes() > 1
    True
    """

    def __init__(self) -> None:
        try:
            _RESET.write_text("5")
        except OSError:
            self._since_reset = False
        else:
            self._since_reset = True

    def megabytes(self) -> float:
        """The peak so far, in 2**20 bytes."""
        if self._since_reset:
            for line in _STATUS.read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
