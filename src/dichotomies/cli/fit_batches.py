"""``dichotomies fit-batches``: train a model on files that do not fit into memory."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from dichotomies._common.atomic_files import check_place
from dichotomies.cli import options
from dichotomies.cli.data_options import ColumnOptions, print_roles, reads_columns
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.fit import print_summary, with_parameters
from dichotomies.cli.inputs import check_not_read
from dichotomies.cli.settings import Settings

EXAMPLE = "Example: dichotomies fit-batches part-*.parquet --label y --estimator logistic --output y.model"


@in_a_sentence
@with_parameters
@reads_columns
def fit_batches(
    data: Annotated[list[Path], typer.Argument(help="Files of the same columns.", metavar="DATA...")],
    output: options.Output,
    estimator: Annotated[
        str, options.option(panel=options.LEARNING, metavar="NAME", help="The base learner at the nodes.")
    ],
    columns: ColumnOptions,
    param: options.Param = None,
    seed: options.Seed = Settings.seed,
    trees: options.Trees = Settings.trees,
    spill: Annotated[
        Path | None,
        options.option(
            panel=options.RUNNING,
            metavar="FOLDER",
            help="Folder for temporary files, as large as the data; after an interruption, go on with it.",
        ),
    ] = None,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    **values: Any,
) -> None:
    """Fit a classifier to files that do not fit into memory, and save it.

    Roles of columns, categories, terms of texts and the scale of numbers are those of the first file.
    """
    settings = Settings.given(estimator, param, seed, trees, values)
    from dichotomies.tables import fit_to_files, open_table

    check_place(output)
    check_not_read(output, *data, columns.file, settings.tree_file)
    begun = time.monotonic()
    files = [open_table(path) for path in data]
    wanted = columns.of(files[0], [settings])
    if not (quiet or json):
        print_roles(wanted)
    classifier = settings.classifier(next(files[0].batches(wanted, 1_000)), n_jobs=jobs, verbose=not quiet)
    read_as: dict[str, Any] = {"label": wanted.label, "ngrams": columns.ngrams, "scaled": columns.scale}
    model = fit_to_files(classifier, files, wanted, spill=spill, **read_as)
    classifier.set_params(n_jobs=None, verbose=0)  # settings of this run, not of the model
    model.save(output)
    read = f"{data[0]} and {len(data) - 1} more" if len(data) > 1 else str(data[0])
    n_rows = classifier.drift_.n_rows_fitted
    print_summary(model, n_rows, read, output, time.monotonic() - begun, as_json=json)
