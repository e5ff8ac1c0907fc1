"""``python -m experiments.reproduce``: the paper's tables, run again."""

from pathlib import Path
from typing import Annotated

import typer

from dichotomies.cli import options
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.options import RUNNING, option

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
_WHAT, _HOW, _SHOWN = "What to run; each may be repeated", "How much to run", "What to show"


@app.command(epilog="Example: python -m experiments.reproduce --dataset letter --base naive_bayes --jobs 2")
@in_a_sentence
def reproduce(
    table: Annotated[
        list[str] | None,
        option(panel=_WHAT, help="logistic-nll, logistic-accuracy, poor-nll or poor-accuracy; else all."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        option(panel=_WHAT, help="The paper's own, or one that stands in for it; --list names them."),
    ] = None,
    base: Annotated[
        list[str] | None,
        option(panel=_WHAT, help="logistic_regression, naive_bayes or boosted_trees; else all."),
    ] = None,
    scheme: Annotated[
        list[str] | None,
        option(
            panel=_WHAT, help="none, external_vs, internal_ps, both_ps, internal_ir or both_ir; else all."
        ),
    ] = None,
    as_printed: Annotated[
        bool, option("--as-printed", panel=_WHAT, help="What the paper's text says was run.")
    ] = False,
    as_published_numbers_imply: Annotated[
        bool,
        option(
            "--as-published-numbers-imply",
            panel=_WHAT,
            help="What its numbers say was run: the default; with --as-printed, both.",
        ),
    ] = False,
    full: Annotated[
        bool,
        option(
            "--full/--quick", panel=_HOW, help="Ten times everything, as in the paper; or once (default)."
        ),
    ] = False,
    repeats: Annotated[
        int | None, option(panel=_HOW, min=1, help="Repeats of cross-validation, and random trees elsewhere.")
    ] = None,
    folds: Annotated[
        int, option(panel=_HOW, min=2, help="Folds of cross-validation.", show_default=True)
    ] = 10,
    fold_limit: Annotated[
        int | None, option(panel=_HOW, min=1, help="Only so many folds of each repeat.")
    ] = None,
    seed: Annotated[
        int | None,
        option(
            panel=_HOW,
            min=0,
            help="Seed of the splits and the trees: 0 by default; of --tables-only, the stored one.",
        ),
    ] = None,
    jobs: Annotated[
        int, option(panel=RUNNING, metavar="N", help="Processes; by default one for each core.")
    ] = -1,
    store: Annotated[
        Path, option(panel=RUNNING, help="The file that results are kept in.", show_default=True)
    ] = Path("results.sqlite"),
    data_dir: Annotated[
        Path | None, option(panel=RUNNING, help="The folder of datasets; by default $DICHOTOMIES_DATA.")
    ] = None,
    list_only: Annotated[
        bool, option("--list", panel=RUNNING, help="Only say what would be run, and how long it may take.")
    ] = False,
    tables_only: Annotated[
        bool, option("--tables-only", panel=_SHOWN, help="Run nothing; show all that the store holds.")
    ] = False,
    form: Annotated[
        str | None,
        option(
            "--format",
            panel=_SHOWN,
            help="terminal, markdown, latex, html or json; by default what --output ends in says.",
        ),
    ] = None,
    output: Annotated[Path | None, option(panel=_SHOWN, help="Write the tables to this file.")] = None,
    update: Annotated[
        Path | None,
        option(
            panel=_SHOWN,
            help="Replace the tables in this Markdown page, where it marks them; --format, --json and "
            "--output show them as well.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Run the experiments of the paper and put our numbers beside its own.

    Results are stored as they come: stopped at any moment and started again, it repeats nothing finished.
    """
    from experiments.reproduce import steps
    from experiments.running import command

    command.check_jobs(jobs)
    choice = steps.choice_of(
        tables=table,
        datasets=dataset,
        bases=base,
        schemes=scheme,
        readings=steps.readings_of(as_printed, as_published_numbers_imply),
        protocol=steps.protocol_of(full, repeats, folds, fold_limit),
        seed=seed or 0,
        rare=tables_only,
    )
    if list_only:
        steps.tell_plan(choice, store, jobs, as_json=json)
        return
    asked_for = "json" if json else form
    form = steps.form_of(asked_for, output)
    steps.check_places(output, update)
    code = 0 if tables_only else steps.run(choice, store, jobs, data_dir)
    grids = steps.grids_of(
        choice,
        store,
        tables=table,
        all_readings=tables_only and not (as_printed or as_published_numbers_imply),
        any_seed=tables_only and seed is None,
    )
    steps.show(grids, form, output, update, also_print=asked_for is not None)
    raise typer.Exit(code)


if __name__ == "__main__":
    app()
