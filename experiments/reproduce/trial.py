"""A trial of the paper's grid, its result and the store of those."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.running.result import Result
from experiments.running.store import ResultStore
from experiments.running.trial import Trial


@dataclass(frozen=True, order=True)
class PaperTrial(Trial):
    """Complete description of one run: the same trial gives the same numbers.

    Attributes
    ----------
    dataset : str
        A name of `experiments.datasets`.
    base : str
        The base learner, as the paper's tables call it: "logistic_regression", "naive_bayes" or
        "boosted_trees".
    reading : str
        Reading of the paper: see `experiments.reproduce.readings`.
    scheme : str
        Calibration scheme, as the paper's tables call it: "none", "external_vs", "internal_ps",
        "both_ps", "internal_ir" or "both_ir".
    repeat, fold : int
        Split of the dataset, which also determines the random tree.
    seed : int
        Seeds the splits and the trees; schemes and base learners share them.
    """

    dataset: str
    base: str
    reading: str
    scheme: str
    repeat: int
    fold: int
    seed: int = 0

    def kind(self) -> tuple[str, ...]:
        """Dataset, base learner, scheme and reading."""
        return (self.dataset, self.base, self.scheme, self.reading)

    def __str__(self) -> str:
        return f"{', '.join(self.kind())}, repeat {self.repeat}, fold {self.fold}"


@dataclass(frozen=True)
class PaperResult(Result[PaperTrial]):
    """The numbers of one trial of the paper's grid; see `Result`."""

    @classmethod
    def trial_type(cls) -> type[PaperTrial]:
        """The kind of trial that was run."""
        return PaperTrial


class PaperStore(ResultStore[PaperTrial, PaperResult]):
    """The store of the paper's trials.

    Parameters
    ----------
    path : path
        The file; made where there is none.
    must_exist : bool, default=False
        Raise if the file is missing or empty, instead of making it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from experiments.reproduce.trial import PaperStore
    >>> with tempfile.TemporaryDirectory() as folder, PaperStore(Path(folder) / "results.sqlite") as store:
    ...     len(store.finished())
    0
    """

    result_type = PaperResult
