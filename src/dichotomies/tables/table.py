"""`Columns` to read and their roles, `Table` of the rows read, and `TableFile`, base class of files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from scipy.sparse import issparse, vstack

from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies.tables.dialect import Dialect
from dichotomies.tables.errors import TableFileError, listing

if TYPE_CHECKING:
    from dichotomies.tables.column_roles import Found

#: Largest float up to which all integers are representable.
_LARGEST = 2.0**53

#: Cells of CSV files that mean that a number is missing.
MISSING = [
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA",
    "NULL", "NaN", "n/a", "nan", "null", "?", "-", "--", "None", "none",
]  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """Columns to read from a file, by role.

    Attributes
    ----------
    label : str, optional
        The column of labels; if None, labels are not read. NPZ files have them in the array of this name;
        svmlight files always have them first on the line.
    features : tuple of str, optional
        The numeric features, in this order; by default all numeric columns without another role.
    text : tuple of str
        Columns of texts.
    numeric, categorical, date : tuple of str
        Columns to read as numbers, categories and dates, whatever their values suggest.
    ignore : tuple of str
        Columns to skip.
    weight, id : str, optional
        The columns of row weights and row names.
    id_option : str
        Name of the option for `id` in messages.
    n_features : int, optional
        Required number of features for files without column names.
    first_id : int, optional
        Index of the first feature in svmlight files, 0 or 1; by default 0 if a 0 occurs, else 1.
    allow_missing : bool
        Accept missing features (NaN).
    of_a_model : bool
        A model determines the features, so that no option can change them.
    found : tuple of Found
        The role of each column, where a file was asked for them (`TableFile.with_roles`).
    """

    label: str | None = None
    features: tuple[str, ...] | None = None
    text: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    weight: str | None = None
    id: str | None = None
    id_option: str = "--id"
    n_features: int | None = None
    first_id: int | None = None
    allow_missing: bool = False
    of_a_model: bool = False
    found: tuple[Found, ...] = ()

    @property
    def wants_features(self) -> bool:
        """True if any feature is to be read."""
        return self.features is None or bool(self.features)

    def roles(self) -> list[tuple[str, str]]:
        """Return the columns and the options that name them."""
        single = {"--label": self.label, "--weight": self.weight, self.id_option: self.id}
        several = {
            "--text": self.text,
            "--numeric": self.numeric,
            "--categorical": self.categorical,
            "--date": self.date,
            "--ignore": self.ignore,
        }
        found = [(name, option) for option, names in several.items() for name in names]
        return found + [(name, option) for option, name in single.items() if name is not None]

    def named(self) -> list[str]:
        """Return the columns to read besides the numeric features, each once."""
        others = ("--ignore", "--numeric")
        return list(dict.fromkeys(name for name, option in self.roles() if option not in others))

    @property
    def words(self) -> tuple[str, ...]:
        """Columns that are read as text, and how it is used is decided later."""
        return (*self.text, *self.categorical, *self.date)


@dataclass(frozen=True)
class Table:
    """Rows of a file.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        The numeric features.
    y : ndarray of shape (n_rows,) or None
        The labels, as in the file.
    names : tuple of str or None
        Names of the features, if the file has them.
    texts : mapping of str to list of str
        The columns of texts, categories and dates, as written; empty where there is no value.
    categorical, date : tuple of str
        Those of them that are categories and dates.
    weight : ndarray of shape (n_rows,) or None
    ids : ndarray of shape (n_rows,) or None
        Names of the rows.
    first_row : int
        Position of the first row in the file, from 0.
    first_id : int or None
        Index of the first feature of an svmlight file.
    """

    X: Matrix
    y: LabelArray | None = None
    names: tuple[str, ...] | None = None
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    weight: FloatArray | None = None
    ids: LabelArray | None = None
    first_row: int = 0
    first_id: int | None = None
    categorical: tuple[str, ...] = ()
    date: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def labels(self) -> LabelArray:
        """The labels; raise if they were not read."""
        if self.y is None:
            raise ValueError("The labels of this table were not read: name them with Columns(label=...).")
        return self.y

    def rows(self, index: IntArray) -> Table:
        """Return the rows at `index`."""
        texts = {column: [texts[i] for i in index.tolist()] for column, texts in self.texts.items()}
        y, weight, ids = (
            None if values is None else values[index] for values in (self.y, self.weight, self.ids)
        )
        return replace(self, X=self.X[index], y=y, texts=texts, weight=weight, ids=ids)

    @classmethod
    def concatenate(cls, parts: Sequence[Table]) -> Table:
        """Concatenate the rows of all parts."""
        first = parts[0]
        if len(parts) == 1:
            return first
        X = vstack([part.X for part in parts], format="csr") if issparse(first.X) else _joined(parts, "X")
        texts = {name: [text for part in parts for text in part.texts[name]] for name in first.texts}
        y, weight, ids = (_joined(parts, name) for name in ("y", "weight", "ids"))
        return replace(first, X=X, y=y, texts=texts, weight=weight, ids=ids)


def _joined(parts: Sequence[Table], name: str) -> LabelArray | None:
    arrays = [getattr(part, name) for part in parts]
    if arrays[0] is None:
        return None
    is_masked = isinstance(arrays[0], np.ma.MaskedArray)  # np.concatenate would drop the mask
    return cast("Any", np.ma).concatenate(arrays) if is_masked else np.concatenate(arrays)


def text_or_integer(values: LabelArray, path: Path, name: str) -> LabelArray:
    """Return the labels, with bytes decoded and integral floats converted to integers."""
    if values.dtype.kind == "S":
        try:
            return np.char.decode(values, "utf-8")
        except UnicodeDecodeError:
            raise TableFileError(f"{path} has labels in {name!r} that are not UTF-8 text.") from None
    if values.dtype.kind != "f":
        return values
    wrong = np.flatnonzero(~((np.abs(values) <= _LARGEST) & (values == np.round(values))))
    if len(wrong):
        raise TableFileError(
            f"{path} has the label {values[wrong[0]]:g} in {name!r}; labels must be text or whole "
            "numbers, and no larger than 2**53 where they are stored as floats."
        )
    return values.astype(np.int64)


def check_finite(table: Table, path: Path, columns: Columns) -> None:
    """Raise for infinite features, or missing ones if not allowed; the message names row and column."""
    X: Any = table.X
    values = X if isinstance(X, np.ndarray) else X.data
    wrong = np.isinf(values) if columns.allow_missing else ~np.isfinite(values)
    if not wrong.any():
        return
    if X.ndim != wrong.ndim:  # sparse: from the index among stored values to row and column
        place = int(np.flatnonzero(wrong)[0])
        row, column = int((X.indptr <= place).sum()) - 1, int(X.indices[place])
    else:
        row, column = np.argwhere(wrong)[0].tolist()
    value = X[row, column]
    name = f"feature {column}" if table.names is None else f"the column {table.names[column]!r}"
    what, remedy = (
        ("no value", "fill it in or leave out the row") if np.isnan(value) else (value, "correct it")
    )
    if table.names is not None and not columns.of_a_model:
        remedy += ", or leave out the column (--ignore)"
    raise TableFileError(
        f"{path} has {what} in {name} of row {table.first_row + row} (counted from 0); {remedy}."
    )


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
