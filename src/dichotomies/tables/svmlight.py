"""svmlight (LIBSVM) files: a label and pairs ``feature:value`` on every line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import IO

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

from dichotomies._common.typing import LabelArray, Matrix
from dichotomies.tables.base import BATCH_ROWS, LARGEST_INDEX, TableFile
from dichotomies.tables.dialect import opened
from dichotomies.tables.errors import TableFileError, readable
from dichotomies.tables.table import Columns, Table

_PAIR = re.compile(rb"(\d+|qid):[^\s:]+")
_ID = re.compile(rb"(\d+):")


class SvmlightFile(TableFile):
    """A label and pairs ``feature:value`` on every line; text after a # is a comment."""

    kind = "svmlight"
    default_label = "label"

    def names(self) -> list[str]:
        """Return the contents of the file."""
        return ["label"]

    def read(self, columns: Columns) -> Table:
        """Return all rows; the number of features and their first index (0 or 1) are inferred."""
        if columns.of_a_model and columns.wants_features:
            self._first_id(columns)
        as_written = replace(columns, n_features=None)
        whole = Table.concatenate(_padded_to_equal_width(list(super().batches(as_written, BATCH_ROWS))))
        if whole.y is not None:
            whole = replace(whole, y=_as_numbers(whole.y))
        if not columns.wants_features:
            return whole
        first = columns.first_id
        if first is None:
            first = 0 if (whole.X.indices == 0).any() else 1
        width = whole.X.shape[1] - first if columns.n_features is None else columns.n_features
        if width < 1:
            raise TableFileError(f"{self.path} has no features.")
        self._check_width(width, columns)
        return replace(whole, X=self._fitted_to(whole.X, width, first), first_id=first)

    def _batches(self, columns: Columns, rows: int) -> Iterator[Table]:
        self._check_nothing_named(columns)
        done = line = 0
        with readable(self.path, self.kind), opened(self.path) as file:
            while lines := list(islice(self._lines(file), rows)):
                table = self._table(lines, line, columns, done)
                line, done = line + len(lines), done + len(table)
                if len(table):
                    yield table

    def _lines(self, file: IO[bytes]) -> Iterator[bytes]:
        most = self.given.max_line
        while line := file.readline(most + 1):
            if len(line) > most:
                raise TableFileError(
                    f"{self.path} has a line of more than {most:,} bytes; correct or allow it (--max-line)."
                )
            yield line

    def _table(self, lines: list[bytes], first_line: int, columns: Columns, first_row: int) -> Table:
        numbers, labels, pairs = self._split(lines, first_line)
        y = np.array(labels) if columns.label is not None and labels else None
        if not columns.wants_features:
            return Table(np.empty((len(pairs), 0)), y, first_row=first_row)
        X = self._parsed(pairs, numbers)
        if columns.n_features is not None:
            X = self._fitted_to(X, columns.n_features, self._first_id(columns), numbers)
        return Table(X, y, first_row=first_row)

    def _first_id(self, columns: Columns) -> int:
        """Return the index of the first feature; raise where a model does not know it."""
        if columns.first_id is None:
            raise TableFileError(
                f"The model was not fitted to an svmlight file, so it does not know whether the features of "
                f"{self.path} are numbered from 0 or from 1; say it: --first-id 0 or --first-id 1."
            )
        return columns.first_id

    def _split(self, lines: list[bytes], first_line: int) -> tuple[list[int], list[str], list[bytes]]:
        """Return line numbers, labels and remainders of the non-empty lines."""
        numbers, labels, pairs = [], [], []
        for number, line in enumerate(lines, first_line + 1):
            label, *rest = line.partition(b"#")[0].split(None, 1) or [b""]
            if not label:
                continue
            if b"," in label or b":" in label:
                what = "several labels" if b"," in label else "no label"
                raise TableFileError(f"{self.path} has {what} in line {number}; every row must have one.")
            numbers.append(number)
            labels.append(label.decode("utf-8").removeprefix("+"))
            pairs.append(rest[0] if rest else b"")
        return numbers, labels, pairs

    def _parsed(self, pairs: list[bytes], numbers: list[int]) -> Matrix:
        """Parse the features, with index 0 in the first column."""
        text = b"\n".join(b"0 " + rest for rest in pairs) + b"\n"
        try:
            X, _ = load_svmlight_file(BytesIO(text), zero_based=True)
        except (ValueError, OverflowError) as error:
            raise TableFileError(self._explanation(pairs, numbers)) from error
        return csr_array(X)

    def _explanation(self, pairs: list[bytes], numbers: list[int]) -> str:
        for number, rest in zip(numbers, pairs, strict=True):
            try:
                load_svmlight_file(BytesIO(b"0 " + rest + b"\n"), zero_based=True)
            except (ValueError, OverflowError):
                wrong = next((each for each in rest.split() if not _PAIR.fullmatch(each)), None)
                said = "features that are not in ascending order, or values that are not numbers"
                largest = max((int(each) for each in _ID.findall(rest)), default=0)
                if largest >= LARGEST_INDEX:
                    said = f"a feature {largest}, where {LARGEST_INDEX - 1} is the largest possible,"
                if wrong is not None:
                    said = f"{wrong.decode('utf-8', 'replace')!r} where feature:value should be"
                return f"{self.path} has {said} in line {number}."
        return f"{self.path} could not be read as svmlight."

    def _fitted_to(
        self, X: Matrix, n_features: int, first: int, line_numbers: list[int] | None = None
    ) -> Matrix:
        """Return `n_features` columns from index `first` on; raise if the file has others."""
        wrong = np.flatnonzero((X.indices < first) | (X.indices >= first + n_features))
        if len(wrong):
            row = int((X.indptr <= wrong[0]).sum()) - 1
            place = f"row {row} (counted from 0)" if line_numbers is None else f"line {line_numbers[row]}"
            raise TableFileError(
                f"{self.path} has a feature {X.indices[wrong[0]]} in {place}, but they should be {first} to "
                f"{first + n_features - 1}."
            )
        X.resize((X.shape[0], first + n_features))
        return X[:, first:]


def _padded_to_equal_width(tables: list[Table]) -> list[Table]:
    width = max(table.X.shape[1] for table in tables)
    for table in tables:
        if table.X.shape[1] < width:
            table.X.resize((len(table), width))
    return tables


def _as_numbers(labels: LabelArray) -> LabelArray:
    """Convert labels to integers if all of them are."""
    try:
        numbers = labels.astype(np.int64)
    except (ValueError, OverflowError):
        return labels
    return numbers if (numbers.astype(labels.dtype) == labels).all() else labels
