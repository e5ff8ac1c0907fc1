"""``dichotomies fit`` and ``fit-batches``: train a model on a file, or on files larger than memory."""

import time
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dichotomies._common.atomic_files import check_place
from dichotomies._common.progress import Bar
from dichotomies.cli import options
from dichotomies.cli.data_options import ColumnOptions, Source, check_not_read, print_roles
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.printing import plural, print_json, size_of
from dichotomies.cli.settings import NONE, OF_ENSEMBLES, OPTIONS, Settings
from dichotomies.cli.show import facts_of_trees
from dichotomies.training.parameters import Declaration


def _annotation(declared: Declaration) -> Any:
    """Type and help of an option; its value is None where it was not given."""
    option = declared.option
    assert option is not None
    flag = "--" + option.name.replace("_", "-")
    panel = options.POOLING if option.name in OF_ENSEMBLES else options.LEARNING
    if option.kind is bool:
        return Annotated[bool | None, options.flag(flag, panel=panel, help=option.help)]
    default = NONE if declared.default is None else str(declared.default)
    described = options.option(
        flag, panel=panel, help=option.help, metavar=option.metavar, show_default=default, min=option.least
    )
    return Annotated[option.kind | None, described]


#: An option for each parameter of the estimators.
Parameters: Any = make_dataclass(
    "Parameters", [(name, _annotation(each), field(default=None)) for name, each in OPTIONS.items()]
)


@in_a_sentence
def fit(
    *,
    output: options.Output,
    columns: ColumnOptions,
    estimator: options.Estimator = Settings.estimator,
    param: options.Param = None,
    seed: options.Seed = Settings.seed,
    trees: options.Trees = Settings.trees,
    jobs: options.Jobs = None,
    n_features: options.NFeatures = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    parameters: Parameters,
    source: Source,
) -> None:
    """Fit a classifier to a file and save it.

    Columns are numbers, categories, dates or texts, as their values suggest,
    unless an option names them; labels are kept as they are in the file.
    """
    settings = Settings.given(estimator, param, seed, trees, vars(parameters))
    from dichotomies.tables import TableModel

    check_place(output)
    check_not_read(output, source.data, columns.columns, settings.tree_file)
    begun = time.monotonic()
    with Bar.over("fitting", shown=not quiet):
        file = source.opened()
        wanted = columns.of(file, [settings], first_id=source.first_id, n_features=n_features)
        if not (quiet or json):
            print_roles(wanted)
        table = file.read(wanted)
        Bar.stage("encoding")
        classifier = settings.classifier(table, n_jobs=jobs, verbose=not quiet)
        model = TableModel.fit(
            classifier, table, label=wanted.label, ngrams=columns.ngrams, scaled=columns.scale
        )
        Bar.stage("saving")
        classifier.set_params(n_jobs=None, verbose=0)  # settings of this run, not of the model
        model.save(output)
    print_summary(model, len(table), str(source.data), output, time.monotonic() - begun, as_json=json)


@in_a_sentence
def fit_batches(
    *,
    data: Annotated[list[Path], typer.Argument(help="Files of the same columns.", metavar="DATA...")],
    output: options.Output,
    estimator: Annotated[str, options.learning("NAME", "The base learner at the nodes.")],
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
    parameters: Parameters,
) -> None:
    """Fit a classifier to files that do not fit into memory, and save it.

    Roles of columns, categories, terms of texts and the scale of numbers are those of the first file.
    """
    settings = Settings.given(estimator, param, seed, trees, vars(parameters))
    from dichotomies.tables import fit_to_files, open_table

    check_place(output)
    check_not_read(output, *data, columns.columns, settings.tree_file)
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


def print_summary(model: Any, n_rows: int, data: str, output: Path, seconds: float, *, as_json: bool) -> None:
    """Print facts about a model that was fitted to `n_rows` rows of the data, and saved."""
    facts = {
        "model": str(output),
        "bytes": output.stat().st_size,
        "rows": n_rows,
        "features": model.n_features,
        "classes": len(model.classes_),
        **facts_of_trees(model.classifier),
        "learner": model.classifier.learner_,
        "seconds": round(seconds, 3),
    }
    if as_json:
        print_json(facts)
        return
    print(
        f"{plural(n_rows, 'row')} of {data}, {plural(facts['features'], 'feature')}, "
        f"{plural(facts['classes'], 'class')}, {trees_in_words(facts)}\n"
        f"nodes trained by {facts['learner']}\n"
        f"saved as {output} ({size_of(facts['bytes'])}) after {facts['seconds']:.1f} s"
    )


def trees_in_words(facts: dict[str, Any]) -> str:
    """Describe the result of `facts_of_trees`."""
    if facts["trees"] == 1:
        return f"a tree of depth {facts['depth']}"
    return (
        f"{facts['trees']:,} trees of depth {facts['depth']} at most, {facts['different_nodes']:,} of their "
        f"{facts['nodes']:,} nodes different"
    )
