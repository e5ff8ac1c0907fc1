"""Files with named columns, CSV and Parquet, read with pyarrow."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from dichotomies.tables.base import TableFile
from dichotomies.tables.column_choice import Choice, chosen
from dichotomies.tables.errors import TableFileError, listing, pyarrow, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dichotomies.tables.table import Columns, Table

#: Bytes of a CSV file read at a time; a line must fit.
_BLOCK_BYTES = 4 * 2**20


class ColumnFile(TableFile):
    """A file with named columns."""

    def names(self) -> list[str]:
        """The columns of the file."""
        return list(self._schema().names)

    def _batches(self, columns: Columns, rows: int) -> Iterator[Table]:
        choice = chosen(columns, self._schema(), self)
        done = 0
        with readable(self.path, self.kind), self._explained(columns):
            for batch in self._record_batches(choice, rows):
                for begin in range(0, batch.num_rows, rows):
                    table = choice.table(batch.slice(begin, rows), done)
                    done += len(table)
                    yield table

    @contextmanager
    def _explained(self, columns: Columns | None = None) -> Iterator[None]:  # noqa: ARG002 - of some formats
        """Translate errors of the format's reader to messages for users."""
        yield

    @abstractmethod
    def _schema(self) -> Any:
        """Return names and types of all columns, validated."""

    @abstractmethod
    def _record_batches(self, choice: Choice, rows: int) -> Iterator[Any]:
        """Yield the selected columns, a few rows at a time."""

    def _checked(self, schema: Any) -> Any:
        twice = [name for name, times in Counter(schema.names).items() if times > 1]
        if twice:
            raise TableFileError(
                f"{self.path} has several columns of the same name: {listing(map(repr, twice))}. Rename them."
            )
        return schema


class CsvFile(ColumnFile):
    """Comma-separated values, UTF-8, with column names in the first line; optionally compressed."""

    kind = "CSV"
    separator: ClassVar[str] = ","

    def _schema(self) -> Any:
        """Return the schema, with types inferred from the beginning of the file."""
        self._bad_row: Any = None
        with readable(self.path, self.kind), self._explained():
            return self._checked_header(self._open().schema)

    def _record_batches(self, choice: Choice, rows: int) -> Iterator[Any]:  # noqa: ARG002 - cut by the caller
        yield from self._open(column_types=choice.csv_types(), include_columns=choice.names)

    def _open(self, **conversion: Any) -> Any:
        csv = pyarrow(".csv")
        return csv.open_csv(
            self.path,
            # single-threaded, because only then errors have row numbers
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=csv.ParseOptions(
                delimiter=self.delimiter or self.separator,
                newlines_in_values=True,
                invalid_row_handler=self._keep_bad_row,
            ),
            convert_options=csv.ConvertOptions(**conversion),
        )

    def _keep_bad_row(self, row: Any) -> str:
        self._bad_row = row
        return "error"

    @contextmanager
    def _explained(self, columns: Columns | None = None) -> Iterator[None]:
        try:
            yield
        except pyarrow().ArrowInvalid as error:
            can_ignore = columns is not None and not columns.of_a_model
            raise TableFileError(self._explanation(str(error), can_ignore=can_ignore)) from error

    def _explanation(self, message: str, *, can_ignore: bool) -> str:
        if "Empty CSV" in message:
            return f"{self.path} is empty; its first line should hold the names of the columns."
        if self._bad_row is not None:
            row = self._bad_row
            return (
                f"{self.path} has {row.actual_columns} values in line {row.number} (not counting empty "
                f"lines), but its first line has {row.expected_columns} columns; correct the line, or say "
                "what stands between values (--delimiter)."
            )
        if "UTF8" in message:
            return f"{self.path} is not UTF-8 text; convert it first (iconv -f latin1 -t utf-8)."
        if "conversion error" in message:
            found = message.rpartition(": ")[2].strip()
            place = message.partition("Row #")[2].partition(":")[0]
            remedy = ", or leave out the column (--ignore)" if can_ignore else ""
            return (
                f"{self.path} has something that is not a number ({found}) in line {place} (not counting "
                f"empty lines), in a column that begins with numbers; correct it{remedy}."
            )
        return f"{self.path} could not be read as CSV: {message.splitlines()[0]}."

    def _checked_header(self, schema: Any) -> Any:
        names = schema.names
        if len(names) == 1 and not self.delimiter and any(mark in names[0] for mark in ";\t|"):
            mark = next(mark for mark in ";\t|" if mark in names[0])
            raise TableFileError(
                f"{self.path} seems to have {mark!r} between its values; say so: --delimiter {mark!r}."
            )
        return self._checked(schema)


class TsvFile(CsvFile):
    """Tab-separated values."""

    separator = "\t"


class ParquetFile(ColumnFile):
    """Apache Parquet."""

    kind = "Parquet"

    def _schema(self) -> Any:
        with readable(self.path, self.kind):
            return self._checked(pyarrow(".parquet").read_schema(self.path))

    def _record_batches(self, choice: Choice, rows: int) -> Iterator[Any]:
        with pyarrow(".parquet").ParquetFile(self.path) as file:
            yield from file.iter_batches(batch_size=rows, columns=choice.names, use_threads=False)
