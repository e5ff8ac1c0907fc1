"""A trial of the study of defaults: one way to calibrate on one split of one dataset."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.running.result import Result
from experiments.running.store import ResultStore
from experiments.running.trial import Trial


@dataclass(frozen=True, order=True)
class DefaultsTrial(Trial):
    """Complete description of one run: the same trial gives the same numbers.

    Attributes
    ----------
    dataset : str
        A name of `experiments.datasets`.
    learner : str
        The base learner, a name of `experiments.defaults.ways.LEARNERS`.
    way : str
        The calibration, a name of `experiments.defaults.ways.WAYS`.
    rows_per_class : int
        Training rows of each class, drawn at random; 0 for as many as the study takes of the dataset.
    repeat : int
        Number of the split, of the rows drawn from it, and of the tree.
    seed : int
        Seeds all of it; ways share the rows and the tree.
    """

    dataset: str
    learner: str
    way: str
    rows_per_class: int
    repeat: int
    seed: int = 0

    def kind(self) -> tuple[str, ...]:
        """Dataset, base learner, way and rows of a class."""
        return (self.dataset, self.learner, self.way, str(self.rows_per_class or "all"))


@dataclass(frozen=True)
class DefaultsResult(Result[DefaultsTrial]):
    """The numbers of one trial: those of `Result`, and three more.

    Attributes
    ----------
    reported_nll : float
        Out-of-fold NLL that the classifier reports of its calibration; -1 without one.
    chosen : str
        The pair of calibrators.
    calibrated_ece : float
        Calibration error to expect of as many test rows whose classes are drawn from the probabilities.
    """

    reported_nll: float
    chosen: str
    calibrated_ece: float

    @classmethod
    def trial_type(cls) -> type[DefaultsTrial]:
        """The kind of trial that was run."""
        return DefaultsTrial


class DefaultsStore(ResultStore[DefaultsTrial, DefaultsResult]):
    """The store of the trials."""

    result_type = DefaultsResult
