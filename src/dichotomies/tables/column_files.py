"""Files with named columns, CSV and Parquet, read with pyarrow."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar

from dichotomies.tables.column_choice import chosen
from dichotomies.tables.column_roles import with_roles
from dichotomies.tables.dialect import Dialect, as_utf8
from dichotomies.tables.errors import TableFileError, listing, pyarrow, readable
from dichotomies.tables.table import MISSING, Columns, Table, TableFile

#: Bytes of a CSV file read at a time, unless a line may be longer.
_BLOCK_BYTES = 4 * 2**20


class ColumnFile(TableFile):
    """A file with named columns."""

    def names(self) -> list[str]:
        """The columns of the file."""
        return list(self.schema().names)

    def with_roles(self, columns: Columns) -> Columns:
        """Complete the roles of the columns by reading the file once; see `tables.column_roles`."""
        return with_roles(columns, self)

    def _batches(self, columns: Columns, rows: int) -> Iterator[Table]:
        choice = chosen(columns, self.schema(), self)
        done = 0
        for batch in self.record_batches(choice.names, choice.csv_types(), rows, columns):
            for begin in range(0, batch.num_rows, rows):
                table = choice.table(batch.slice(begin, rows), done)
                done += len(table)
                yield table

    @abstractmethod
    def schema(self) -> Any:
        """Return names and types of all columns, validated."""

    @abstractmethod
    def record_batches(
        self, names: list[str], types: dict[str, Any], rows: int, columns: Columns | None = None
    ) -> Iterator[Any]:
        """Yield some columns as Arrow batches; a CSV file's are of the given types."""

    def _checked(self, schema: Any) -> Any:
        twice = [name for name, times in Counter(schema.names).items() if times > 1]
        if twice:
            raise TableFileError(
                f"{self.path} has several columns of the same name: {listing(map(repr, twice))}. Rename them."
            )
        return schema


class CsvFile(ColumnFile):
    """Comma-separated values with column names in the first line; optionally compressed."""

    kind = "CSV"
    separator: ClassVar[str] = ","

    @cached_property
    def dialect(self) -> Dialect:
        """Delimiter, encoding and decimal mark: as given, or else as the beginning of the file shows."""
        with readable(self.path, self.kind):
            return self.given.found_in(self.path, self.separator)

    @property
    def decimal(self) -> str:
        """The decimal mark."""
        return str(self.dialect.decimal)

    @property
    def _block_size(self) -> int:
        return max(_BLOCK_BYTES, self.dialect.max_line)

    def schema(self) -> Any:
        """Return the schema, with types inferred from the beginning of the file."""
        with self._open() as reader:
            return self._checked(reader.schema)

    def record_batches(
        self,
        names: list[str],
        types: dict[str, Any],
        rows: int,  # noqa: ARG002 - batches are cut by the caller
        columns: Columns | None = None,
    ) -> Iterator[Any]:
        """Yield the batches of a block of the file each."""
        size = max(1, self.path.stat().st_size)
        with self._open(columns, column_types=types, include_columns=names) as reader:
            for block, batch in enumerate(reader, 1):
                yield batch
                self.on_progress(min(0.99, block * self._block_size / size))  # roughly, of compressed files
        self.on_progress(1.0)

    @contextmanager
    def _open(self, columns: Columns | None = None, **conversion: Any) -> Iterator[Any]:
        csv, dialect = pyarrow(".csv"), self.dialect
        with (
            readable(self.path, self.kind),
            self._explained(columns),
            as_utf8(self.path, str(dialect.encoding)) as path,
            # Single-threaded, because only then errors have row numbers. No Python callback may be among the
            # options: a thread of pyarrow would release it, which aborts a process that is ending.
            csv.open_csv(
                path,
                read_options=csv.ReadOptions(use_threads=False, block_size=self._block_size),
                parse_options=csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
                convert_options=csv.ConvertOptions(
                    decimal_point=dialect.decimal, null_values=MISSING, **conversion
                ),
            ) as reader,
        ):
            yield reader

    @contextmanager
    def _explained(self, columns: Columns | None) -> Iterator[None]:
        """Translate errors of the reader to messages for users."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise TableFileError(f"{self.path} is not UTF-8 text in its first line; {_ENCODING}.") from error
        except pyarrow().ArrowInvalid as error:
            can_ignore = columns is not None and not columns.of_a_model
            raise TableFileError(self._explanation(str(error), can_ignore=can_ignore)) from error

    def _explanation(self, message: str, *, can_ignore: bool) -> str:
        if "Empty CSV" in message:
            return f"{self.path} is empty; its first line should hold the names of the columns."
        if "straddl" in message:
            return (
                f"{self.path} has a line of more than {self.dialect.max_line:,} bytes; correct it (a "
                "quotation mark may be missing), or allow it (--max-line)."
            )
        if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message):
            line, expected, actual = found.groups()
            return (
                f"{self.path} has {actual} values in line {line} (not counting empty lines), but its first "
                f"line has {expected} columns; correct the line, or say what stands between values "
                "(--delimiter)."
            )
        if found := re.search(
            r"column #(\d+): Row #(\d+): CSV conversion error.*?: (.*)", message, re.DOTALL
        ):
            return self._about_value(int(found[1]), found[2], found[3].strip(), can_ignore=can_ignore)
        return f"{self.path} could not be read as CSV: {message.splitlines()[0]}."

    def _about_value(self, place: int, line: str, found: str, *, can_ignore: bool) -> str:
        where = f"in line {line} (not counting empty lines), in the column {self.names()[place]!r}"
        if "UTF8" in found:
            return f"{self.path} is not UTF-8 text {where}; {_ENCODING}."
        remedy = (
            ", or change how the column is read (--categorical, --text or --ignore)" if can_ignore else ""
        )
        if _THOUSANDS.search(found):
            remedy = ": numbers must have no separators of thousands"
        elif re.search(r"\d,\d", found) and self.dialect.decimal == ".":
            remedy = ", or say that the decimal mark is a comma (--decimal ,)"
        return f"{self.path} has something that is not a number ({found}) {where}; correct it{remedy}."


#: Two kinds of marks in a number, one of them before three digits.
_THOUSANDS = re.compile(r"\d(,\d{3}\b.*\.\d|\.\d{3}\b.*,\d|(,\d{3}){2}|(\.\d{3}){2}|[ \u00a0\u202f']\d{3}\b)")
_ENCODING = "say what it is (--encoding latin-1), or convert it"


class TsvFile(CsvFile):
    """Tab-separated values."""

    separator = "\t"


class ParquetFile(ColumnFile):
    """Apache Parquet."""

    kind = "Parquet"

    def schema(self) -> Any:
        """Return names and types of all columns."""
        with readable(self.path, self.kind):
            return self._checked(pyarrow(".parquet").read_schema(self.path))

    def record_batches(
        self,
        names: list[str],
        types: dict[str, Any],  # noqa: ARG002 - Parquet files have their own
        rows: int,
        columns: Columns | None = None,  # noqa: ARG002 - for messages about CSV files
    ) -> Iterator[Any]:
        """Yield batches of some rows."""
        with readable(self.path, self.kind), pyarrow(".parquet").ParquetFile(self.path) as file:
            done = 0
            for batch in file.iter_batches(batch_size=rows, columns=names, use_threads=False):
                batch.validate(full=True)  # a damaged file may hold texts that are none
                yield batch
                done += batch.num_rows
                self.on_progress(done / file.metadata.num_rows)
