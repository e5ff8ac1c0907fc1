"""What ``dichotomies reproduce`` does: choose trials, run those that are left, show the tables."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import typer
from joblib import effective_n_jobs
from rich.console import Console

from dichotomies.cli.printing import print_json, tell
from dichotomies.experiments import availability, grid, outcome, page, readings, runner
from dichotomies.experiments.plan import plan_of
from dichotomies.experiments.progress import Account, BarWatcher, LineWatcher
from dichotomies.experiments.render import RENDERERS, markdown, terminal
from dichotomies.experiments.store import Store
from dichotomies.experiments.subjects import SUBJECTS, USUAL
from dichotomies.experiments.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from dichotomies.experiments.layout import Grid
    from dichotomies.experiments.result import Result
    from dichotomies.experiments.trial import Trial

_INTERRUPTED = 130
_SUFFIXES = {".md": "markdown", ".tex": "latex", ".html": "html", ".json": "json"}


def choice_of(
    *,
    tables: Collection[str] | None,
    datasets: Collection[str] | None,
    bases: Collection[str] | None,
    schemes: Collection[str] | None,
    readings: Sequence[str],
    protocol: grid.Protocol,
    seed: int,
    rare: bool = False,
) -> grid.Choice:
    """The part of the grid that was asked for: of each list all, where there is none.

    The paper's large datasets, which are rarely at hand, are among them only where they are named, or
    with `rare`.
    """
    in_tables = {base for name in _chosen(tables, TABLES, "--table") for base in TABLES[name].bases}
    names = _chosen(datasets, [subject.dataset for subject in SUBJECTS], "--dataset")
    return grid.Choice(
        subjects=[each for each in (SUBJECTS if datasets or rare else USUAL) if each.dataset in names],
        bases=[each for each in _chosen(bases, _BASES, "--base") if each in in_tables],
        schemes=_chosen(schemes, _SCHEMES, "--scheme"),
        readings=readings,
        protocol=protocol,
        seed=seed,
    )


_BASES, _SCHEMES = readings.BASES, tuple(readings.SCHEMES)


def _chosen(values: Collection[str] | None, accepted: Collection[str], option: str) -> list[str]:
    """What was asked for, in the usual order; all where nothing was."""
    for value in values or ():
        if value not in accepted:
            raise typer.BadParameter(
                f"{value!r} is not known; choose from {', '.join(accepted)}.", param_hint=option
            )
    return [each for each in accepted if not values or each in values]


def readings_of(as_printed: bool, as_numbers_imply: bool) -> list[str]:
    """The readings that were asked for; by default what the numbers imply."""
    printed = [readings.AS_PRINTED] if as_printed else []
    implied = [readings.AS_NUMBERS_IMPLY] if as_numbers_imply or not as_printed else []
    return printed + implied


def protocol_of(full: bool, repeats: int | None, folds: int, fold_limit: int | None) -> grid.Protocol:
    """The paper's protocol or the quick one, with what was asked for otherwise."""
    usual = grid.FULL if full else grid.QUICK
    return grid.Protocol(repeats or usual.repeats, repeats or usual.trees, folds, fold_limit or folds)


def form_of(form: str | None, output: Path | None) -> str:
    """The format asked for, or the one that the name of the file ends in, or that of a terminal."""
    if form is None:
        return _SUFFIXES.get(output.suffix, "terminal") if output else "terminal"
    return _chosen([form], RENDERERS, "--format")[0]


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that says nothing."""
    if jobs == 0:
        raise typer.BadParameter(
            "0 processes run nothing; ask for 1 or more, or for -1: one for each core.", param_hint="--jobs"
        )


def check_places(output: Path | None, update: Path | None) -> None:
    """Refuse, before anything is run, what could not be written when it is finished."""
    if output is not None and not output.absolute().parent.is_dir():
        raise FileNotFoundError(f"{output} cannot be written: make the folder {output.parent} first.")
    if output is not None and (output.is_dir() or not _may_write(output)):
        raise PermissionError(f"{output} cannot be written: name another file, or one that is yours.")
    if update is not None:
        page.updated(_text_of(update), {})  # raises where a region has no end
        if not _may_write(update):
            raise PermissionError(f"The page {update} cannot be written to: see that the file is yours.")


def _may_write(path: Path) -> bool:
    return os.access(path if path.exists() else path.absolute().parent, os.W_OK)


def _text_of(path: Path) -> str:
    """A page with its line ends as they are."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no page {path} to update: name a Markdown file that marks tables.")
    return path.read_bytes().decode("utf-8")


