"""The steps of the command: choose trials, run those that are left, show what they say."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from joblib import effective_n_jobs

from dichotomies.cli.failures import tell
from experiments.pages import json, regions, terminal
from experiments.running import command
from experiments.running.command import chosen
from experiments.running.plan import plan_of
from experiments.running.pool import run_all
from experiments.study import classifiers, limits
from experiments.study.answers import answers
from experiments.study.choice import StudyChoice, seconds_of
from experiments.study.comparisons import Comparisons
from experiments.study.contents import contents, write_files
from experiments.study.grids import grids
from experiments.study.measure import measure
from experiments.study.trial import StudyStore

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from experiments.study.trial import StudyResult

#: The store's name in the folder of the study.
STORE = "results.sqlite"


def choice_of(
    *,
    datasets: Collection[str] | None = None,
    learners: Collection[str] | None = None,
    structures: Collection[str] | None = None,
    calibrations: Collection[str] | None = None,
    repeats: int | None = None,
    seed: int = 0,
) -> StudyChoice:
    """The part of the study that was asked for: of each list all, where there is none."""
    return StudyChoice(
        chosen(datasets, limits.DATASETS, "--dataset"),
        chosen(learners, classifiers.LEARNERS, "--learner"),
        chosen(structures, classifiers.structures(), "--structure"),
        chosen(calibrations, classifiers.CALIBRATIONS, "--calibration"),
        repeats,
        seed,
    )


def tell_plan(choice: StudyChoice, folder: Path, jobs: int, *, as_json: bool) -> None:
    """Say what would be run, without making a file."""
    path = folder / STORE
    known = stored(path) if path.exists() and path.stat().st_size else []
    command.tell_plan(plan_of(choice, known, effective_n_jobs(jobs), seconds_of), as_json=as_json)


def stored(path: Path) -> list[StudyResult]:
    """All results of a store that is there."""
    with StudyStore(path, must_exist=True) as store:
        return store.rows()


def run(choice: StudyChoice, folder: Path, jobs: int, minutes: float | None, data_dir: Path | None) -> int:
    """Run what is not finished; returns the exit code."""
    possible, n_jobs = command.possible(choice, data_dir), effective_n_jobs(jobs)
    folder.mkdir(parents=True, exist_ok=True)
    with StudyStore(folder / STORE) as store:
        choice.settle(store)
        run = partial(
            run_all,
            possible,
            store,
            partial(measure, data_dir=data_dir),
            n_jobs=n_jobs,
            seconds=None if minutes is None else 60 * minutes,
        )
        return command.run_watched(run, store, n_jobs, seconds_of)


def show(seed: int, folder: Path, update: Path | None, *, as_json: bool) -> None:
    """Draw the pictures, and print the tables or put them into a page: of all that the store holds."""
    results = [each for each in stored(folder / STORE) if each.trial.seed == seed]
    if not results:
        raise ValueError(f"There is nothing to show: {folder / STORE} holds no results of seed {seed}.")
    found = Comparisons(results)
    written = write_files(found, folder)
    tell(f"Wrote {', '.join(path.name for path in written)} in {folder}.")
    if update is not None:
        regions.update_page(update, contents(found))
    if as_json:
        print(json.render(grids(found)), end="")
    elif update is None:
        print(f"{answers(found)}\n{terminal.render(grids(found))}", end="")
