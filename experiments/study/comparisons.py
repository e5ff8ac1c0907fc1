"""The study's results compared: with the random tree, and with the same tree before calibration."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean, geometric_mean, median
from typing import TYPE_CHECKING, NamedTuple

from scipy.stats import rankdata, spearmanr

from experiments.study.classifiers import CALIBRATIONS, LEARNERS, REFERENCE
from experiments.study.limits import DATASETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from experiments.study.trial import StudyResult

#: Numbers below this count as this where one is divided by another: an NLL can be 0.
_LEAST = 1e-12
#: Trees that a correlation is made of, at least.
_ENOUGH = 5


class Key(NamedTuple):
    """Properties of a trial that its repeats share."""

    dataset: str
    learner: str
    structure: str
    calibration: str


class Change(NamedTuple):
    """Change of the NLL by a calibration: number of cases, those with a lower NLL, and the median change."""

    datasets: int
    lowered: int
    median: float


class Comparisons:
    """Results by what was run, and numbers made of them.

    Parameters
    ----------
    results : iterable of StudyResult
        Of one seed.
    """

    def __init__(self, results: Iterable[StudyResult]) -> None:
        self._found: dict[Key, dict[int, StudyResult]] = defaultdict(dict)
        for result in results:
            self._found[Key(*result.trial.kind())][result.trial.repeat] = result
        self.datasets = self._present(DATASETS, 0)
        self.learners = self._present(LEARNERS, 1)
        structures = sorted({key.structure for key in self._found})
        self.structures = sorted(structures, key=lambda name: name != REFERENCE)
        self.calibrations = self._present(tuple(CALIBRATIONS), 3)

    def _present(self, names: Sequence[str], place: int) -> list[str]:
        found = {key[place] for key in self._found}
        return [name for name in names if name in found]

    def __contains__(self, key: Key) -> bool:
        return key in self._found

    def combinations(self) -> list[Key]:
        """All that was run, in the order of the tables."""
        orders = (self.datasets, self.learners, self.structures, self.calibrations)
        return sorted(
            self._found, key=lambda key: [order.index(name) for order, name in zip(orders, key, strict=True)]
        )

    def results(self, key: Key) -> list[StudyResult]:
        """The repeats of something, in their order."""
        found = self._found.get(key, {})
        return [found[repeat] for repeat in sorted(found)]

    def mean(self, key: Key, metric: str) -> float:
        """The mean of a column over the repeats."""
        return fmean(getattr(result, metric) for result in self.results(key))

    def relative(self, key: Key, other: Key, metric: str = "nll") -> float | None:
        """The median over their common repeats of one's number divided by the other's; None without any."""
        pairs = [(getattr(a, metric), getattr(b, metric)) for a, b in self._pairs(key, other)]
        return median(max(a, _LEAST) / max(b, _LEAST) for a, b in pairs) if pairs else None

    def difference(self, key: Key, other: Key, metric: str) -> float | None:
        """The mean over their common repeats of one's number less the other's; None without any."""
        pairs = self._pairs(key, other)
        return fmean(getattr(a, metric) - getattr(b, metric) for a, b in pairs) if pairs else None

    def _pairs(self, key: Key, other: Key) -> list[tuple[StudyResult, StudyResult]]:
        if key not in self._found or other not in self._found:
            return []
        ours, theirs = self._found[key], self._found[other]
        return [(ours[repeat], theirs[repeat]) for repeat in sorted(ours.keys() & theirs.keys())]

    def to_random(self, key: Key, metric: str = "nll") -> float | None:
        """Relative to the random tree of the same dataset, base learner, calibration and repeat."""
        return self.relative(key, key._replace(structure=REFERENCE), metric)

    def gain(self, key: Key) -> float | None:
        """The relative change of the NLL by calibration of the same tree: below 0 where it is lower."""
        ratio = self.relative(key, key._replace(calibration="none"))
        return None if ratio is None else ratio - 1

    def change(self, learners: Sequence[str], structures: Sequence[str], calibration: str) -> Change | None:
        """Change of the NLL by a calibration over all datasets; None where nothing is known."""
        keys = (
            Key(dataset, learner, structure, calibration)
            for dataset in self.datasets
            for learner in learners
            for structure in structures
        )
        gains = [gain for gain in map(self.gain, keys) if gain is not None]
        if not gains:
            return None
        return Change(len(gains), sum(gain < 0 for gain in gains), median(gains))

    def depth_correlation(self, calibration: str) -> float | None:
        """Rank correlation of mean depth and gain among trees of a dataset and base learner: the median."""
        found = []
        for dataset in self.datasets:
            for learner in self.learners:
                keys = [Key(dataset, learner, each, calibration) for each in self.structures]
                gains = {key: gain for key in keys if (gain := self.gain(key)) is not None}
                depths = [self.mean(key, "mean_depth") for key in gains]
                if len(gains) >= _ENOUGH and len(set(depths)) > 1:
                    found.append(float(spearmanr(depths, list(gains.values())).statistic))
        return median(found) if found else None

    def means_to_random(self) -> dict[str, float]:
        """Geometric mean of the NLL relative to random trees, of structures run wherever those were."""
        cases = [key for key in self._found if key.structure == REFERENCE]
        ratios = {
            structure: [self.to_random(key._replace(structure=structure)) for key in cases]
            for structure in self.structures
        }
        return {
            structure: geometric_mean([ratio for ratio in found if ratio is not None])
            for structure, found in ratios.items()
            if found and None not in found
        }

    def ranks(self, learner: str, calibration: str) -> dict[str, float]:
        """Mean rank by NLL relative to random trees, 1 the best, of structures run on every dataset."""
        datasets = [each for each in self.datasets if Key(each, learner, REFERENCE, calibration) in self]
        ratios = {
            structure: [self.to_random(Key(each, learner, structure, calibration)) for each in datasets]
            for structure in self.structures
        }
        complete = {name: found for name, found in ratios.items() if found and None not in found}
        by_dataset = [rankdata(column) for column in zip(*complete.values(), strict=True)]
        return {
            structure: fmean(float(ranks[place]) for ranks in by_dataset)
            for place, structure in enumerate(complete)
        }
