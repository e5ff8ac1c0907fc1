"""Choice of the trials that make up the paper's tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.reproduce import readings
from experiments.reproduce.trial import PaperTrial

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from experiments.reproduce.stand_ins import PaperDataset


@dataclass(frozen=True)
class Protocol:
    """Number of times that every classifier is trained and tested.

    Attributes
    ----------
    repeats : int
        Repeats of cross-validation.
    trees : int
        Random trees where the dataset is split once.
    folds : int
        Folds of cross-validation.
    fold_limit : int
        Number of folds of each repeat that are run, the first ones.
    """

    repeats: int
    trees: int
    folds: int = 10
    fold_limit: int = 10

    def __post_init__(self) -> None:
        if min(self.repeats, self.trees, self.fold_limit) < 1 or self.folds < 2:
            raise ValueError(
                f"Repeats, trees and the limit of folds must be 1 or more, and folds 2 or more; got {self}."
            )

    def splits_of(self, subject: PaperDataset) -> Iterator[tuple[int, int]]:
        """Repeat and fold of every split."""
        if subject.cross_validated:
            for repeat in range(self.repeats):
                yield from ((repeat, fold) for fold in range(min(self.folds, self.fold_limit)))
        else:
            yield from ((repeat, 0) for repeat in range(self.trees))


#: The paper's: ten times ten-fold cross-validation; ten random trees where there is a standard split.
FULL = Protocol(repeats=10, trees=10)
#: For a laptop: ten-fold cross-validation once; one random tree.
QUICK = Protocol(repeats=1, trees=1)


@dataclass(frozen=True)
class PaperChoice:
    """Trials to run: a part of the grid, or all of it.

    Attributes
    ----------
    subjects : sequence of PaperDataset
    bases, schemes, readings : sequence of str
    protocol : Protocol
    seed : int
    """

    subjects: Sequence[PaperDataset]
    bases: Sequence[str]
    schemes: Sequence[str]
    readings: Sequence[str]
    protocol: Protocol
    seed: int = 0

    def trials(self) -> list[PaperTrial]:
        """The trials, those of one dataset and of one split of it following each other.

        Split by split, so that a run that is stopped early has a little of everything.
        """
        return [
            PaperTrial(subject.dataset, base, reading, scheme, repeat, fold, self.seed)
            for subject in self.subjects
            for repeat, fold in self.protocol.splits_of(subject)
            for base in self.bases
            for reading in self.readings
            for scheme in self._schemes_of(base)
        ]

    def includes(self, trial: PaperTrial) -> bool:
        """Return True if all of the trial but its split and reading is chosen."""
        return (
            trial.dataset in {subject.dataset for subject in self.subjects}
            and trial.base in self.bases
            and trial.scheme in self.schemes
            and trial.seed == self.seed
        )

    def _schemes_of(self, base: str) -> Iterable[str]:
        return (scheme for scheme in readings.schemes_of(base) if scheme in self.schemes)
