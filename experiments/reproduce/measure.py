"""One trial of the paper's grid measured."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from experiments import datasets
from experiments.reproduce import readings
from experiments.reproduce.trial import PaperResult
from experiments.running.measurement import PreparedSplit, columns_of, loaded, split_of
from experiments.running.memory import PeakMemory
from experiments.running.seeds import derived_seed

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.reproduce.trial import PaperTrial


def measure(trial: PaperTrial, *, folds: int = 10, data_dir: Path | None = None) -> PaperResult:
    """Run one trial.

    Parameters
    ----------
    trial : PaperTrial
        Trial to run; the same trial gives the same numbers.
    folds : int, default=10
        Folds of cross-validation, where the dataset has no standard split.
    data_dir : path, optional
        The folder of datasets, as in `experiments.datasets.load`.

    Returns
    -------
    PaperResult
    """
    peak = PeakMemory()
    data = _prepared(trial, folds, data_dir)
    return PaperResult(trial, **columns_of(readings.classifier(trial), data, peak))


def _prepared(trial: PaperTrial, folds: int, data_dir: Path | None) -> PreparedSplit:
    preparation = tuple(sorted(readings.preparation(trial).items()))
    return _prepared_split(trial.dataset, trial.seed, trial.repeat, trial.fold, folds, preparation, data_dir)


@lru_cache(maxsize=1)
def _prepared_split(
    name: str,
    seed: int,
    repeat: int,
    fold: int,
    folds: int,
    preparation: tuple[tuple[str, Any], ...],
    data_dir: Path | None,
) -> PreparedSplit:
    dataset = loaded(name, data_dir)
    split = split_of(dataset, seed=seed, repeat=repeat, fold=fold, folds=folds)
    # one projection for all that share the split
    X_train, X_test = datasets.features(
        dataset, split, **dict(preparation), seed=derived_seed(seed, name, repeat, fold, "projection")
    )
    return PreparedSplit(X_train, dataset.y[split.train_rows], X_test, dataset.y[split.test_rows])
