"""Roles of columns that were not named: number, category, date, text, or left out; decided from all rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from dichotomies.tables.column_choice import check_roles
from dichotomies.tables.dates import date_formats
from dichotomies.tables.errors import TableFileError, listing, pyarrow
from dichotomies.tables.table import MISSING, Columns

if TYPE_CHECKING:
    from dichotomies.tables.column_files import ColumnFile

#: Names that row numbers have, in files written by other programs.
_ROW_NUMBERS = {"", "index", "id", "row", "rownames", "row_id", "unnamed: 0", "__index_level_0__"}
#: Different values, above which a column whose values are of several words is text.
_TEXT_VALUES = 100
#: Rows up to which a different value in every row means nothing.
_FEW_ROWS = 20
#: Different values that are counted; more are as many.
_COUNTED = 10_000
_BATCH_ROWS = 65_536


class Found(NamedTuple):
    """Role of a column, with the reason or a remark."""

    column: str
    role: str
    remark: str = ""


def with_roles(columns: Columns, file: ColumnFile) -> Columns:
    r"""Give every column a role: the one that `columns` names, or else the one that its values suggest.

    - *number*: all values are numbers, or true and false. Values such as 011 are codes, thus categories.
    - *date*: all values are dates or times, all written in the same way.
    - *text*: more than 100 different values, of two words or more on average.
    - *category*: any other words, unless more than half of the rows have a value of their own.
    - Left out: row numbers without a name of their own, columns without values or with the same word in every
      row, words that are different in most rows, and types that are none of these, such as lists.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dichotomies.tables import Columns, open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("born,height,city,y\n2001-02-03,1.8,Bonn,a\n1999-12-31,,Ulm,b\n")
    ...     columns = open_table(path).with_roles(Columns(label="y"))
    >>> columns.features, columns.categorical, columns.date
    (('height',), ('city',), ('born',))
    """
    schema = file.schema()
    types = dict(zip(schema.names, schema.types, strict=True))
    check_roles(columns, types, file)
    named = {name: option.removeprefix("--") for name, option in columns.roles()}
    found = {name: Found(name, _NAMED[role], "as told") for name, role in named.items() if role in _NAMED}
    open_names = [name for name in types if name not in named]
    native = {name: _native_role(types[name]) if file.kind != "CSV" else None for name in open_names}
    natives = [Found(name, *role) for name, role in native.items() if role is not None]
    found |= {each.column: each for each in natives if each.role == "left out"}
    natives = [each for each in natives if each.role != "left out"]
    found |= {each.column: each for each in _with_gaps(natives, file)}
    seen = _seen(file, [name for name in open_names if native[name] is None])
    found |= {name: Found(name, *each.role()) for name, each in seen.items()}
    for name in [name for name in native if _is_row_number(name, found[name], file)]:
        found[name] = Found(name, "left out", "row numbers")
        _warn_about_row_numbers(name, file)
    return _completed(columns, [found[name] for name in types if name in found], file)


def _warn_about_row_numbers(name: str, file: ColumnFile) -> None:
    said = (
        f"The column {name!r} of {file.path} holds row numbers, and is left out; read it as a feature by "
        f"naming it (--numeric {name!r})."
        if name
        else f"A column of {file.path} has no name, and is left out as the row numbers of another program; "
        "give it a name to read it."
    )
    warnings.warn(said, stacklevel=4)


#: Role by the option that names it.
_NAMED = {
    "numeric": "number",
    "categorical": "category",
    "date": "date",
    "text": "text",
    "ignore": "left out",
}


def _completed(columns: Columns, found: list[Found], file: ColumnFile) -> Columns:
    def of(role: str) -> tuple[str, ...]:
        return tuple(each.column for each in found if each.role == role)

    if not any(each.role != "left out" for each in found):
        why = listing(f"{each.column!r} ({each.remark})" for each in found if each.remark != "as told")
        raise TableFileError(
            f"{file.path} has no column left to learn from" + (f"; left out: {why}." if why else ".")
        )
    return replace(
        columns,
        features=of("number"),
        numeric=(),
        categorical=of("category"),
        date=of("date"),
        text=of("text"),
        found=tuple(found),
        allow_missing=True,
    )


def _native_role(kind: Any) -> tuple[str, str] | None:
    """Return the role and remark of a Parquet type; None for words, whose values decide."""
    is_a = pyarrow().types
    numeric = (is_a.is_integer, is_a.is_floating, is_a.is_boolean, is_a.is_decimal)
    if any(check(kind) for check in numeric):
        return "number", ""
    if is_a.is_timestamp(kind) or is_a.is_date(kind):
        return "date", ""
    if is_a.is_null(kind):
        return "left out", "no values"
    value = kind.value_type if is_a.is_dictionary(kind) else kind
    if is_a.is_string(value) or is_a.is_large_string(value) or is_a.is_dictionary(kind):
        return None
    return "left out", f"of the type {kind}"


def _with_gaps(natives: list[Found], file: ColumnFile) -> Iterator[Found]:
    """Say how many numbers of a column are missing; leave out columns without values."""
    is_null, n_rows = pyarrow(".compute").is_null, 0
    gaps = dict.fromkeys((each.column for each in natives), 0)
    for batch in file.record_batches(list(gaps), {}, _BATCH_ROWS) if gaps else ():
        n_rows += len(batch)
        for name in gaps:
            gaps[name] += is_null(batch.column(name), nan_is_null=True).true_count
    for each in natives:
        n_missing = gaps[each.column]
        if n_missing == n_rows > 0:
            yield Found(each.column, "left out", "no values")
        elif n_missing and each.role == "number":
            yield each._replace(remark=f"missing in {n_missing:,}")
        else:
            yield each


def _seen(file: ColumnFile, names: list[str]) -> dict[str, _Seen]:
    """Read all values of some columns, as text."""
    seen = {name: _Seen(decimal=file.decimal) for name in names}
    if names:
        string = pyarrow().string()
        for batch in file.record_batches(names, dict.fromkeys(names, string), _BATCH_ROWS):
            for name, each in seen.items():
                each.add(batch.column(name).cast(string))
    return seen


def _is_row_number(name: str, found: Found, file: ColumnFile) -> bool:
    """Return True for a column without a name, or one called id or so with consecutive numbers."""
    if not name or found.role != "number" or name.lower() not in _ROW_NUMBERS:
        return not name
    last = None
    types = {name: pyarrow().float64()}
    for batch in file.record_batches([name], types, _BATCH_ROWS):
        numbers = batch.column(name).cast("float64").to_numpy(zero_copy_only=False)
        steps = numbers[1:] - numbers[:-1]
        if (steps != 1).any() or (last is not None and numbers[0] != last + 1):
            return False
        last = numbers[-1]
    return True


@dataclass
class _Seen:
    """Properties that all values of a column share."""

    decimal: str = "."
    rows: int = 0
    values: int = 0
    spaces: int = 0
    are_numbers: bool = True
    are_truths: bool = True
    are_codes: bool = False
    formats: list[str] | None = None
    numbers: int = 0
    word: str = ""
    different: set[str] = field(default_factory=set)

    def add(self, column: Any) -> None:
        """Take more values into account."""
        compute = pyarrow(".compute")
        self.rows += len(column)
        present = compute.is_in(column, pyarrow().array([None, *MISSING], pyarrow().string()))
        values = compute.utf8_trim_whitespace(column.filter(compute.invert(present)))
        if not len(values):
            return
        self.values += len(values)
        self.are_numbers = self.are_numbers and self._are_numbers(values)
        if self.are_numbers:
            self.are_codes |= compute.any(compute.match_substring_regex(values, r"^[-+]?0\d")).as_py()
            self.are_truths = False
            if not self.are_codes:
                return
        self._count_numbers(values)
        different = values.unique()
        if len(self.different) <= _COUNTED:
            self.different.update(different.to_pylist())
        lower = compute.utf8_lower(different)
        self.are_truths &= set(lower.to_pylist()[:3]) <= {"true", "false"}
        self.spaces += compute.sum(compute.count_substring(values, " ")).as_py()
        if self.formats != []:
            self.formats = date_formats(different, self.formats)

    def _count_numbers(self, values: Any) -> None:
        """Count values that are numbers, and remember one that is not."""
        compute = pyarrow(".compute")
        is_number = compute.match_substring_regex(values, rf"^[-+]?\d+([{self.decimal}]\d*)?$")
        self.numbers += compute.sum(is_number).as_py()
        words = values.filter(compute.invert(is_number))
        self.word = self.word or (words[0].as_py() if len(words) else "")

    def _are_numbers(self, values: Any) -> bool:
        compute = pyarrow(".compute")
        if self.decimal == ",":
            values = compute.replace_substring(values, ",", ".", max_replacements=1)
        try:
            values.cast("float64")
        except pyarrow().ArrowInvalid:
            return False
        return True

    def role(self) -> tuple[str, str]:
        """Return the role that the values suggest, and a remark."""
        n_different = len(self.different)
        many = f"{n_different:,} values" if n_different <= _COUNTED else f"more than {_COUNTED:,} values"
        if not self.values:
            return ("left out", "no values") if self.rows else ("number", "")
        if (self.are_numbers and not self.are_codes) or self.are_truths:
            return "number", f"missing in {self.rows - self.values:,}" if self.values < self.rows else ""
        if self.formats:
            return "date", self.formats[0]
        if n_different == 1:
            return "left out", "the same in every row"
        several_words = self.spaces >= self.values
        is_mostly_different = n_different > max(_FEW_ROWS, min(self.values / 2, _COUNTED))
        if several_words and n_different > _TEXT_VALUES:
            return "text", many
        if is_mostly_different and self.numbers > self.values / 2 and self.word:
            return "left out", f"numbers, but for words such as {self.word!r}: leave those cells empty"
        return ("left out", "different in most rows") if is_mostly_different else ("category", many)
