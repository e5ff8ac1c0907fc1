"""A trial: one classifier, trained on one split of one dataset, with its seed."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields


@dataclass(frozen=True, order=True)
class Trial:
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

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(field.name for field in fields(cls))

    def values(self) -> tuple[str | int, ...]:
        """The fields' values, in the order of `columns`."""
        return astuple(self)
