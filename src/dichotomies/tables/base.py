"""`TableFile`: base class of table files of all formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from dichotomies.tables.errors import TableFileError, listing
from dichotomies.tables.table import Table, check_finite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dichotomies.tables.table import Columns

#: Default number of rows per batch.
BATCH_ROWS = 8192


class TableFile(ABC):
    """A file of rows.

    Parameters
    ----------
    path : Path
    delimiter : str, optional
        Delimiter of a CSV file.
    """

    #: Name of the format in messages.
    kind: ClassVar[str]

    #: Default column of the labels.
    default_label: ClassVar[str | None] = None

    def __init__(self, path: Path, delimiter: str | None = None) -> None:
        self.path = path
        self.delimiter = delimiter
        if not path.exists():
            raise TableFileError(f"There is no file {path}.")

    def batches(self, columns: Columns, rows: int = BATCH_ROWS) -> Iterator[Table]:
        """Yield at most `rows` rows at a time, in file order; raise if the file has no rows."""
        done = 0
        for batch in self._batches(columns, rows):
            check_finite(batch, self.path, columns)
            done += len(batch)
            yield batch
        if not done:
            raise TableFileError(f"{self.path} has no rows.")

    def read(self, columns: Columns) -> Table:
        """Return all rows."""
        return Table.concatenate(list(self.batches(columns)))

    @abstractmethod
    def names(self) -> list[str]:
        """Return the columns of the file or, for files without named columns, its arrays."""

    @abstractmethod
    def _batches(self, columns: Columns, rows: int) -> Iterator[Table]:
        """Implement `batches` without the checks that all formats share."""

    def _check_nothing_named(self, columns: Columns) -> None:
        """Raise if named columns are requested from a file that has none."""
        wanted = [*columns.text, *columns.ignore, columns.weight, columns.id]
        named = [name for name in wanted if name is not None]
        if named:
            raise TableFileError(
                f"{self.path} is a {self.kind} file, whose features have no names: it cannot have the "
                f"columns {listing(map(repr, named))}. Use a CSV or Parquet file."
            )