def tell_plan(choice: grid.Choice, path: Path, jobs: int, *, as_json: bool) -> None:
    """Say what would be run, without making a file."""
    plan = plan_of(choice, _known(path, choice.protocol.folds), effective_n_jobs(jobs))
    if as_json:
        print_json(plan.document())
    else:
        print(plan)


def _known(path: Path, folds: int) -> list[Result]:
    """What the store holds; nothing where a run would make it, an error where a run would refuse it."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return []
    with Store(path, must_exist=True) as store:
        store.check("folds", folds)
        return store.rows()


def run(choice: grid.Choice, path: Path, jobs: int, data_dir: Path | None) -> int:
    """Run what is not finished; returns the exit code."""
    trials, n_jobs = _possible_trials(choice, data_dir), effective_n_jobs(jobs)
    with Store(path) as store, _watcher(Account(store.rows(), n_jobs)) as watcher:
        try:
            summary = runner.run(
                trials, store, folds=choice.protocol.folds, n_jobs=n_jobs, data_dir=data_dir, watcher=watcher
            )
        except KeyboardInterrupt:
            tell(f"Stopped. Everything finished is in {path}: the same command goes on from there.")
            raise typer.Exit(_INTERRUPTED) from None
    again = ": start again to try those once more." if summary.failed else "."
    tell(f"{summary.done} trials run, {summary.already} finished before, {summary.failed} failed{again}")
    return 1 if summary.failed or not trials else 0


def _possible_trials(choice: grid.Choice, data_dir: Path | None) -> list[Trial]:
    """The trials whose datasets can be had; of the other datasets, say why not."""
    reasons = availability.missing(choice.subjects, data_dir)
    for name, reason in reasons.items():
        tell(f"Without {name}: {reason}")
    return [trial for trial in choice.trials() if trial.dataset not in reasons]


def _watcher(account: Account) -> BarWatcher | LineWatcher:
    console = Console(stderr=True)
    return BarWatcher(account, console) if console.is_terminal else LineWatcher(account)


def grids_of(
    choice: grid.Choice,
    path: Path,
    *,
    tables: Collection[str] | None,
    all_readings: bool,
    any_seed: bool,
) -> list[Grid]:
    """The tables of all stored results that are of the choice, also of splits that it does not have.

    With `any_seed`, the seed is that of the stored results, of which there must be one.
    """
    with Store(path, must_exist=True) as store:
        stored = store.rows()
    if any_seed:
        choice = replace(choice, seed=_only_seed(stored, choice, path))
    results = [each for each in stored if choice.includes(each.trial)]
    kinds = [TABLES[name] for name in _chosen(tables, TABLES, "--table")]
    grids = outcome.grids(results, kinds, readings.READINGS if all_readings else choice.readings)
    if not grids:
        raise ValueError(_nothing_to_show(stored, path))
    return grids


def _only_seed(stored: Sequence[Result], choice: grid.Choice, path: Path) -> int:
    """The seed of the results that are of the choice but for their seed."""
    trials = [each.trial for each in stored]
    seeds = sorted({each.seed for each in trials if replace(choice, seed=each.seed).includes(each)})
    if len(seeds) > 1:
        raise typer.BadParameter(
            f"the results in {path} are of seeds {_listed(seeds)}; choose one to show.", param_hint="--seed"
        )
    return seeds[0] if seeds else choice.seed


def _nothing_to_show(stored: Sequence[Result], path: Path) -> str:
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
    grids: Sequence[Grid], form: str, output: Path | None, update: Path | None, *, also_print: bool
) -> None:
    """Print the tables, or write them where they were asked for.

    A page that is updated takes the place of printing, unless they are to be printed also.
    """
    prints = output is None and (update is None or also_print)
    if update is not None:
        _update(update, {each.name: markdown.table(each) for each in grids})
    if output is not None:
        output.write_text(RENDERERS[form](grids), encoding="utf-8")
        tell(f"Wrote {output}.")
    elif prints and form == "terminal":
        print(_for_this_terminal(grids), end="")
    elif prints:
        print(RENDERERS[form](grids), end="")


def _for_this_terminal(grids: Sequence[Grid]) -> str:
    console = Console()
    if not console.is_terminal:
        return terminal.render(grids)
    return terminal.render(grids, colour=True, width=console.width)


def _update(path: Path, contents: dict[str, str]) -> None:
    text = _text_of(path)
    names = page.regions(text)
    path.write_bytes(page.updated(text, contents).encode("utf-8"))
    missing = [name for name in names if name not in contents]
    tell(f"Replaced {len(names) - len(missing)} tables in {path}.")
    if missing:
        tell(f"Nothing in the store for {', '.join(missing)}: left as they were.")
