"""``python -m experiments.datasets``: the datasets known by name, and where each would come from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dichotomies.cli import options
from dichotomies.cli.failures import in_a_sentence, print_json, print_table

if TYPE_CHECKING:
    from experiments.datasets import Description

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: python -m experiments.datasets --fetch letter --fetch micromass")
@in_a_sentence
def datasets(
    fetch: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Get this dataset first; may be repeated.", show_default=False),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="The folder of datasets; by default $DICHOTOMIES_DATA.", show_default=False),
    ] = None,
    json: options.Json = False,
) -> None:
    """List the datasets that can be loaded by name, and where each would come from."""
    from experiments.datasets import available, load

    for name in fetch or ():
        load(name, data_dir)
    found = available(data_dir)
    if json:
        print_json([_document(each) for each in found])
        return
    lines = [_line(each) for each in found]
    print_table(["name", "rows", "features", "classes", "comes from"], lines)


def _line(dataset: "Description") -> list[str]:
    source = dataset.source
    sizes = ["?" if size is None else f"{size:,}" for size in (source.rows, source.features, source.classes)]
    return [dataset.name, *sizes, dataset.place]


def _document(dataset: "Description") -> dict[str, Any]:
    source = dataset.source
    return {
        "name": dataset.name,
        "title": source.title,
        "rows": source.rows,
        "features": source.features,
        "classes": source.classes,
        "comes_from": dataset.place,
        "path": str(dataset.path),
        "licence": source.licence,
        "reference": source.reference,
    }


if __name__ == "__main__":
    app()
