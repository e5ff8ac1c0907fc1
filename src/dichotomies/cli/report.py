"""``dichotomies report``: an HTML report on a model and a file."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dichotomies._common.atomic_files import check_place
from dichotomies.cli import options
from dichotomies.cli.data_options import Source, check_not_read, label_of, load_model
from dichotomies.cli.evaluate import read_truth
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.printing import plural, print_json, size_of, tell


@in_a_sentence
def report(
    *,
    model: options.Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    label: options.Label = None,
    weight: options.Weight = None,
    examples: Annotated[
        str | None,
        typer.Option(help="A column that names rows on the page, beside mistakes.", show_default=False),
    ] = None,
    jobs: options.Jobs = None,
    trust: options.Trust = None,
    json: options.Json = False,
    source: Source,
) -> None:
    """Write an HTML page on the quality of the probabilities, which opens offline.

    Use rows that the model was not fitted to; they must fit into memory.
    """
    from dichotomies.report import make

    check_place(output)
    check_not_read(output, source.data, model)
    fitted = load_model(model, jobs, trust)
    file = source.opened()
    name = label_of(file, label, fitted.label)
    truth = read_truth(fitted, file, name)
    known = np.flatnonzero(truth.known)
    columns = fitted.columns(weight=weight, id=examples, first_id=source.first_id)
    table = file.read(replace(columns, id_option="--examples")).rows(known)
    with fitted.columns_in_order():
        page = make(
            fitted.classifier,
            fitted.matrix(table),
            fitted.classes_[truth.codes[known]],
            sample_weight=table.weight,
            examples=None if table.ids is None else table.ids.tolist(),
        )
    page.save(output)
    if truth.n_unknown:
        tell(f"left out: {plural(truth.n_unknown, 'row')} with labels that the model does not know")
    if json:
        document = {"report": str(output), "rows": len(known), "unknown_rows": truth.n_unknown}
        print_json(document | {"headline": page.content["headline"]})
    else:
        print(page.content["headline"])
        print(f"{plural(len(known), 'row')}; the page is {output} ({size_of(output.stat().st_size)})")
