"""The trials of the study of defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.defaults.trial import DefaultsTrial
from experiments.defaults.ways import BEFORE, CANDIDATES, FLAT, LEARNERS, NOW, WAYS
from experiments.study.choice import StudyDataset

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Datasets with boosted trees, one clone for each node, which take minutes elsewhere.
BOOSTED = ("optdigits", "letter")
#: Rows of each class, in the part with few.
FEW_ROWS = (2, 5, 15)


@dataclass(frozen=True)
class DefaultsChoice:
    """Trials to run: of some datasets, all base learners and ways.

    Attributes
    ----------
    datasets : sequence of str
    repeats : int
        Number of splits of each.
    """

    datasets: Sequence[str]
    repeats: int

    @property
    def subjects(self) -> list[StudyDataset]:
        """The datasets."""
        return [StudyDataset(name) for name in self.datasets]

    def trials(self) -> list[DefaultsTrial]:
        """All trials, everything once before anything again; those that share their rows together."""
        return [
            DefaultsTrial(dataset, learner, way, rows_per_class, repeat)
            for repeat in range(self.repeats)
            for dataset in self.datasets
            for learner in LEARNERS
            for rows_per_class in (0, *(FEW_ROWS if repeat == 0 else ()))
            for way in WAYS
            if _is_run(dataset, learner, way, rows_per_class)
        ]


def _is_run(dataset: str, learner: str, way: str, rows_per_class: int) -> bool:
    if rows_per_class:
        return learner != "boosted_trees" and way in (NOW, BEFORE, *CANDIDATES)
    if learner == "boosted_trees":
        return dataset in BOOSTED and way != FLAT
    return way != FLAT or learner == "logistic_regression"
