"""``dichotomies predict``: the most probable labels of every row, computed in batches."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from dichotomies.cli import options
from dichotomies.cli.data_options import Source, batch_rows, check_not_read, load_model
from dichotomies.cli.failures import in_a_sentence, plural, print_json, tell

if TYPE_CHECKING:
    from dichotomies.tables import Table, TableModel

_STDOUT = "-"

#: Between the labels of a set.
SEPARATOR = " | "


@in_a_sentence
def predict(
    *,
    model: options.Model,
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="A .csv, .tsv or .parquet file; - is standard output, as CSV."),
    ] = _STDOUT,
    top_k: Annotated[
        int, typer.Option("--top-k", "--top", "-k", min=1, help="Number of labels for every row.")
    ] = 5,
    min_probability: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out labels that are less probable than this.")
    ] = 0.0,
    every: Annotated[
        bool,
        typer.Option("--all", metavar="", help="The probability of every label, in a column named after it."),
    ] = False,
    coverage: Annotated[
        float | None,
        typer.Option(help="Sets of labels that hold the true one with this probability; see fit --sets."),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(help="One answer that is at least so probable: a label, or a group of the tree."),
    ] = None,
    n_groups: Annotated[
        int | None,
        typer.Option(
            "--groups",
            min=1,
            help="With --coverage or --min-confidence: answer with at most so many groups of the tree.",
        ),
    ] = None,
    id: Annotated[  # noqa: A002
        str | None, typer.Option(help="A column with the names of the rows.", show_default="row numbers")
    ] = None,
    jobs: options.Jobs = None,
    trust: options.Trust = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    source: Source,
) -> None:
    """Write the most probable labels of every row, with their probabilities, best first.

    The file needs the columns that the model was fitted with, in any order; others are ignored. Rows are read
    and written in batches.
    """
    if json and output == _STDOUT:
        raise typer.BadParameter("say where the predictions go (--output)", param_hint="--json")
    if every + (coverage is not None) + (min_confidence is not None) > 1:
        raise typer.BadParameter("give one of --all, --coverage, --min-confidence", param_hint="--coverage")
    if n_groups is not None and coverage is None and min_confidence is None:
        raise typer.BadParameter("give --coverage or --min-confidence too", param_hint="--groups")
    from dichotomies.tables import open_writer

    if output != _STDOUT:
        check_not_read(Path(output), source.data, model)

    begun, done = time.monotonic(), 0
    fitted = load_model(model, jobs, trust)
    columns = fitted.columns(id=id, first_id=source.first_id)
    batches = source.opened().batches(columns, batch_rows(len(fitted.classes_)))
    with open_writer(output) as writer:
        if coverage is not None or min_confidence is not None:
            answered = groups(fitted, batches, id, coverage, min_confidence, n_groups)
        else:
            answered = predictions(fitted, batches, id, None if every else top_k, min_probability)
        for rows in answered:
            writer.write(rows)
            done += len(next(iter(rows.values())))
    seconds = time.monotonic() - begun
    if json:
        print_json({"output": output, "rows": done, "seconds": round(seconds, 3)})
    elif output != _STDOUT and not quiet:
        tell(f"{plural(done, 'row')} predicted in {seconds:.1f} s: {output}")


def predictions(
    model: "TableModel",
    batches: "Iterator[Table]",
    id_column: str | None,
    top_k: int | None,
    min_probability: float = 0.0,
) -> Iterator[dict[str, Any]]:
    """Yield the columns of predictions for every batch: row names, labels and probabilities."""
    check_distinct(id_column, model.classes_, top_k)
    for batch in batches:
        columns: dict[str, Any] = {id_column or "row": _names(batch)}
        if top_k is None:
            shown = np.ma.masked_less(np.exp(model.predict_log_proba(batch)), min_probability)
            columns |= {str(label): shown[:, code] for code, label in enumerate(model.classes_.tolist())}
        else:
            columns |= _best(*model.predict_top_k(batch, top_k), min_probability)
        yield columns


def groups(
    model: "TableModel",
    batches: "Iterator[Table]",
    id_column: str | None,
    coverage: float | None,
    confidence: float | None,
    n_groups: int | None,
) -> Iterator[dict[str, Any]]:
    """Yield the columns of sets (`coverage`) or tree answers (`confidence` or `n_groups`) for every batch."""
    is_set = confidence is None and n_groups is None
    columns = ("size", "labels") if is_set else ("answer", "probability", "size")
    if id_column in columns:
        raise ValueError(
            f"The predictions have a column {id_column!r} themselves; rename the column that --id names."
        )
    for batch in batches:
        values: tuple[Any, ...]
        if is_set:
            sets = model.answer(batch, "predict_set", coverage)
            texts = np.array([SEPARATOR.join(map(str, labels)) for labels in sets])
            values = np.array([len(labels) for labels in sets]), texts
        else:
            limits = {"confidence": confidence, "coverage": coverage, "groups": n_groups or 1}
            answers = model.answer(batch, "predict_node", **limits)
            values = np.array(answers.names), answers.proba, answers.size
        yield {id_column or "row": _names(batch), **dict(zip(columns, values, strict=True))}


def _names(batch: "Table") -> Any:
    """Names of the rows: the column that --id named, or their numbers."""
    return np.arange(batch.first_row, batch.first_row + len(batch)) if batch.ids is None else batch.ids


def check_distinct(id_column: str | None, classes: Any, top_k: int | None) -> None:
    """Raise if the row-name column has the name of a prediction column."""
    name = id_column or "row"
    if top_k is None and name in map(str, classes.tolist()):
        remedy = "name rows by a column that is called otherwise (--id)"
        raise ValueError(f"There is a label {name!r}, which has a column of that name; {remedy}.")
    places = range(1, min(top_k or 0, len(classes)) + 1)
    if name in {f"{what}_{place}" for what in ("label", "probability") for place in places}:
        raise ValueError(
            f"The predictions have a column {name!r} themselves; rename the column that --id names."
        )


def _best(labels: Any, proba: Any, least: float) -> dict[str, Any]:
    """Return columns of labels and probabilities, with those below `least` masked."""
    columns: dict[str, Any] = {}
    for place in range(labels.shape[1]):
        masked = proba[:, place] < least
        columns[f"label_{place + 1}"] = np.ma.masked_array(labels[:, place], masked)
        columns[f"probability_{place + 1}"] = np.ma.masked_array(proba[:, place], masked)
    return columns
