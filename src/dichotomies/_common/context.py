"""`Context`: random numbers, workers and progress reports of one call of `fit`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dichotomies._common.parallel import Progress


@dataclass(frozen=True)
class Context:
    """Random numbers, workers and progress reports of one call.

    Attributes
    ----------
    rng : RandomState
        Source of all randomness; None if nothing is random.
    n_jobs : int or None
        Number of workers, as everywhere in scikit-learn. No result depends on it.
    verbose : bool
        Report progress on stderr.
    title : str
        Prefix of every progress report, such as ``"tree 2 of 10: "``.
    """

    rng: Any = None
    n_jobs: int | None = None
    verbose: bool = False
    title: str = ""

    def titled(self, title: str) -> Context:
        """Copy with a longer title prefix."""
        return replace(self, title=self.title + title)

    def progress(self, work: str) -> Progress | None:
        """Progress report on some work; None if not verbose."""
        return Progress(self.title + work) if self.verbose else None
