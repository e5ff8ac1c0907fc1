"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

#: Headings of the help.
FILE, LEARNING, RUNNING = "What the file holds", "How to learn", "Running"
POOLING = "Of ensembles (--trees above 1)"


def option(*names: str, panel: str, **settings: Any) -> Any:
    """Declare an option under a heading of the help, without showing the default None."""
    return typer.Option(*names, rich_help_panel=panel, **({"show_default": False} | settings))


def flag(*names: str, panel: str, **settings: Any) -> Any:
    """Declare an option without a value."""
    return option(*names, panel=panel, metavar="", **settings)


def _parse_delimiter(text: str | None) -> str | None:
    r"""Return the delimiter: the character itself, or a tab for \t."""
    mark = "\t" if text == r"\t" else text
    if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n'):
        raise typer.BadParameter(rf"a delimiter is one ASCII character or \t for a tab, got {text!r}")
    return mark


def _check_decimal(mark: str | None) -> str | None:
    if mark not in (None, ".", ","):
        raise typer.BadParameter(f"the decimal mark is a point or a comma, got {mark!r}")
    return mark


def _check_jobs(n_jobs: int | None) -> int | None:
    if n_jobs == 0:
        raise typer.BadParameter("there must be a worker: give 1 or more, or -1 for one for each core")
    return n_jobs


def _column(description: str) -> Any:
    return option(panel=FILE, metavar="COLUMN", help=description)


def _file(metavar: str, description: str, *names: str, **settings: Any) -> Any:
    return option(*names, panel=FILE, metavar=metavar, help=description, **settings)


def learning(metavar: str, description: str, **settings: Any) -> Any:
    """Declare an option under the heading of learning."""
    return option(panel=LEARNING, metavar=metavar, help=description, **settings)


Data = Annotated[Path, typer.Argument(help="A .csv, .tsv, .parquet, .svmlight or .npz file.", metavar="DATA")]
Model = Annotated[Path, typer.Argument(help="A model file, made by 'dichotomies fit'.", metavar="MODEL")]
Output = Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")]

Names = list[str] | None
Label = Annotated[str | None, _column("Column of the labels; in an NPZ file, the name of their array.")]
Text = Annotated[Names, _column("Text column, used by its words; may be repeated.")]
Categorical = Annotated[Names, _column("Column of categories, also of numbers; may be repeated.")]
Numeric = Annotated[Names, _column("Column of numbers; may be repeated.")]
Date = Annotated[Names, _column("Column of dates; may be repeated.")]
Ignore = Annotated[Names, _column("Column to skip; may be repeated.")]
Weight = Annotated[str | None, _column("Column of row weights; 2 equals two copies of the row.")]

_TERMS = "Terms of texts: words and pairs of words, or 2 to 4 characters within words."
_LISTS = "A .toml file with lists of columns under the names of these options, as in text = ['title']."
_SCALED = "Divide columns of numbers by their standard deviations."
_OTHERS = "if there are other columns"
NGrams = Annotated[str, _file("word|char", _TERMS, "--ngrams", show_default=True)]
ColumnsFile = Annotated[Path | None, _file("FILE", _LISTS, "--columns")]
Scale = Annotated[bool | None, flag("--scale/--no-scale", panel=FILE, help=_SCALED, show_default=_OTHERS)]

_FORMATS = "csv, tsv, parquet, svmlight or npz; by default from the file's extension."
_MARK = r"Delimiter of a CSV file; \t is a tab. By default as the file shows."
_ENCODING = "Encoding of a CSV file, such as latin-1; by default UTF-8, or cp1252 if it is not."
_DECIMAL = "Decimal mark of a CSV file; by default as the file shows."
_FIRST_ID = (
    "Index of the first feature of an svmlight file; by default that of the model, and in training 0 if a 0 "
    "occurs, else 1."
)
_LINE = "Largest size of a line, in MiB."
_N_FEATURES = "Number of features of an svmlight file, if more than occur in it."
Format = Annotated[str | None, _file("NAME", _FORMATS)]
Delimiter = Annotated[str | None, _file("MARK", _MARK, callback=_parse_delimiter)]
Encoding = Annotated[str | None, _file("NAME", _ENCODING)]
Decimal = Annotated[str | None, _file(".|,", _DECIMAL, callback=_check_decimal)]
MaxLine = Annotated[int | None, _file("MIB", _LINE, "--max-line", min=1, max=1024, show_default="16")]
FirstId = Annotated[int | None, _file("0|1", _FIRST_ID, min=0, max=1)]
NFeatures = Annotated[int | None, _file("N", _N_FEATURES, "--n-features", min=1, max=2**31 - 1)]

_PARAM = "A parameter of the base learner (logistic, if not named), such as C=10; may be repeated."
_NAME = "The base learner at the nodes; 'dichotomies list' has the names, auto chooses."
_TREES = "Trees; more than one are an ensemble, whose probabilities are pooled."
Estimator = Annotated[str, learning("NAME", _NAME, show_default=True)]
Param = Annotated[list[str] | None, learning("NAME=VALUE", _PARAM)]
Seed = Annotated[int, learning("N", "Seed of all that is random.", min=0, show_default=True)]
Trees = Annotated[int, learning("N", _TREES, min=1, show_default=True)]

_TRUST = "A type whose code may run when the model is loaded; may be repeated."
_WORKERS = "Workers; -1: one for each core."
Jobs = Annotated[int | None, option(panel=RUNNING, metavar="N", callback=_check_jobs, help=_WORKERS)]
Trust = Annotated[list[str] | None, option(panel=RUNNING, metavar="TYPE", help=_TRUST)]
Quiet = Annotated[bool, flag("--quiet", panel=RUNNING, help="Do not print progress.")]
Json = Annotated[bool, flag("--json", panel=RUNNING, help="Print one JSON document instead of text.")]
Debug = Annotated[bool, flag("--debug", panel=RUNNING, help="Show the traceback of an error.")]
