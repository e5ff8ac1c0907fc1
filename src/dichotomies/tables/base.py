"""`TableFile`: what files of rows share, whatever their format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from dichotomies.tables.errors import TableFileError, listing
from dichotomies.tables.table import Table, check_finite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dichotomies.tables.table import Columns

#: Rows of a batch, unless told otherwise.
BATCH_ROWS = 8192


class TableFile(ABC):
    """A file of rows.

    Parameters
    ----------
    path : Path
    delimiter : str, optional
        What stands between the values of a CSV file.
    """

    #: What the format is called in sentences.
    kind: ClassVar[str]

    #: Where the labels are, unless the user says otherwise.
    default_label: ClassVar[str | None] = None

    def __init__(self, path: Path, delimiter: str | None = None) -> None:
        self.path = path
        self.delimiter = delimiter
        if not path.exists():
            raise TableFileError(f"There is no file {path}.")

    def batches(self, columns: Columns, rows: int = BATCH_ROWS) -> Iterator[Table]:
        """At most `rows` rows at a time, in the order of the file; a file without rows is an error."""
        done = 0
        for batch in self._batches(columns, rows):
            check_finite(batch, self.path, columns)
            done += len(batch)
            yield batch
        if not done:
            raise TableFileError(f"{self.path} has no rows.")

    def read(self, columns: Columns) -> Table:
        """All rows at once."""
        return Table.concatenate(list(self.batches(columns)))

    @abstractmethod
    def names(self) -> list[str]:
        """The columns of the file; for files without named columns, the arrays in it."""

    @abstractmethod
    def _batches(self, columns: Columns, rows: int) -> Iterator[Table]:
        """As `batches`, without the checks that all formats share."""

    def _refuse_named(self, columns: Columns) -> None:
        """Refuse to look for named columns in a file that has none."""
        wanted = [*columns.text, *columns.ignore, columns.weight, columns.id]
        named = [name for name in wanted if name is not None]
        if named:
            raise TableFileError(
                f"{self.path} is a {self.kind} file, whose features have no names: it cannot have the "
                f"columns {listing(map(repr, named))}. Use a CSV or Parquet file."
            )
