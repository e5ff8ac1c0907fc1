"""``dichotomies fit``: train a model on a file."""

import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from dichotomies._common.atomic_files import check_place
from dichotomies._common.progress import Bar
from dichotomies.cli import options
from dichotomies.cli.data_options import (
    ENCODING,
    SAVING,
    ColumnOptions,
    Source,
    expected_seconds,
    print_roles,
    reads_a_file,
    reads_columns,
)
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.inputs import check_not_read
from dichotomies.cli.printing import plural, print_json, size_of
from dichotomies.cli.settings import NONE, OF_ENSEMBLES, OPTIONS, Settings
from dichotomies.cli.trees import facts_of_trees, trees_in_words
from dichotomies.training.parameters import Declaration

EXAMPLE = "Example: dichotomies fit titles.csv --label code --text title --output titles.model"


def with_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: replace ``**values`` of a command by an option for each parameter of the estimators."""
    signature = inspect.signature(command)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    made = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(declared)
        )
        for name, declared in OPTIONS.items()
    ]
    command.__signature__ = signature.replace(parameters=[*own, *made])  # type: ignore[attr-defined]
    return command


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


@in_a_sentence
@reads_a_file
@with_parameters
@reads_columns
def fit(
    source: Source,
    output: options.Output,
    columns: ColumnOptions,
    estimator: Annotated[
        str,
        options.option(
            panel=options.LEARNING,
            metavar="NAME",
            help="The base learner at the nodes; 'dichotomies list' has the names, auto chooses.",
            show_default=True,
        ),
    ] = Settings.estimator,
    param: options.Param = None,
    seed: options.Seed = Settings.seed,
    trees: options.Trees = Settings.trees,
    jobs: options.Jobs = None,
    n_features: options.NFeatures = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    **values: Any,
) -> None:
    """Fit a classifier to a file and save it.

    Columns are numbers, categories, dates or texts, as their values suggest,
    unless an option names them; labels are kept as they are in the file.
    """
    settings = Settings.given(estimator, param, seed, trees, values)
    from dichotomies.tables import TableModel

    check_place(output)
    check_not_read(output, source.path, columns.file, settings.tree_file)
    begun = time.monotonic()
    expected = expected_seconds(source.path)
    with Bar.over("fitting", expected, shown=not quiet):
        file = source.opened()
        wanted = columns.of(file, [settings], first_id=source.first_id, n_features=n_features)
        if not (quiet or json):
            print_roles(wanted)
        table = file.read(wanted)
        Bar.stage(ENCODING)
        classifier = settings.classifier(table, n_jobs=jobs, verbose=not quiet)
        model = TableModel.fit(
            classifier, table, label=wanted.label, ngrams=columns.ngrams, scaled=columns.scale
        )
        Bar.stage(SAVING)
        classifier.set_params(n_jobs=None, verbose=0)  # settings of this run, not of the model
        model.save(output)
    print_summary(model, len(table), str(source.path), output, time.monotonic() - begun, as_json=json)


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
