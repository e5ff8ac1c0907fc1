"""`TableFile`: base class of table files of all formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from dichotomies.tables.dialect import Dialect
from dichotomies.tables.errors import TableFileError, listing
from dichotomies.tables.table import Table, check_finite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dichotomies.tables.table import Columns

#: Features of files without named columns, unless the caller gives their number.
MAX_FEATURES = 2**24
#: Indices of sparse matrices are 32-bit integers.
LARGEST_INDEX = 2**31 - 1

#: Default number of rows per batch.
BATCH_ROWS = 8192


class TableFile(ABC):
    """A file of rows.

    Parameters
    ----------
    path : Path
    dialect : Dialect, optional
        Delimiter, encoding and decimal mark of a text file; by default inferred from the file.
    """

    #: Name of the format in messages.
    kind: ClassVar[str]

    #: Default column of the labels.
    default_label: ClassVar[str | None] = None

    def __init__(self, path: Path, dialect: Dialect | None = None) -> None:
        self.path = path
        self.given = dialect or Dialect()
        #: Called with the fraction of a CSV or Parquet file that has been read.
        self.on_progress: Callable[[float], None] = lambda _: None
        if not path.exists():
            raise TableFileError(f"There is no file {path}.")

    def with_roles(self, columns: Columns) -> Columns:
        """Give every column a role that its values suggest; a file without named columns has none."""
        return columns

    @property
    def decimal(self) -> str:
        """The decimal mark."""
        return "."

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
        wanted = [name for name, option in columns.roles() if option != "--label"]
        if wanted:
            raise TableFileError(
                f"{self.path} is a {self.kind} file, whose features have no names: it cannot have the "
                f"columns {listing(map(repr, wanted))}. Use a CSV or Parquet file."
            )

    def _check_width(self, n_features: int, columns: Columns) -> None:
        """Raise for more features than can be, or than are likely to be meant unless the caller says so."""
        if n_features > LARGEST_INDEX:
            raise TableFileError(
                f"{self.path} would have {n_features:,} features, but no more than {LARGEST_INDEX:,} are "
                "possible; correct it."
            )
        if columns.n_features is None and n_features > MAX_FEATURES:
            raise TableFileError(
                f"{self.path} has {n_features:,} features, which takes much memory in every node; correct "
                f"it, or say that it is meant so (--n-features {n_features})."
            )
