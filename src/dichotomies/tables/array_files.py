"""Files without named columns: NPZ with a matrix and its labels, and svmlight (LIBSVM)."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import IO, Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.datasets import load_svmlight_file

from dichotomies._common.chunks import row_slices
from dichotomies._common.registry import did_you_mean
from dichotomies._common.typing import LabelArray, Matrix
from dichotomies.tables.dialect import opened
from dichotomies.tables.errors import TableFileError, listing, readable
from dichotomies.tables.table import BATCH_ROWS, LARGEST_INDEX, Columns, Table, TableFile, text_or_integer

_CSR_PARTS = ("data", "indices", "indptr", "shape")
_PAIR = re.compile(rb"(\d+|qid):[^\s:]+")
_ID = re.compile(rb"(\d+):")


class NpzFile(TableFile):
    """NumPy archive: ``X`` for dense data; ``data``, ``indices``, ``indptr``, ``shape`` for a CSR matrix."""

    kind = "NPZ"
    default_label = "y"

    def names(self) -> list[str]:
        """Return the arrays in the file."""
        with self._arrays() as arrays:
            return list(arrays)

    @contextmanager
    def _arrays(self) -> Iterator[Any]:
        with readable(self.path, self.kind), self.path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise zipfile.BadZipFile("it is no archive")
            with np.load(file, allow_pickle=False) as arrays:
                yield arrays

    def read(self, columns: Columns) -> Table:
        """Return all rows."""
        return next(self.batches(columns, sys.maxsize))

    def _batches(self, columns: Columns, rows: int) -> Iterator[Table]:
        self._check_nothing_named(columns)
        with self._arrays() as arrays:
            X: Any = self._matrix(arrays, columns)
            y = None if columns.label is None else self._labels(arrays, columns.label)
        n_rows, n_features = X.shape
        if y is not None and len(y) != n_rows:
            raise TableFileError(f"{self.path} has {n_rows:,} rows, but {len(y):,} labels.")
        if columns.wants_features and columns.n_features not in (None, n_features):
            raise TableFileError(
                f"{self.path} has {n_features:,} features, but the model was fitted with "
                f"{columns.n_features:,}."
            )
        X = X if columns.wants_features else np.empty((n_rows, 0))
        is_sparse, dtype = issparse(X), np.float32 if X.dtype == np.float32 else np.float64
        for part in row_slices(n_rows, rows):
            taken = X[part] if is_sparse else np.ascontiguousarray(X[part], dtype)
            yield Table(taken, None if y is None else y[part], first_row=part.start)

    def _matrix(self, arrays: Any, columns: Columns) -> Any:
        if "X" in arrays:
            X = self._array(arrays, "X")
            if X.ndim != 2 or X.dtype.kind not in "fiub":
                raise TableFileError(
                    f"{self.path} has an X of shape {X.shape} and type {X.dtype}; it must be a matrix of "
                    "numbers."
                )
            return X
        if not set(_CSR_PARTS) <= set(arrays):
            raise TableFileError(
                f"{self.path} holds the arrays {listing(arrays)}; it should hold X, or {listing(_CSR_PARTS)}."
            )
        kind = self._array(arrays, "format").item() if "format" in arrays else b"csr"
        if kind not in (b"csr", "csr"):  # as scipy.sparse.save_npz names other matrices with the same parts
            said = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
            raise TableFileError(f"{self.path} is a {said} matrix; save it as CSR: .tocsr().")
        parts = {name: self._array(arrays, name) for name in _CSR_PARTS}
        for name, part in parts.items():
            wrong_size = part.shape != (2,) if name == "shape" else part.ndim != 1
            if wrong_size or part.dtype.kind not in ("fiub" if name == "data" else "iu"):
                raise TableFileError(
                    f"{self.path} has {name!r} of shape {part.shape} and type {part.dtype}, which is no part "
                    "of a CSR matrix; save the matrix again."
                )
        data, indices, ends, shape = parts.values()
        try:
            X = csr_array((data.astype(np.float64), indices, ends), shape=tuple(shape.tolist()))
            X.check_format(full_check=True)
        except ValueError as error:
            raise TableFileError(f"{self.path} holds no CSR matrix: {error}; save it again.") from error
        if columns.wants_features:
            self._check_width(X.shape[1], columns)
        return X

    def _labels(self, arrays: Any, name: str) -> LabelArray:
        if name not in arrays:
            raise TableFileError(
                f"{self.path} has no array {name!r} of labels; its arrays are {listing(arrays)}."
                f"{did_you_mean(name, arrays)}"
            )
        labels = text_or_integer(self._array(arrays, name), self.path, name)
        if labels.ndim != 1 or labels.dtype.kind not in "Uiub":
            raise TableFileError(
                f"{self.path} has labels of shape {labels.shape} and type {labels.dtype} in {name!r}; they "
                "must be one text or whole number per row."
            )
        return labels

    def _array(self, arrays: Any, name: str) -> Any:
        try:
            return arrays[name]
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            raise TableFileError(
                f"{self.path} holds pickled objects in {name!r}, which are not read, because they could run "
                "any code; save the array as numbers or as text (astype(str))."
            ) from error


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
        parts = list(self.batches(replace(columns, n_features=None), BATCH_ROWS))
        width = max(part.X.shape[1] for part in parts)
        for part in parts if columns.wants_features else ():
            part.X.resize((len(part), width))
        whole = Table.concatenate(parts)
        if whole.y is not None:
            whole = replace(whole, y=_as_numbers(whole.y))
        if not columns.wants_features:
            return whole
        first = columns.first_id
        if first is None:
            first = 0 if (whole.X.indices == 0).any() else 1
        width = width - first if columns.n_features is None else columns.n_features
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
        try:  # labels may be texts, and are put back afterwards; index 0 is in the first column
            X, _ = load_svmlight_file(BytesIO(b"\n".join(pairs) + b"\n"), zero_based=True)
        except (ValueError, OverflowError) as error:
            raise TableFileError(self._explanation(pairs, numbers)) from error
        X = csr_array(X)
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
        """Return numbers of the lines with rows, their labels, and the lines with 0 as label."""
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
            pairs.append(b" ".join([b"0", *rest]))
        return numbers, labels, pairs

    def _explanation(self, pairs: list[bytes], numbers: list[int]) -> str:
        for number, line in zip(numbers, pairs, strict=True):
            try:
                load_svmlight_file(BytesIO(line + b"\n"), zero_based=True)
            except (ValueError, OverflowError):
                wrong = next((each for each in line.split()[1:] if not _PAIR.fullmatch(each)), None)
                said = "features that are not in ascending order, or values that are not numbers"
                largest = max((int(each) for each in _ID.findall(line)), default=0)
                if largest >= LARGEST_INDEX:
                    said = f"a feature {largest}, where {LARGEST_INDEX - 1} is the largest possible,"
                if wrong is not None:
                    said = f"{wrong.decode('utf-8', 'replace')!r} where feature:value should be"
                return f"{self.path} has {said} in line {number}."
        return f"{self.path} could not be read as svmlight."

    def _fitted_to(self, X: Matrix, n_features: int, first: int, lines: list[int] | None = None) -> Matrix:
        """Return `n_features` columns from index `first` on; raise if the file has others."""
        wrong = np.flatnonzero((X.indices < first) | (X.indices >= first + n_features))
        if len(wrong):
            row = int((X.indptr <= wrong[0]).sum()) - 1
            place = f"row {row} (counted from 0)" if lines is None else f"line {lines[row]}"
            raise TableFileError(
                f"{self.path} has a feature {X.indices[wrong[0]]} in {place}, but they should be {first} to "
                f"{first + n_features - 1}."
            )
        X.resize((X.shape[0], first + n_features))
        return X[:, first:]


def _as_numbers(labels: LabelArray) -> LabelArray:
    """Convert labels to integers if all of them are."""
    try:
        numbers = labels.astype(np.int64)
    except (ValueError, OverflowError):
        return labels
    return numbers if (numbers.astype(labels.dtype) == labels).all() else labels
