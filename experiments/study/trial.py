"""A trial of the study: one structure, base learner and calibration on one split of one dataset."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.running.result import Result
from experiments.running.store import ResultStore
from experiments.running.trial import Trial


@dataclass(frozen=True, order=True)
class StudyTrial(Trial):
    """Complete description of one run: the same trial gives the same numbers.

    Attributes
    ----------
    dataset : str
        A name of `experiments.datasets`.
    learner : str
        The base learner: "logistic_regression", "naive_bayes" or "boosted_trees".
    structure : str
        Structure of the tree: a name of `experiments.study.classifiers.structures`.
    calibration : str
        Calibration: "none", "internal", "external" or "both".
    repeat : int
        Number of the hold-out, where the dataset has no test part of its own, and of the random tree.
    seed : int
        Seeds all of it; structures share the rows, and calibrations share the trees.
    """

    dataset: str
    learner: str
    structure: str
    calibration: str
    repeat: int
    seed: int = 0

    def kind(self) -> tuple[str, ...]:
        """Dataset, base learner, structure and calibration."""
        return (self.dataset, self.learner, self.structure, self.calibration)


@dataclass(frozen=True)
class StudyResult(Result[StudyTrial]):
    """The numbers of one trial of the study: those of `Result`, and two more.

    Attributes
    ----------
    max_depth : int
        Depth of the tree's deepest leaf.
    grow_seconds : float
        Processor time of growing the tree, which is a part of `fit_seconds`.
    """

    max_depth: int
    grow_seconds: float

    @classmethod
    def trial_type(cls) -> type[StudyTrial]:
        """The kind of trial that was run."""
        return StudyTrial


class StudyStore(ResultStore[StudyTrial, StudyResult]):
    """The store of the trials."""

    result_type = StudyResult
