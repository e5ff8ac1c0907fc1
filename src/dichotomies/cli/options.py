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


Data = Annotated[Path, typer.Argument(help="A .csv, .tsv, .parquet, .svmlight or .npz file.", metavar="DATA")]
Model = Annotated[Path, typer.Argument(help="A model file, made by 'dichotomies fit'.", metavar="MODEL")]

Columns = list[str] | None
Label = Annotated[str | None, _column("Column of the labels; in an NPZ file, the name of their array.")]
Text = Annotated[Columns, _column("Text column, used by its words; may be repeated.")]
Categorical = Annotated[Columns, _column("Column of categories, also of numbers; may be repeated.")]
Numeric = Annotated[Columns, _column("Column of numbers; may be repeated.")]
Date = Annotated[Columns, _column("Column of dates; may be repeated.")]
Ignore = Annotated[Columns, _column("Column to skip; may be repeated.")]
Weight = Annotated[str | None, _column("Column of row weights; 2 equals two copies of the row.")]
NGrams = Annotated[
    str,
    option(
        "--ngrams",
        panel=FILE,
        metavar="word|char",
        help="Terms of texts: words and pairs of words, or 2 to 4 characters within words.",
        show_default=True,
    ),
]
ColumnsFile = Annotated[
    Path | None,
    option(
        "--columns",
        panel=FILE,
        metavar="FILE",
        help="A .toml file with lists of columns under the names of these options, as in text = ['title'].",
    ),
]
Scale = Annotated[
    bool | None,
    flag(
        "--scale/--no-scale",
        panel=FILE,
        help="Divide columns of numbers by their standard deviations.",
        show_default="if there are other columns",
    ),
]
Format = Annotated[
    str | None,
    option(
        panel=FILE,
        metavar="NAME",
        help="csv, tsv, parquet, svmlight or npz; by default from the file's extension.",
    ),
]
Delimiter = Annotated[
    str | None,
    option(
        panel=FILE,
        metavar="MARK",
        callback=_parse_delimiter,
        help=r"Delimiter of a CSV file; \t is a tab. By default as the file shows.",
    ),
]
Encoding = Annotated[
    str | None,
    option(
        panel=FILE,
        metavar="NAME",
        help="Encoding of a CSV file, such as latin-1; by default UTF-8, or cp1252 if it is not.",
    ),
]
Decimal = Annotated[
    str | None,
    option(
        panel=FILE,
        metavar=".|,",
        callback=_check_decimal,
        help="Decimal mark of a CSV file; by default as the file shows.",
    ),
]
MaxLine = Annotated[
    int | None,
    option(
        "--max-line",
        panel=FILE,
        metavar="MIB",
        min=1,
        max=1024,
        help="Largest size of a line, in MiB.",
        show_default="16",
    ),
]
FirstId = Annotated[
    int | None,
    option(
        panel=FILE,
        metavar="0|1",
        min=0,
        max=1,
        help="Index of the first feature of an svmlight file; by default that of the model, and in training "
        "0 if a 0 occurs, else 1.",
    ),
]
NFeatures = Annotated[
    int | None,
    option(
        "--n-features",
        panel=FILE,
        metavar="N",
        min=1,
        max=2**31 - 1,
        help="Number of features of an svmlight file, if more than occur in it.",
    ),
]

Output = Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")]
Param = Annotated[
    list[str] | None,
    option(
        panel=LEARNING,
        metavar="NAME=VALUE",
        help="A parameter of the base learner (logistic, if not named), such as C=10; may be repeated.",
    ),
]
Seed = Annotated[
    int, option(panel=LEARNING, min=0, metavar="N", help="Seed of all that is random.", show_default=True)
]
Trees = Annotated[
    int,
    option(
        panel=LEARNING,
        min=1,
        metavar="N",
        help="Trees; more than one are an ensemble, whose probabilities are pooled.",
        show_default=True,
    ),
]

Jobs = Annotated[
    int | None,
    option(panel=RUNNING, metavar="N", callback=_check_jobs, help="Workers; -1: one for each core."),
]
Trust = Annotated[
    list[str] | None,
    option(
        panel=RUNNING,
        metavar="TYPE",
        help="A type whose code may run when the model is loaded; may be repeated.",
    ),
]
Quiet = Annotated[bool, flag("--quiet", panel=RUNNING, help="Do not print progress.")]
Json = Annotated[bool, flag("--json", panel=RUNNING, help="Print one JSON document instead of text.")]
Debug = Annotated[bool, flag("--debug", panel=RUNNING, help="Show the traceback of an error.")]
