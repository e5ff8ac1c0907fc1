"""A trial: one classifier, trained on one split of one dataset, with its seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, fields

#: The base learners of all experiments: their names in stores and options, and their titles in tables.
BASE_LEARNERS = {
    "logistic_regression": "logistic regression",
    "naive_bayes": "naive Bayes",
    "boosted_trees": "boosted trees",
}


class Trial(ABC):
    """A frozen dataclass of texts and whole numbers, the key of its result.

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
        """Properties that its running time depends on, the dataset and the learner first."""

    def __str__(self) -> str:
        """All of it but the seed, in a line."""
        return f"{', '.join(self.kind())}, repeat {self.repeat}"
