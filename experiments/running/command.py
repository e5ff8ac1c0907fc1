"""Parts of the commands that run trials: choosing by name, running while watched, telling the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from dichotomies.cli.failures import plural, print_json, tell
from experiments.running import availability
from experiments.running.progress import Account, BarWatcher, LineWatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from experiments.running.plan import Plan, TrialChoice
    from experiments.running.pool import RunSummary
    from experiments.running.store import ResultStore
    from experiments.running.time_left import Kind

_INTERRUPTED = 130


def chosen(values: Collection[str] | None, accepted: Collection[str], option: str) -> list[str]:
    """The requested values, in the order of `accepted`; all of them if none was requested."""
    for value in values or ():
        if value not in accepted:
            raise typer.BadParameter(
                f"{value!r} is not known; choose from {', '.join(accepted)}.", param_hint=option
            )
    return [each for each in accepted if not values or each in values]


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that says nothing."""
    if jobs == 0:
        raise typer.BadParameter(
            "0 processes run nothing; ask for 1 or more, or for -1: one for each core.", param_hint="--jobs"
        )


def tell_plan(plan: Plan, *, as_json: bool) -> None:
    """Say what would be run."""
    if as_json:
        print_json(plan.document())
    else:
        print(plan)


def possible(choice: TrialChoice, data_dir: Path | None) -> list[Any]:
    """The trials whose datasets can be had; of the other datasets, say why not."""
    reasons = availability.missing(choice.subjects, data_dir)
    for name, reason in reasons.items():
        tell(f"Without {name}: {reason}")
    return [trial for trial in choice.trials() if trial.dataset not in reasons]


def run_watched(
    run: Callable[..., RunSummary],
    store: ResultStore[Any, Any],
    n_jobs: int,
    prior: Callable[[Kind], float] | None = None,
) -> int:
    """Run trials, telling how it goes on and how it ended; returns the exit code.

    Parameters
    ----------
    run : callable
        Runs them, told a `watcher`.
    store : ResultStore
        Store of earlier and new results.
    n_jobs : int
        Processes, to judge the time by.
    prior : callable, optional
        Seconds that a trial of a kind is thought to take.
    """
    with _watcher(Account(store.rows(), n_jobs, prior)) as watcher:
        try:
            summary = run(watcher=watcher)
        except KeyboardInterrupt:
            tell(f"Stopped. Everything finished is in {store.path}: the same command goes on from there.")
            raise typer.Exit(_INTERRUPTED) from None
    again = ": start again to try those once more." if summary.failed else "."
    tell(f"{summary.done} trials run, {summary.already} finished before, {summary.failed} failed{again}")
    if summary.left:
        tell(f"The time is up: {plural(summary.left, 'trial')} left; the same command goes on from there.")
    nothing = not (summary.already or summary.done or summary.left)
    return 1 if summary.failed or nothing else 0


def _watcher(account: Account) -> BarWatcher | LineWatcher:
    console = Console(stderr=True)
    return BarWatcher(account, console) if console.is_terminal else LineWatcher(account)
