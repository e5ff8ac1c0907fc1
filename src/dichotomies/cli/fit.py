"""``dichotomies fit``: train a model on a file."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dichotomies._common.files import check_place
from dichotomies.cli import options
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.inputs import label_of, training_columns
from dichotomies.cli.printing import plural, print_json, size_of
from dichotomies.cli.settings import Settings, pairs_of
from dichotomies.cli.trees import facts_of_trees, trees_in_words

EXAMPLE = "Example: dichotomies fit titles.csv --label code --text title --output titles.model"
_DEFAULT = Settings()


def learning(*names: str, **settings: Any) -> Any:
    """Declare a training option."""
    return options.option(*names, panel=options.LEARNING, **({"show_default": True} | settings))


def pooled(*names: str, **settings: Any) -> Any:
    """Declare an option of ensembles."""
    return options.option(*names, panel=options.POOLING, **settings)


@in_a_sentence
def fit(
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    label: options.Label = None,
    text: options.Text = None,
    ngrams: options.NGrams = "word",
    ignore: options.Ignore = None,
    weight: options.Weight = None,
    estimator: Annotated[
        str, learning(metavar="NAME", help="The base learner at the nodes; 'dichotomies list' has the names.")
    ] = _DEFAULT.estimator,
    param: Annotated[
        list[str] | None,
        learning(
            metavar="NAME=VALUE",
            help="A parameter of the base learner, such as C=10; may be repeated.",
            show_default=False,
        ),
    ] = None,
    structure: Annotated[
        str,
        learning(metavar="NAME", help="How to grow the tree, or a .json file with nested lists of labels."),
    ] = _DEFAULT.structure,
    internal: Annotated[
        str, learning(metavar="NAME", help="How to calibrate every node.")
    ] = _DEFAULT.internal,
    external: Annotated[
        str, learning(metavar="NAME", help="How to calibrate the whole tree, or the pool of several.")
    ] = _DEFAULT.external,
    cv: Annotated[int, learning(min=2, metavar="N", help="Folds of internal calibration.")] = _DEFAULT.cv,
    ensemble: Annotated[
        bool,
        learning("--ensemble", help="Average the models of the folds at every node.", show_default=False),
    ] = _DEFAULT.ensemble,
    calibrated_nodes: Annotated[
        str, learning(metavar="WHICH", help="Nodes to calibrate: all, depths as in 0,1,2, or a share, 0.5.")
    ] = _DEFAULT.calibrated_nodes,
    calibration_size: Annotated[
        str, learning(metavar="SHARE", help="Rows held out for external calibration, or cross-fit.")
    ] = str(_DEFAULT.calibration_size),
    learner: Annotated[
        str, learning(metavar="NAME", help="How all nodes are trained; auto finds the fastest way.")
    ] = _DEFAULT.learner,
    seed: Annotated[int, learning(min=0, metavar="N", help="Seed of all that is random.")] = _DEFAULT.seed,
    trees: Annotated[
        int,
        learning(min=1, metavar="N", help="Trees; more than one are an ensemble, whose answers are pooled."),
    ] = _DEFAULT.trees,
    max_features: Annotated[
        float | None,
        pooled(
            metavar="SHARE", help="Features that each tree is grown on, drawn at random.", show_default="0.5"
        ),
    ] = _DEFAULT.max_features,
    bootstrap: Annotated[
        bool, pooled("--bootstrap", help="Train each tree on a bootstrap sample of the rows.")
    ] = _DEFAULT.bootstrap,
    pooling: Annotated[
        str | None,
        pooled(
            metavar="geometric|arithmetic",
            help="Which mean of the trees' probabilities to take.",
            show_default="geometric",
        ),
    ] = _DEFAULT.pooling,
    member_calibration: Annotated[
        str | None,
        pooled(
            metavar="NAME", help="How to calibrate each tree before they are pooled.", show_default="none"
        ),
    ] = _DEFAULT.member_calibration,
    jobs: options.Jobs = None,
    format: options.Format = None,  # noqa: A002
    delimiter: options.Delimiter = None,
    first_id: options.FirstId = None,
    n_features: options.NFeatures = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by the error handler
) -> None:
    """Fit a classifier to a file and save it.

    Every numeric column is a feature, unless it is named otherwise; labels are kept as they are in the file.
    """
    settings = Settings(
        estimator=estimator,
        param=pairs_of(param or []),
        structure=structure,
        internal=internal,
        external=external,
        cv=cv,
        ensemble=ensemble,
        calibrated_nodes=calibrated_nodes,
        calibration_size=calibration_size,
        learner=learner,
        seed=seed,
        trees=trees,
        max_features=max_features,
        bootstrap=bootstrap,
        pooling=pooling,
        member_calibration=member_calibration,
    ).checked()
    from dichotomies.tables import TableModel, open_table

    check_place(output)
    begun = time.monotonic()
    file = open_table(data, format, delimiter)
    name = label_of(file, label)
    columns = training_columns(name, [settings], text=text, ignore=ignore, weight=weight)
    table = file.read(replace(columns, first_id=first_id, n_features=n_features))
    classifier = settings.classifier(table, n_jobs=jobs, verbose=not quiet)
    model = TableModel.fit(classifier, table, label=name, ngrams=ngrams)
    classifier.set_params(n_jobs=None, verbose=0)  # settings of this run, not of the model
    model.save(output)
    summary = _summary(model, len(table), output, time.monotonic() - begun)
    if json:
        print_json(summary)
    else:
        _print(summary, data)


def _summary(model: Any, n_rows: int, output: Path, seconds: float) -> dict[str, Any]:
    return {
        "model": str(output),
        "bytes": output.stat().st_size,
        "rows": n_rows,
        "features": model.n_features,
        "classes": len(model.classes_),
        **facts_of_trees(model.classifier),
        "learner": model.classifier.learner_,
        "seconds": round(seconds, 3),
    }


def _print(summary: dict[str, Any], data: Path) -> None:
    print(
        f"{plural(summary['rows'], 'row')} of {data}, {plural(summary['features'], 'feature')}, "
        f"{plural(summary['classes'], 'class')}, {trees_in_words(summary)}\n"
        f"nodes trained by {summary['learner']}\n"
        f"saved as {summary['model']} ({size_of(summary['bytes'])}) after {summary['seconds']:.1f} s"
    )
