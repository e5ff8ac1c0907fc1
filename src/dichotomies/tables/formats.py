"""Formats of table files: `open_table` reads any of them, `open_writer` writes CSV and Parquet."""

from __future__ import annotations

import csv
import gzip
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from dichotomies._common.atomic_files import replaced_when_done
from dichotomies._common.registry import did_you_mean
from dichotomies.tables.array_files import NpzFile, SvmlightFile
from dichotomies.tables.column_files import CsvFile, ParquetFile, TsvFile
from dichotomies.tables.dialect import Dialect
from dichotomies.tables.errors import TableFileError, listing, pyarrow
from dichotomies.tables.table import TableFile

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


#: Significant digits of numbers in text files; Parquet files keep all.
_DIGITS = 6

#: The path that means standard output.
STDOUT = "-"


class CsvWriter:
    """Comma-separated or tab-separated values; the first batch determines the columns."""

    def __init__(self, file: IO[str], delimiter: str = ",") -> None:
        self._rows = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self._has_header = False

    def write(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write rows, given as values by column; masked entries are missing."""
        if not self._has_header:
            self._rows.writerow(columns)
            self._has_header = True
        self._rows.writerows(zip(*map(_cells, columns.values()), strict=True))


def _cells(values: npt.NDArray[Any]) -> list[Any]:
    cells: list[Any] = values.tolist()  # masked entries become None, which csv writes as an empty cell
    if values.dtype.kind == "f":
        return [None if cell is None else f"{cell:.{_DIGITS}g}" for cell in cells]
    return cells


class ParquetWriter:
    """Apache Parquet; the first batch determines the columns."""

    def __init__(self, path: Path) -> None:
        self._path, self._writer = path, cast("Any", None)

    def write(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write rows."""
        arrow = pyarrow()
        table = arrow.table({name: _arrow_array(values) for name, values in columns.items()})
        if self._writer is None:
            self._writer = pyarrow(".parquet").ParquetWriter(self._path, table.schema)
        self._writer.write_table(table.cast(self._writer.schema))

    def close(self) -> None:
        """Write the footer of the file."""
        if self._writer is not None:
            self._writer.close()


def _arrow_array(values: npt.NDArray[Any]) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        return pyarrow().array(values.data, mask=np.ma.getmaskarray(values))
    return pyarrow().array(values)


@contextmanager
def open_writer(path: str | os.PathLike[str]) -> Iterator[CsvWriter | ParquetWriter]:
    """A writer of a CSV, TSV or Parquet file, by the ending of its name; "-" is CSV on standard output.

    The file appears when all is written; one that was there before is replaced only then.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.tables import open_writer
    >>> with open_writer("-") as writer:
    ...     writer.write({"row": np.arange(2), "label": np.array(["a", "b"])})
    row,label
    0,a
    1,b
    """
    if os.fspath(path) == STDOUT:
        yield CsvWriter(sys.stdout)
        sys.stdout.flush()
        return
    target = Path(path)
    kind = _format_to_write(target)
    is_gzip = target.suffix.lower() == ".gz"
    try:
        with replaced_when_done(target) as part, _writer_of(kind, part, is_gzip=is_gzip) as writer:
            yield writer
    except OSError as error:
        raise TableFileError(str(error)) from error


def _format_to_write(path: Path) -> str:
    is_gzip = path.suffix.lower() == ".gz"
    kind = ENDINGS.get((Path(path.stem) if is_gzip else path).suffix.lower())
    if kind not in ("csv", "tsv", "parquet") or (is_gzip and kind == "parquet"):
        raise TableFileError(
            f"{path} cannot be written: tables are written as .csv or .tsv, also with .gz after it, or as "
            ".parquet, and its name should end in one of these."
        )
    return kind


@contextmanager
def _writer_of(kind: str, path: Path, *, is_gzip: bool) -> Iterator[CsvWriter | ParquetWriter]:
    if kind == "parquet":
        parquet = ParquetWriter(path)
        try:
            yield parquet
        finally:
            parquet.close()
        return
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw) if is_gzip else nullcontext(raw) as file,
    ):
        text = TextIOWrapper(cast("IO[bytes]", file), encoding="utf-8", newline="")
        try:
            yield CsvWriter(text, "\t" if kind == "tsv" else ",")
        finally:
            text.detach()  # writes what it still holds, and leaves closing to those who opened
