"""``dichotomies fit`` and ``fit-batches``: train a model on a file, or on files larger than memory."""

import json as json_format
import time
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dichotomies._common.atomic_files import check_place
from dichotomies._common.progress import Bar
from dichotomies.cli import options
from dichotomies.cli.data_options import ColumnOptions, Source, check_not_read, load_model, print_roles
from dichotomies.cli.failures import in_a_sentence, plural, print_json, printable, size_of
from dichotomies.cli.settings import NONE, OF_ENSEMBLES, OPTIONS, Settings
from dichotomies.cli.settings import summaries as estimators
from dichotomies.training.parameters import Declaration

if TYPE_CHECKING:
    from dichotomies.tables import TableModel


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


@in_a_sentence
def show(
    model: options.Model,
    lines: Annotated[int, typer.Option(min=1, help="Lines of the drawing of the tree, at most.")] = 30,
    tree: Annotated[int, typer.Option(min=1, help="Which tree of an ensemble to draw.")] = 1,
    trust: options.Trust = None,
    json: options.Json = False,
) -> None:
    """Show what a model file holds: what it reads, its classes, how it was trained, its tree."""
    fitted = load_model(model, trusted=trust)
    facts, trees = _facts(fitted, model), trees_of(fitted.classifier)
    if tree > max(1, len(trees)):
        said = f"the model has {plural(len(trees), 'tree')}"
        raise typer.BadParameter(f"{said}, counted from 1; there is no tree {tree}", param_hint="--tree")
    if json:
        print_json(facts | {"labels": fitted.classes_})
        return
    for name, value in facts.items():
        if value:
            print(printable(f"{name}: {value if isinstance(value, str) else _in_words(name, value)}"))
    if len(trees) > 1:
        print(f"tree {tree} of {len(trees):,} (--tree draws another):")
    if trees:
        print(printable(trees[tree - 1].draw(max_lines=lines)))


def _facts(model: "TableModel", path: Path) -> dict[str, Any]:
    classifier = model.classifier
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "classes": len(model.classes_),
        "features": model.n_features,
        "columns": None if model.features is None else list(model.features),
        "text": {each.column: len(each.terms) for each in model.text},
        "other_columns": {
            each.column: each.description for each in model.encoders if not hasattr(each, "terms")
        },
        "label": model.label,
        "classifier": " ".join(repr(classifier).split()),
        "learner": getattr(classifier, "learner_", None),
        "structure": getattr(classifier, "structure_", None),
        **facts_of_trees(classifier),
        "pooling": getattr(classifier, "pooling", None),
        "calibration": _calibration(classifier),
        "chosen": _comparison(classifier),
        "written_by": _writer(path),
    }


def _calibration(classifier: Any) -> dict[str, str]:
    """Return the calibration of the nodes (internal) and of the whole (external)."""
    fitted = getattr(classifier, "calibration_", None)
    if fitted is None:
        return {}
    return {"internal": fitted.internal, "external": fitted.external}


def _comparison(classifier: Any) -> str | None:
    """Return the sentence about the choice of the calibration, where it was not given."""
    calibration = getattr(classifier, "calibration_", None)
    return str(calibration) if calibration is not None and calibration.nll else None


def _in_words(name: str, value: Any) -> str:
    from dichotomies.tables.errors import listing

    if name == "bytes":
        return size_of(value)
    if name == "text":
        return listing(f"{column} ({plural(terms, 'term')})" for column, terms in value.items())
    if name == "other_columns":
        return listing(f"{column} ({description})" for column, description in value.items())
    if name in ("written_by", "calibration"):
        return listing(" ".join(pair) for pair in value.items())
    return listing(value) if isinstance(value, list) else f"{value:,}"


def _writer(path: Path) -> dict[str, str]:
    """Return the versions of the libraries that wrote the file, as recorded in it."""
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        document = json_format.loads(file.metadata()["dichotomies"])
    return dict(document.get("written by", {}))


def trees_of(classifier: Any) -> list[Any]:
    """Return all trees; none if the classifier is not a nested dichotomy or an ensemble of them."""
    if hasattr(classifier, "trees_"):
        return list(classifier.trees_)
    return [classifier.tree_] if hasattr(classifier, "tree_") else []


def facts_of_trees(classifier: Any) -> dict[str, Any]:
    """Return the number of trees, the maximum depth, the number of nodes, and of distinct nodes."""
    trees = trees_of(classifier)
    if not trees:
        return {}
    nodes = sum(tree.n_nodes for tree in trees)
    return {
        "trees": len(trees),
        "depth": max(tree.max_depth for tree in trees),
        "nodes": nodes,
        "different_nodes": getattr(classifier, "n_different_nodes_", nodes),
    }


@in_a_sentence
def list_registered(json: options.Json = False) -> None:
    """List the names that options accept."""
    from dichotomies.calibrators.binary import BINARY
    from dichotomies.calibrators.multiclass import MULTICLASS
    from dichotomies.inference.pooling import POOLINGS
    from dichotomies.learners import LEARNERS
    from dichotomies.structures import STRUCTURES

    summaries = {
        "estimator": estimators(),
        "structure": STRUCTURES.summaries(),
        "learner": LEARNERS.summaries(),
        "internal": BINARY.summaries(),
        "external": MULTICLASS.summaries(),
        "pooling": {name: str(pool.__doc__).partition("\n")[0] for name, pool in POOLINGS.items()},
    }
    if json:
        print_json(summaries)
        return
    titles = {
        "estimator": "estimator: the base learner at the nodes",
        "structure": "structure: how a tree is grown",
        "learner": "learner: how all nodes are trained (default: found by the estimator)",
        "internal": "internal, internal_calibration: how every node is calibrated",
        "external": "external, external_calibration: how a tree or a pool is calibrated",
        "pooling": "pooling: which mean of several trees' probabilities is taken",
    }
    from rich.console import Console
    from rich.table import Table

    for kind, named in summaries.items():
        table = Table("name", "what it is", title=f"\n{titles[kind]}", title_justify="left")
        for name, summary in named.items():
            table.add_row(name, summary)
        Console().print(table)
