"""Costs of the results: trials, sizes, processor time and memory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from experiments.reproduce.readings import BASES
from experiments.reproduce.stand_ins import PAPER_DATASETS, PaperDataset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.reproduce.trial import PaperResult


@dataclass(frozen=True)
class Cost:
    """All trials of one base learner on one dataset.

    Attributes
    ----------
    subject : PaperDataset
    base : str
    n : int
        Number of trials, all schemes together.
    largest : PaperResult
        The one with most training rows, for its sizes: folds differ by a row.
    seconds : float
        Mean processor time of a trial, training and prediction.
    megabytes : float
        The most memory that one of them held.
    """

    subject: PaperDataset
    base: str
    n: int
    largest: PaperResult
    seconds: float
    megabytes: float


def costs(reading: str, results: Sequence[PaperResult]) -> list[Cost]:
    """The costs under one reading, in the order of the paper's tables."""
    found: dict[tuple[str, str], list[PaperResult]] = defaultdict(list)
    for result in results:
        if result.trial.reading == reading:
            found[result.trial.dataset, result.trial.base].append(result)
    return [
        _cost(subject, base, found[subject.dataset, base])
        for subject in PAPER_DATASETS
        for base in BASES
        if (subject.dataset, base) in found
    ]


def _cost(subject: PaperDataset, base: str, results: Sequence[PaperResult]) -> Cost:
    return Cost(
        subject,
        base,
        len(results),
        max(results, key=lambda result: result.n_train),
        fmean(result.seconds for result in results),
        max(result.peak_memory_mb for result in results),
    )
