"""``dichotomies compare``: several configurations, cross-validated on the same folds."""

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from joblib import effective_n_jobs

from dichotomies._common.progress import Bar, Progress
from dichotomies.cli import options
from dichotomies.cli.data_options import ColumnOptions, Source, toml_of
from dichotomies.cli.failures import in_a_sentence, plural, print_json, print_table, sentence
from dichotomies.cli.settings import Settings, SettingsError, check_name, pairs_of
from dichotomies.cli.settings import references as references_of

if TYPE_CHECKING:
    from dichotomies.tables import Table, TableModel

#: Makes an unfitted classifier for a table: called with it and `n_jobs`.
Maker = Callable[..., Any]

#: Metrics, with their titles in tables.
METRICS = {
    "nll": "NLL",
    "accuracy": "accuracy",
    "top_5_accuracy": "top-5",
    "ece": "ECE",
    "fit_seconds": "fit, s",
}


#: Number of rows that is enough to compile every kernel.
_FEW_ROWS = 200


@dataclass
class Scores:
    """Scores of one configuration on every fold, and the reason why it has none if it failed."""

    name: str
    failure: str = ""
    folds: dict[str, list[float]] = field(default_factory=lambda: {metric: [] for metric in METRICS})

    def mean(self, metric: str) -> float:
        """Mean over the folds."""
        return float(np.mean(self.folds[metric]))

    def spread(self, metric: str) -> float:
        """Standard deviation over the folds."""
        return float(np.std(self.folds[metric], ddof=1))


def folds_of(labels: Any, n_folds: int, seed: int) -> Any:
    """Return the test fold of each row; -1 for the only row of a class, which is always trained on."""
    from dichotomies.rows.folds import fold_of_rows

    _, codes = np.unique(labels, return_inverse=True)
    tested = np.bincount(codes)[codes] > 1
    if not tested.any():
        raise ValueError("No label has two rows, one to train on and one to test; nothing can be compared.")
    _, dense = np.unique(codes[tested], return_inverse=True)
    folds = np.full(len(codes), -1, dtype=np.intp)
    folds[tested] = fold_of_rows(dense, n_folds, np.random.RandomState(seed))
    return folds


def warm_up(make: Maker, table: "Table", **settings: Any) -> None:
    """Fit to a few rows, so that compilation is not in the measured time."""
    few = np.linspace(0, len(table) - 1, num=min(len(table), _FEW_ROWS)).astype(np.intp)
    if len(np.unique(table.labels[few])) > 1:
        _fit(make, table.rows(few), **settings)


def score(make: Maker, table: "Table", is_test: Any, **settings: Any) -> dict[str, float]:
    """Fit to the training rows, encoding of columns included, and compute the metrics on the test rows."""
    from dichotomies.metrics import evaluate

    train, test = (table.rows(np.flatnonzero(rows)) for rows in (~is_test, is_test))
    begun = time.perf_counter()
    model = _fit(make, train, **settings)
    seconds = time.perf_counter() - begun
    found = evaluate(model.classifier, model.matrix(test), test.labels, sample_weight=test.weight).metrics
    return {metric: seconds if metric == "fit_seconds" else found[metric] for metric in METRICS}


def _fit(make: Maker, table: "Table", *, n_jobs: int | None, **settings: Any) -> "TableModel":
    from threadpoolctl import threadpool_limits

    from dichotomies.tables import TableModel

    with threadpool_limits(effective_n_jobs(n_jobs)):  # flat classifiers would take all cores
        return TableModel.fit(make(table, n_jobs=n_jobs), table, **settings)


