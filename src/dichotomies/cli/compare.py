"""``dichotomies compare``: several configurations, cross-validated on the same folds."""

import shlex
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dichotomies.cli import options
from dichotomies.cli.cross_validation import METRICS, Scores, folds_of, score, warm_up
from dichotomies.cli.failures import in_a_sentence
from dichotomies.cli.inputs import label_of, training_columns
from dichotomies.cli.printing import plural, print_json, print_table
from dichotomies.cli.settings import Settings, SettingsError, pairs_of

EXAMPLE = (
    "Example: dichotomies compare titles.csv --label code --text title --config 'plain: external=none' "
    "--config 'sharp: param.C=10 internal=platt'"
)


@in_a_sentence
def compare(
    data: options.Data,
    config: Annotated[
        list[str],
        typer.Option(
            "--config",
            "-c",
            help="'NAME: SETTING=VALUE ...' with the settings of 'fit' (param.C=10 is its --param C=10), or "
            "a .toml file with a table of settings for every name; may be repeated.",
        ),
    ],
    label: options.Label = None,
    text: options.Text = None,
    ngrams: options.NGrams = "word",
    ignore: options.Ignore = None,
    weight: options.Weight = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds.")] = 0,
    jobs: options.Jobs = None,
    format: options.Format = None,  # noqa: A002
    delimiter: options.Delimiter = None,
    first_id: options.FirstId = None,
    n_features: options.NFeatures = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by the error handler
) -> None:
    """Compare configurations by cross-validation, all on the same folds, in one table.

    NLL and ECE: lower is better; in brackets the standard deviation over the folds.
    """
    configs = configurations(config)
    from dichotomies.tables import open_table

    file = open_table(data, format, delimiter)
    name = label_of(file, label)
    columns = training_columns(name, [*configs.values()], text=text, ignore=ignore, weight=weight)
    table = file.read(replace(columns, first_id=first_id, n_features=n_features))
    parts = folds_of(table.labels, folds, seed)
    n_folds = int(parts.max()) + 1  # fewer than requested if there are too few rows
    found = _run(configs, table, parts, quiet=quiet, ngrams=ngrams, n_jobs=jobs)
    never = int((parts < 0).sum())
    if json:
        print_json(_document(found, table, n_folds, never))
        return
    print(f"{data}: {plural(len(table), 'row')}, {plural(n_folds, 'fold')}; means and standard deviations")
    print_table(["", *METRICS.values()], [_line(each) for each in found])
    if never:
        print(f"{plural(never, 'row')} never tested: the only ones of their classes")


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
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"There is no file {path}.") from None
    except ValueError as error:
        raise SettingsError(f"{path} is not TOML ({error}).") from error
    for name, values in tables.items():
        if not isinstance(values, dict):
            raise SettingsError(
                f"{path} should hold a table [name] for every configuration, not {name} = ..."
            )
    return tables


def _run(configs: dict[str, Settings], table: Any, parts: Any, *, quiet: bool, **effort: Any) -> list[Scores]:
    from dichotomies._common.parallel import Progress

    found = [Scores(name) for name in configs]
    for settings in configs.values():
        warm_up(settings, table, **effort)
    n_folds, done = int(parts.max()) + 1, 0
    progress = Progress("cross-validating")
    for fold in range(n_folds):
        for scores, settings in zip(found, configs.values(), strict=True):
            for metric, value in score(settings, table, parts == fold, **effort).items():
                scores.folds[metric].append(value)
            done += 1
            if not quiet:
                progress.show(done / (n_folds * len(configs)))
    return found


def _line(scores: Scores) -> list[str]:
    digits = {metric: 2 if metric == "fit_seconds" else 4 for metric in METRICS}
    cells = [f"{scores.mean(name):.{n}f} ({scores.spread(name):.{n}f})" for name, n in digits.items()]
    return [scores.name, *cells]


def _document(found: list[Scores], table: Any, folds: int, never: int) -> dict[str, Any]:
    configurations = {
        scores.name: {
            metric: {"mean": scores.mean(metric), "sd": scores.spread(metric), "folds": scores.folds[metric]}
            for metric in METRICS
        }
        for scores in found
    }
    return {"rows": len(table), "folds": folds, "rows_never_tested": never, "configurations": configurations}
