"""Formats of table files, and `open_table`, which opens a file of any of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dichotomies._common.suggestions import did_you_mean
from dichotomies.tables.base import TableFile
from dichotomies.tables.column_files import CsvFile, ParquetFile, TsvFile
from dichotomies.tables.dialect import Dialect
from dichotomies.tables.errors import TableFileError, listing
from dichotomies.tables.npz import NpzFile
from dichotomies.tables.svmlight import SvmlightFile

#: Formats by name.
FORMATS: dict[str, type[TableFile]] = {
    "csv": CsvFile,
    "tsv": TsvFile,
    "parquet": ParquetFile,
    "svmlight": SvmlightFile,
    "npz": NpzFile,
}

#: Format by file name extension; text files may have a further .gz.
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".svm": "svmlight",
    ".npz": "npz",
}


def open_table(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    delimiter: str | None = None,
    **written: Any,
) -> TableFile:
    r"""Open a table file, to be read whole or in batches.

    Parameters
    ----------
    path : path
    format : {"csv", "tsv", "parquet", "svmlight", "npz"}, optional
        By default inferred from the extension: .csv, .tsv, .parquet, .svmlight, .libsvm, .svm or .npz; text
        files may have a further .gz.
    delimiter : str, optional
        Delimiter of a CSV file; by default the one that divides its first rows evenly.
    **written
        Further attributes of the `Dialect` of a text file: `encoding`, `decimal`, `max_line`.

    Returns
    -------
    TableFile

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dichotomies.tables import Columns, open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "fruit.csv")
    ...     _ = path.write_text("weight,length,code\n120,7.5,011\n80,19,007\n")
    ...     table = open_table(path).read(Columns(label="code"))
    >>> table.X
    array([[120. ,   7.5],
           [ 80. ,  19. ]])
    >>> table.y.tolist()
    ['011', '007']
    """
    place = Path(path)
    if place.is_dir():
        raise TableFileError(f"{place} is a folder; give a file.")
    name = format_of(place) if format is None else format
    if name not in FORMATS:
        hint = did_you_mean(name, FORMATS)
        raise TableFileError(f"There is no format {name!r}; choose from {listing(FORMATS)}.{hint}")
    return FORMATS[name](place, Dialect(delimiter, **written))


def format_of(path: Path) -> str:
    """Return the format given by a file's extension."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] == ".gz":
        endings.pop()
    found = ENDINGS.get(endings[-1]) if endings else None
    if found is None:
        raise TableFileError(
            f"The name of {path} does not say what its format is: it should end in {listing(ENDINGS)}. "
            f"Or say it: --format {'|'.join(FORMATS)}."
        )
    return found