@in_a_sentence
def compare(
    *,
    columns: ColumnOptions,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            "-c",
            help="'NAME: SETTING=VALUE ...' with the settings of 'fit' (param.C=10 is its --param C=10), or "
            "a .toml file with a table of settings for every name; may be repeated. By default one tree, and "
            "ten.",
        ),
    ] = None,
    references: Annotated[
        str,
        typer.Option(
            metavar="auto|all|none",
            help="Flat classifiers to compare with; 'auto' leaves out slow ones if there are many classes.",
        ),
    ] = "auto",
    folds: Annotated[int, typer.Option(min=2, help="Folds of cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds.")] = 0,
    jobs: options.Jobs = None,
    n_features: options.NFeatures = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    source: Source,
) -> None:
    """Compare configurations by cross-validation, all on the same folds, in one table.

    NLL and ECE: lower is better; in brackets the standard deviation over the folds. Flat classifiers,
    calibrated by cross-fitting, are references: they show whether a tree is worth it.
    """
    configs = configurations(config or _DEFAULT)
    check_name("choice of references", references, ["auto", "all", "none"])
    file = source.opened()
    with Bar.over("reading", shown=not quiet, patience=1.0):
        wanted = columns.of(file, [*configs.values()], first_id=source.first_id, n_features=n_features)
        table = file.read(wanted)
    parts = folds_of(table.labels, folds, seed)
    n_folds = int(parts.max()) + 1  # fewer than requested if there are too few rows
    makers: dict[str, Maker] = {name: settings.classifier for name, settings in configs.items()}
    makers |= references_of(references, len(set(table.labels.tolist())))
    found = _run(makers, table, parts, quiet=quiet, ngrams=columns.ngrams, scaled=columns.scale, n_jobs=jobs)
    never = int((parts < 0).sum())
    if json:
        print_json(_document(found, table, n_folds, never))
    else:
        rows, tested = plural(len(table), "row"), plural(n_folds, "fold")
        print(f"{source.data}: {rows}, {tested}; means and standard deviations")
        print_table(["", *METRICS.values()], [_line(each) for each in found])
        if never:
            print(f"{plural(never, 'row')} never tested: the only ones of their classes")
    if all(each.failure for each in found):
        raise typer.Exit(1)


#: Configurations where none is given.
_DEFAULT = ["one tree:", "ten trees: trees=10"]


def configurations(given: list[str]) -> dict[str, Settings]:
    """Return the settings of each configuration, by name."""
    found: dict[str, Settings] = {}
    for text in given:
        for name, values in _named(text).items():
            if name in found:
                raise SettingsError(f"There are two configurations named {name!r}.")
            found[name] = Settings().changed(**values).checked()
    return found


def _named(text: str) -> dict[str, dict[str, Any]]:
    """Return the settings of one --config: from a file, or as written."""
    if text.endswith(".toml"):
        return _tables(Path(text))
    name, colon, rest = text.partition(":")
    if not colon or not name.strip():
        raise SettingsError(f"{text!r} should be 'NAME: SETTING=VALUE ...' or a .toml file.")
    try:
        return {name.strip(): pairs_of(shlex.split(rest))}
    except SettingsError:
        raise
    except ValueError as error:  # from shlex: an unclosed quotation
        raise SettingsError(f"{text!r} cannot be divided into settings ({error}).") from error


def _tables(path: Path) -> dict[str, dict[str, Any]]:
    tables = toml_of(path)
    for name, values in tables.items():
        if not isinstance(values, dict):
            raise SettingsError(
                f"{path} should hold a table [name] for every configuration, not {name} = ..."
            )
    return tables


def _run(makers: dict[str, Maker], table: Any, parts: Any, *, quiet: bool, **settings: Any) -> list[Scores]:
    """Cross-validate all; one that fails is left out of later folds, and the reason is kept."""
    found = [Scores(name) for name in makers]
    n_folds, done = int(parts.max()) + 1, 0
    progress = Progress("cross-validating")
    for fold in range(n_folds):
        for scores, make in zip(found, makers.values(), strict=True):
            if not scores.failure:
                _add_fold(scores, make, table, parts == fold, is_first=fold == 0, **settings)
            done += 1
            if not quiet:
                progress.show(done / (n_folds * len(makers)))
    return found


def _add_fold(
    scores: Scores, make: Maker, table: Any, is_test: Any, *, is_first: bool, **settings: Any
) -> None:
    try:
        if is_first:
            warm_up(make, table, **settings)
        for metric, value in score(make, table, is_test, **settings).items():
            scores.folds[metric].append(value)
    except SettingsError:
        raise
    except Exception as error:
        scores.failure = sentence(error)


def _line(scores: Scores) -> list[str]:
    if scores.failure:
        return [scores.name, f"failed: {scores.failure}"]
    digits = {metric: 2 if metric == "fit_seconds" else 4 for metric in METRICS}
    cells = [f"{scores.mean(name):.{n}f} ({scores.spread(name):.{n}f})" for name, n in digits.items()]
    return [scores.name, *cells]


def _document(found: list[Scores], table: Any, folds: int, never: int) -> dict[str, Any]:
    configurations = {
        scores.name: {"failed": scores.failure}
        if scores.failure
        else {
            metric: {"mean": scores.mean(metric), "sd": scores.spread(metric), "folds": scores.folds[metric]}
            for metric in METRICS
        }
        for scores in found
    }
    return {"rows": len(table), "folds": folds, "rows_never_tested": never, "configurations": configurations}
