"""Availability of datasets: each is fetched once, before many processes read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments import datasets

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from experiments.running.plan import TrialDataset


def missing(subjects: Sequence[TrialDataset], data_dir: Path | None) -> dict[str, str]:
    """The datasets that cannot be had, each with a sentence that says why and what to do.

    Parameters
    ----------
    subjects : sequence of TrialDataset
        Those that are wanted.
    data_dir : path, optional
        The folder of datasets, as in `experiments.datasets.load`.
    """
    reasons = {}
    for subject in subjects:
        if datasets.describe(subject.dataset, data_dir).place in ("download", "by hand"):
            try:
                datasets.load(subject.dataset, data_dir)  # and so keep it where the workers find it
            except (OSError, ValueError) as error:
                reasons[subject.dataset] = str(error)
    return reasons
