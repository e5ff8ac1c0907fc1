"""A trial: one classifier, trained on one split of one dataset, with its seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass, fields


class AnyTrial(ABC):
    """What every trial is: a frozen dataclass of texts and whole numbers, the key of its result.

    Subclasses have at least the fields `dataset`, `repeat` and `seed`.
    """

    dataset: str
    repeat: int
    seed: int

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    def values(self) -> tuple[str | int, ...]:
        """The fields' values, in the order of `columns`."""
        return astuple(self)  # type: ignore[call-overload, no-any-return]

    @abstractmethod
    def kind(self) -> tuple[str, ...]:
        """What the time it takes depends on, the weightiest first: the dataset and the learner lead."""

    @abstractmethod
    def __str__(self) -> str:
        """All of it but the seed, in a line."""


@dataclass(frozen=True, order=True)
class Trial(AnyTrial):
    """What is run, completely: the same trial gives the same numbers.

    Attributes
    ----------
    dataset : str
        A name of `dichotomies.datasets`.
    base : str
        The base learner, as the paper's tables call it: "logistic_regression", "naive_bayes" or
        "boosted_trees".
    reading : str
        Which reading of the paper: see `dichotomies.experiments.readings`.
    scheme : str
        How it is calibrated, as the paper's tables call it: "none", "external_vs", "internal_ps",
        "both_ps", "internal_ir" or "both_ir".
    repeat, fold : int
        Which split of the dataset, and so which random tree.
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
