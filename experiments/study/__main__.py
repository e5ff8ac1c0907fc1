"""``python -m experiments.study``: every structure, base learner and calibration compared."""

from pathlib import Path
from typing import Annotated

import typer

from dichotomies.cli import options
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.options import RUNNING, option

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
_WHAT, _HOW, _SHOWN = "What to run; each may be repeated", "How much to run", "What to show"


@app.command(epilog="Example: python -m experiments.study --dataset letter --learner naive_bayes --jobs 2")
@in_a_sentence
def study(
    dataset: Annotated[
        list[str] | None, option(panel=_WHAT, help="A dataset of the study; --list names them.")
    ] = None,
    learner: Annotated[
        list[str] | None,
        option(panel=_WHAT, help="logistic_regression, naive_bayes or boosted_trees; else all."),
    ] = None,
    structure: Annotated[
        list[str] | None, option(panel=_WHAT, help="As 'dichotomies list' names them; else all.")
    ] = None,
    calibration: Annotated[
        list[str] | None, option(panel=_WHAT, help="none, internal, external or both; else all.")
    ] = None,
    repeats: Annotated[
        int | None,
        option(panel=_HOW, min=1, help="How often everything is run; by default as often as is cheap."),
    ] = None,
    seed: Annotated[
        int, option(panel=_HOW, min=0, help="Seed of the rows held out and of the trees.", show_default=True)
    ] = 0,
    minutes: Annotated[
        float | None, option(panel=_HOW, min=0, help="Begin no trial after so many minutes.")
    ] = None,
    jobs: Annotated[
        int, option(panel=RUNNING, metavar="N", help="Processes; by default one for each core.")
    ] = -1,
    out: Annotated[
        Path,
        option(
            panel=RUNNING,
            metavar="FOLDER",
            help="Where results.sqlite, results.csv and the pictures are kept; made where there is none.",
            show_default=True,
        ),
    ] = Path("study"),
    data_dir: Annotated[
        Path | None, option(panel=RUNNING, help="The folder of datasets; by default $DICHOTOMIES_DATA.")
    ] = None,
    list_only: Annotated[
        bool, option("--list", panel=RUNNING, help="Only say what would be run, and how long it may take.")
    ] = False,
    tables_only: Annotated[
        bool, option("--tables-only", panel=_SHOWN, help="Run nothing; show all that the folder holds.")
    ] = False,
    update: Annotated[
        Path | None,
        option(
            panel=_SHOWN,
            help="Replace sentences and tables in this Markdown page, where it marks them, and do not print.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Compare all ways to grow and to calibrate a tree, with three base learners on ten datasets.

    Results are stored as they come: stopped at any moment and started again, it repeats nothing finished.
    """
    from experiments.pages import regions
    from experiments.running import command
    from experiments.study import steps

    command.check_jobs(jobs)
    choice = steps.choice_of(
        datasets=dataset,
        learners=learner,
        structures=structure,
        calibrations=calibration,
        repeats=repeats,
        seed=seed,
    )
    if list_only:
        steps.tell_plan(choice, out, jobs, as_json=json)
        return
    if update is not None:
        regions.check_page(update)
    code = 0 if tables_only else steps.run(choice, out, jobs, minutes, data_dir)
    steps.show(seed, out, update, as_json=json)
    raise typer.Exit(code)


if __name__ == "__main__":
    app()
