"""``python -m experiments.defaults``: the default calibration against every fixed pair."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dichotomies.cli import options
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.options import RUNNING, option

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
_WHAT = "What to run and to show"
STORE = "defaults.sqlite"


@app.command(epilog="Example: python -m experiments.defaults --dataset letter --jobs 2")
@in_a_sentence
def defaults(
    dataset: Annotated[
        list[str] | None, option(panel=_WHAT, help="A dataset of the study; may be repeated.")
    ] = None,
    repeats: Annotated[
        int, option(panel=_WHAT, min=1, help="How often everything is run.", show_default=True)
    ] = 3,
    again: Annotated[
        list[str] | None,
        option(
            panel=_WHAT,
            metavar="WAY",
            help="Forget the results of this way first, as after a change of the default; may be repeated.",
        ),
    ] = None,
    minutes: Annotated[
        float | None, option(panel=_WHAT, min=0, help="Begin no trial after so many minutes.")
    ] = None,
    jobs: Annotated[int, option(panel=RUNNING, metavar="N", help="Processes.")] = 1,
    out: Annotated[
        Path,
        option(
            panel=RUNNING,
            metavar="FOLDER",
            help="Where defaults.sqlite and the picture are kept.",
            show_default=True,
        ),
    ] = Path("study"),
    data_dir: Annotated[Path | None, option(panel=RUNNING, help="The folder of datasets.")] = None,
    tables_only: Annotated[bool, option("--tables-only", panel=_WHAT, help="Run nothing.")] = False,
    update: Annotated[
        Path | None, option(panel=_WHAT, help="Replace the marked regions of this Markdown page.")
    ] = None,
    debug: options.Debug = False,  # noqa: ARG001 - read where errors are said
) -> None:
    """Compare the default calibration with the one before it, and with every fixed pair of calibrators.

    Results are stored as they come: stopped at any moment and started again, it repeats nothing finished.
    """
    from experiments.defaults import page
    from experiments.defaults.choice import DefaultsChoice
    from experiments.defaults.measure import measure
    from experiments.defaults.trial import DefaultsStore
    from experiments.defaults.ways import WAYS
    from experiments.pages import regions
    from experiments.running import command
    from experiments.running.pool import run_all
    from experiments.study.limits import DATASETS

    command.check_jobs(jobs)
    code = 0
    out.mkdir(parents=True, exist_ok=True)
    with DefaultsStore(out / STORE) as store:
        if not tables_only:
            choice = DefaultsChoice(command.chosen(dataset, DATASETS, "--dataset"), repeats)
            stale = command.chosen(again, WAYS, "--again") if again else ()
            store.forget([trial for trial in choice.trials() if trial.way in stale])
            run = partial(
                run_all,
                command.possible(choice, data_dir),
                store,
                partial(measure, data_dir=data_dir),
                n_jobs=jobs,
                seconds=None if minutes is None else 60 * minutes,
            )
            code = command.run_watched(run, store, jobs)
        results = store.rows()
    if not page.cases(results):
        raise ValueError(f"There is nothing to show: {out / STORE} holds no complete case.")
    page.draw_honesty(results, out / "honesty.svg")
    if update is None:
        print("\n".join(page.contents(results).values()))
    else:
        regions.update_page(update, page.contents(results))
    raise typer.Exit(code)


if __name__ == "__main__":
    app()
