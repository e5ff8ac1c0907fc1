"""The paper's trials run; one store takes one number of folds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from experiments.reproduce.measure import measure
from experiments.running.pool import run_all

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from experiments.reproduce.trial import PaperStore, PaperTrial
    from experiments.running.pool import RunSummary, Watcher


def run(
    trials: Sequence[PaperTrial],
    store: PaperStore,
    *,
    folds: int = 10,
    n_jobs: int = 1,
    data_dir: Path | None = None,
    watcher: Watcher | None = None,
) -> RunSummary:
    """Run the trials that have no result yet, as `run_all` does.

    Parameters
    ----------
    trials : sequence of PaperTrial
        Trials to run, in this order; trials of one dataset should follow each other.
    store : PaperStore
        Store of earlier and new results.
    folds : int, default=10
        Folds of cross-validation; one store takes one number.
    n_jobs : int, default=1
        Processes.
    data_dir : path, optional
        The folder of datasets, as in `experiments.datasets.load`.
    watcher : Watcher, optional
        Told how the run goes on.

    Returns
    -------
    RunSummary
    """
    store.settle("folds", folds)
    by_folds = partial(measure, folds=folds, data_dir=data_dir)
    return run_all(trials, store, by_folds, n_jobs=n_jobs, watcher=watcher)
