"""Selection of the columns to read, and their conversion to arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dichotomies._common.registry import did_you_mean
from dichotomies._common.typing import FloatArray, LabelArray
from dichotomies.tables.errors import TableFileError, listing, pyarrow
from dichotomies.tables.table import MISSING, Columns, Table, TableFile, text_or_integer


@dataclass(frozen=True)
class Choice:
    """Columns to read, by role, with their types in the file."""

    columns: Columns
    features: tuple[str, ...]
    types: dict[str, Any]
    file: TableFile

    @property
    def names(self) -> list[str]:
        """Return all columns to read."""
        return [*self.features, *(name for name in self.columns.named() if name not in self.features)]

    def csv_types(self) -> dict[str, Any]:
        """Return the types to read CSV columns as: labels and row names as text, so that 011 stays 011."""
        arrow = pyarrow()
        types = {name: arrow.string() for name in self.columns.named()}
        for name in [*self.features, self.columns.weight]:
            if name is not None and arrow.types.is_boolean(self.types[name]):
                types[name] = arrow.bool_()
            elif name not in (None, self.columns.id):  # row names stay as written
                types[name] = arrow.float64()
        return types

    def table(self, batch: Any, first_row: int) -> Table:
        """Convert a batch to arrays."""
        X = np.empty((batch.num_rows, len(self.features)))
        for place, name in enumerate(self.features):
            X[:, place] = _numbers(batch.column(name))
        columns = self.columns
        return Table(
            X=X,
            y=None if columns.label is None else self._labels(batch.column(columns.label), first_row),
            names=self.features,
            texts={name: _texts(batch.column(name)) for name in columns.words},
            weight=None if columns.weight is None else self._weights(batch.column(columns.weight), first_row),
            ids=None if columns.id is None else _names(batch.column(columns.id)),
            first_row=first_row,
            categorical=columns.categorical,
            date=columns.date,
        )

    def _labels(self, column: Any, first_row: int) -> LabelArray:
        is_decimal = pyarrow().types.is_decimal(column.type)
        values = (column.cast("float64") if is_decimal else _decoded(column)).to_pylist()
        for row, value in enumerate(values):
            if value is None or value == "" or value != value:
                raise TableFileError(
                    f"{self.file.path} has no label in row {first_row + row} (counted from 0, column "
                    f"{self.columns.label!r}); fill it in or leave out the row."
                )
        return text_or_integer(np.array(values), self.file.path, str(self.columns.label))

    def _weights(self, column: Any, first_row: int) -> FloatArray:
        weight = _numbers(column)
        wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        if len(wrong):
            raise TableFileError(
                f"{self.file.path} has the weight {weight[wrong[0]]:g} in row {first_row + wrong[0]} "
                "(counted from 0); weights must be finite and not negative."
            )
        return weight


def chosen(columns: Columns, schema: Any, file: TableFile) -> Choice:
    """Select the columns; raise if one is missing or not numeric."""
    types = dict(zip(schema.names, schema.types, strict=True))
    check_roles(columns, types, file)
    taken = {*columns.named(), *columns.ignore}
    features = columns.features
    if features is None:
        features = tuple(name for name in types if name not in taken)
        if not features and not columns.words:
            raise TableFileError(f"{file.path} has no column left to learn from.")
    _check_features(features, types, file, columns)
    if columns.weight is not None:
        _check_weight(columns.weight, types, file)
    _check_label_type(columns, types, file)
    return Choice(columns, features, types, file)


def check_roles(columns: Columns, types: dict[str, Any], file: TableFile) -> None:
    """Raise if a column does not exist or is named by two options."""
    found: dict[str, str] = {}
    for name, option in columns.roles():
        if name not in types:
            by = "that the model reads" if name in columns.words and columns.of_a_model else f"({option})"
            raise TableFileError(
                f"{file.path} has no column {name!r} {by}; its columns are {listing(types)}."
                f"{did_you_mean(name, types)}"
            )
        if option != columns.id_option and found.setdefault(name, option) != option:
            raise TableFileError(
                f"The column {name!r} is named by {found[name]} and by {option}; it can be one of them only."
            )


def _check_weight(name: str, types: dict[str, Any], file: TableFile) -> None:
    if not _is_numeric(types[name]):
        raise TableFileError(f"{file.path} has weights (--weight) in {name!r} that are not numbers.")


def _check_features(
    features: tuple[str, ...], types: dict[str, Any], file: TableFile, columns: Columns
) -> None:
    missing = [name for name in features if name not in types]
    if missing:
        raise TableFileError(
            f"{file.path} lacks {len(missing)} of the {len(features)} columns that the model was fitted "
            f"with: {listing(map(repr, missing))}."
        )
    if file.kind == "CSV" and columns.features is not None:  # the row that is no number will be named
        return
    words = [name for name in features if not _is_numeric(types[name])]
    if words and columns.of_a_model:
        raise TableFileError(
            f"{file.path} has something that is not numeric in {listing(map(repr, words))}, where the model "
            "was fitted with numbers; correct it."
        )
    if words:
        what, them = ("a column that is", "it") if len(words) == 1 else ("columns that are", "each of them")
        raise TableFileError(
            f"{file.path} has {what} not numeric: {listing(map(repr, words))}. Read {them} as text "
            f"(--text {words[0]!r}) or categories (--categorical), leave {them} out (--ignore), or make "
            f"numbers of {them}."
        )


def _check_label_type(columns: Columns, types: dict[str, Any], file: TableFile) -> None:
    if columns.label is None or file.kind == "CSV":  # labels of CSV files are text
        return
    kind = types[columns.label]
    if pyarrow().types.is_null(kind) or not (_is_numeric(kind) or _is_text(kind)):
        raise TableFileError(
            f"{file.path} has labels of the type {kind} in {columns.label!r}; they must be text or whole "
            "numbers."
        )


def _is_numeric(kind: Any) -> bool:
    is_a = pyarrow().types
    checks = (is_a.is_integer, is_a.is_floating, is_a.is_boolean, is_a.is_decimal, is_a.is_null)
    return any(check(kind) for check in checks)


def _is_text(kind: Any) -> bool:
    is_a = pyarrow().types
    value = kind.value_type if is_a.is_dictionary(kind) else kind
    return bool(is_a.is_string(value) or is_a.is_large_string(value)) or _is_bytes(value)


def _is_bytes(kind: Any) -> bool:
    is_a = pyarrow().types
    return bool(is_a.is_binary(kind) or is_a.is_large_binary(kind) or is_a.is_fixed_size_binary(kind))


def _decoded(column: Any) -> Any:
    """Decode bytes as text; return anything else unchanged."""
    return column.cast("binary").cast("string") if _is_bytes(column.type) else column


def _numbers(column: Any) -> FloatArray:
    if _is_text(column.type):  # a column of a CSV file that also names the rows
        compute = pyarrow(".compute")
        column = compute.if_else(compute.is_in(column, pyarrow().array(MISSING)), None, column)
    values: FloatArray = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    return values


def _texts(column: Any) -> list[str]:
    """Return the values as text, equal ones as one object, and none as the empty text."""
    texts = _decoded(column).cast("string").fill_null("").dictionary_encode()
    different = np.array(texts.dictionary.to_pylist(), dtype=object)
    found: list[str] = different[texts.indices.to_numpy(zero_copy_only=False)].tolist()
    return found


def _names(column: Any) -> LabelArray:
    """Return row names: integers, masked where missing, or else Python's text of the values."""
    if pyarrow().types.is_integer(column.type):
        numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
        return np.ma.masked_array(numbers, column.is_null().to_numpy(zero_copy_only=False))
    return np.array(_texts(column), dtype=object)
