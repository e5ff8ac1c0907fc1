"""Writing tables as CSV or Parquet, a batch at a time; a file appears whole or not at all."""

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
from dichotomies.tables.errors import TableFileError, pyarrow
from dichotomies.tables.formats import ENDINGS

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
