"""Choice of the study's trials, the cheap ones first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.study import limits
from experiments.study.classifiers import LEARNERS, REFERENCE
from experiments.study.trial import StudyTrial

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from experiments.study.trial import StudyStore

_NEVER = float("inf")
#: Seconds of a trial, about, by dataset: logistic regression, naive Bayes, boosted trees. They decide on the
#: order and on what is repeated, and the time left is judged by them at first.
SECONDS = {
    "optdigits": (0.03, 0.02, 0.3),
    "micromass": (0.1, 0.03, 0.6),
    "letter": (0.05, 0.04, 0.4),
    "reuters52": (0.24, 0.08, 3.0),
    "nhcd": (3.5, 0.24, 7.0),
    "clinc150": (0.35, 0.15, 5.0),
    "onet_titles": (3.4, 1.1, _NEVER),
    "omniglot": (6.0, 1.5, 5.5),
    "wordnet": (6.0, 4.0, _NEVER),
    "kanji_fonts": (5.0, 2.5, _NEVER),
}
#: Factor of the time where many trees are judged or deep ones trained.
SLOWNESS = {"best-of-k": 8, "evolved": 50, "single": 8}
#: Repeats of trials that take less than so many seconds; others, and structures that judge trees, run once.
REPEATS, DEAR = 3, 0.7


def seconds_of(kind: tuple[str, ...]) -> float:
    """Seconds of a trial of a kind, about: dataset, base learner, structure and perhaps more."""
    dataset, learner, structure = kind[:3]
    return SECONDS[dataset][LEARNERS.index(learner)] * SLOWNESS.get(structure, 1)


@dataclass(frozen=True)
class StudyDataset:
    """A dataset of the study."""

    dataset: str

    @property
    def title(self) -> str:
        """Title in tables."""
        return self.dataset

    def names(self) -> dict[str, str]:
        """Names for machines."""
        return {"dataset": self.dataset}


@dataclass(frozen=True)
class StudyChoice:
    """Trials to run: a part of the grid, or all of it.

    Attributes
    ----------
    datasets, learners, structures, calibrations : sequence of str
    repeats : int or None
        Number of repeats of everything; None: as `REPEATS` says.
    seed : int
    """

    datasets: Sequence[str]
    learners: Sequence[str]
    structures: Sequence[str]
    calibrations: Sequence[str]
    repeats: int | None = None
    seed: int = 0

    @property
    def subjects(self) -> list[StudyDataset]:
        """The datasets."""
        return [StudyDataset(name) for name in self.datasets]

    def trials(self) -> list[StudyTrial]:
        """The trials that no limit leaves out, so ordered that a study stopped early is of use.

        First everything once, then again; of that, structures that judge many trees last; and before that,
        what is soon done first. Trials that share their data follow each other.
        """
        return sorted(self._all(), key=self._turn)

    def _all(self) -> Iterator[StudyTrial]:
        for dataset, learner in ((d, b) for d in self.datasets for b in self.learners):
            for structure in self.structures:
                if not limits.left_out(dataset, learner, structure):
                    yield from (
                        StudyTrial(dataset, learner, structure, calibration, repeat, self.seed)
                        for repeat in range(self._repeats_of(dataset, learner, structure))
                        for calibration in self.calibrations
                    )

    def _repeats_of(self, dataset: str, learner: str, structure: str) -> int:
        dear = structure in limits.JUDGING or seconds_of((dataset, learner, structure)) >= DEAR
        return self.repeats or (1 if dear else REPEATS)

    def _turn(self, trial: StudyTrial) -> tuple[bool, bool, float, int]:
        """Sort key of a trial; sorting is stable."""
        judges = trial.structure in limits.JUDGING
        return trial.repeat > 0, judges, seconds_of((trial.dataset, trial.learner, REFERENCE)), trial.repeat

    def settle(self, store: StudyStore) -> None:
        """Fix the limits of what is run for the whole store, or refuse where they were others."""
        for dataset, learner in ((d, b) for d in self.datasets for b in self.learners):
            for what, most in (
                ("rows", limits.most_rows(dataset, learner)),
                ("classes", limits.most_classes(dataset, learner)),
            ):
                if most is not None:
                    store.settle(f"{what} at most of {dataset} for {learner}", most)
