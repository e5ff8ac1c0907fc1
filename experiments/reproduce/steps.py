"""The steps of the command: choose trials, run those that are left, show the tables."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import typer
from joblib import effective_n_jobs
from rich.console import Console

from dichotomies.cli.failures import tell
from experiments.pages import RENDERERS, markdown, regions, terminal
from experiments.reproduce import readings, runner
from experiments.reproduce.choice import FULL, QUICK, PaperChoice, Protocol
from experiments.reproduce.grids import grids
from experiments.reproduce.stand_ins import PAPER_DATASETS, USUAL
from experiments.reproduce.tables import TABLES
from experiments.reproduce.trial import PaperStore
from experiments.running import command
from experiments.running.command import chosen
from experiments.running.plan import plan_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from experiments.pages.grid import Grid
    from experiments.reproduce.trial import PaperResult

_SUFFIXES = {".md": "markdown", ".tex": "latex", ".html": "html", ".json": "json"}


def choice_of(
    *,
    tables: Collection[str] | None,
    datasets: Collection[str] | None,
    bases: Collection[str] | None,
    schemes: Collection[str] | None,
    readings: Sequence[str],
    protocol: Protocol,
    seed: int,
    rare: bool = False,
) -> PaperChoice:
    """The part of the grid that was asked for: of each list all, where there is none.

    The paper's large datasets, which are rarely at hand, are among them only where they are named, or
    with `rare`.
    """
    in_tables = {base for name in chosen(tables, TABLES, "--table") for base in TABLES[name].bases}
    names = chosen(datasets, [subject.dataset for subject in PAPER_DATASETS], "--dataset")
    return PaperChoice(
        subjects=[each for each in (PAPER_DATASETS if datasets or rare else USUAL) if each.dataset in names],
        bases=[each for each in chosen(bases, _BASES, "--base") if each in in_tables],
        schemes=chosen(schemes, _SCHEMES, "--scheme"),
        readings=readings,
        protocol=protocol,
        seed=seed,
    )


_BASES, _SCHEMES = readings.BASES, tuple(readings.SCHEMES)


def readings_of(as_printed: bool, as_numbers_imply: bool) -> list[str]:
    """The readings that were asked for; by default what the numbers imply."""
    printed = [readings.AS_PRINTED] if as_printed else []
    implied = [readings.AS_NUMBERS_IMPLY] if as_numbers_imply or not as_printed else []
    return printed + implied


def protocol_of(full: bool, repeats: int | None, folds: int, fold_limit: int | None) -> Protocol:
    """The paper's protocol or the quick one, with what was asked for otherwise."""
    usual = FULL if full else QUICK
    return Protocol(repeats or usual.repeats, repeats or usual.trees, folds, fold_limit or folds)


def form_of(form: str | None, output: Path | None) -> str:
    """The format asked for, or the one that the name of the file ends in, or that of a terminal."""
    if form is None:
        return _SUFFIXES.get(output.suffix, "terminal") if output else "terminal"
    return chosen([form], RENDERERS, "--format")[0]


def check_places(output: Path | None, update: Path | None) -> None:
    """Refuse, before anything is run, what could not be written when it is finished."""
    if output is not None and not output.absolute().parent.is_dir():
        raise FileNotFoundError(f"{output} cannot be written: make the folder {output.parent} first.")
    if output is not None and (output.is_dir() or not regions.may_write(output)):
        raise PermissionError(f"{output} cannot be written: name another file, or one that is yours.")
    if update is not None:
        regions.check_page(update)


def tell_plan(choice: PaperChoice, path: Path, jobs: int, *, as_json: bool) -> None:
    """Say what would be run, without making a file."""
    known = _known(path, choice.protocol.folds)
    command.tell_plan(plan_of(choice, known, effective_n_jobs(jobs)), as_json=as_json)


def _known(path: Path, folds: int) -> list[PaperResult]:
    """Stored results; none if a run would make the store; raise if a run would refuse it."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return []
    with PaperStore(path, must_exist=True) as store:
        store.check("folds", folds)
        return store.rows()


def run(choice: PaperChoice, path: Path, jobs: int, data_dir: Path | None) -> int:
    """Run what is not finished; returns the exit code."""
    possible, n_jobs = command.possible(choice, data_dir), effective_n_jobs(jobs)
    with PaperStore(path) as store:
        run = partial(
            runner.run, possible, store, folds=choice.protocol.folds, n_jobs=n_jobs, data_dir=data_dir
        )
        return command.run_watched(run, store, n_jobs)


def grids_of(
    choice: PaperChoice,
    path: Path,
    *,
    tables: Collection[str] | None,
    all_readings: bool,
    any_seed: bool,
) -> list[Grid]:
    """The tables of all stored results that are of the choice, also of splits that it does not have.

    With `any_seed`, the seed is that of the stored results, of which there must be one.
    """
    with PaperStore(path, must_exist=True) as store:
        stored = store.rows()
    if any_seed:
        choice = replace(choice, seed=_only_seed(stored, choice, path))
    results = [each for each in stored if choice.includes(each.trial)]
    kinds = [TABLES[name] for name in chosen(tables, TABLES, "--table")]
    found = grids(results, kinds, readings.READINGS if all_readings else choice.readings)
    if not found:
        raise ValueError(_nothing_to_show(stored, path))
    return found


def _only_seed(stored: Sequence[PaperResult], choice: PaperChoice, path: Path) -> int:
    """The seed of the results that are of the choice but for their seed."""
    found = [each.trial for each in stored]
    seeds = sorted({each.seed for each in found if replace(choice, seed=each.seed).includes(each)})
    if len(seeds) > 1:
        raise typer.BadParameter(
            f"the results in {path} are of seeds {_listed(seeds)}; choose one to show.", param_hint="--seed"
        )
    return seeds[0] if seeds else choice.seed


def _nothing_to_show(stored: Sequence[PaperResult], path: Path) -> str:
    if not stored:
        return f"There is nothing to show: {path} holds no results yet."
    datasets, bases, schemes, read, seeds = (
        _listed(sorted({getattr(each.trial, name) for each in stored}))
        for name in ("dataset", "base", "scheme", "reading", "seed")
    )
    return (
        f"There is nothing to show: the {len(stored)} results in {path} are of other things than were asked "
        f"for, namely of datasets {datasets}; base learners {bases}; schemes {schemes}; readings {read}; "
        f"seeds {seeds}."
    )


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def show(
    tables: Sequence[Grid], form: str, output: Path | None, update: Path | None, *, also_print: bool
) -> None:
    """Print the tables, or write them where they were asked for.

    A page that is updated takes the place of printing, unless they are to be printed also.
    """
    prints = output is None and (update is None or also_print)
    if update is not None:
        regions.update_page(update, {each.name: markdown.table(each) for each in tables})
    if output is not None:
        output.write_text(RENDERERS[form](tables), encoding="utf-8")
        tell(f"Wrote {output}.")
    elif prints and form == "terminal":
        print(_for_this_terminal(tables), end="")
    elif prints:
        print(RENDERERS[form](tables), end="")


def _for_this_terminal(tables: Sequence[Grid]) -> str:
    console = Console()
    if not console.is_terminal:
        return terminal.render(tables)
    return terminal.render(tables, colour=True, width=console.width)
