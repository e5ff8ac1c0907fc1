"""NPZ files with ``X`` and ``y``, or the parts of a CSR matrix and ``y``, read in batches."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy
from scipy.sparse import csr_array

from dichotomies._common.suggestions import did_you_mean
from dichotomies._common.typing import LabelArray, Matrix
from dichotomies.tables.base import TableFile
from dichotomies.tables.errors import TableFileError, listing, readable
from dichotomies.tables.table import Columns, Table, text_or_integer

_CSR_PARTS = ("data", "indices", "indptr", "shape")


class NpzFile(TableFile):
    """NumPy archive: ``X`` for dense data; ``data``, ``indices``, ``indptr``, ``shape`` for a CSR matrix.

    Further arrays are ignored. Nothing is unpickled.
    """

    kind = "NPZ"
    default_label = "y"

    def names(self) -> list[str]:
        """Return the arrays in the file."""
        with readable(self.path, self.kind), zipfile.ZipFile(self.path) as archive:
            return _members(archive)

    def _batches(self, columns: Columns, rows: int) -> Iterator[Table]:
        self._check_nothing_named(columns)
        with readable(self.path, self.kind), zipfile.ZipFile(self.path) as archive:
            labels = None if columns.label is None else self._labels(archive, columns.label)
            source = self._source(archive)
            self._check_shape(source, columns, labels)
            for begin in range(0, source.n_rows, rows):
                stop = min(begin + rows, source.n_rows)
                X = source.read(stop - begin) if columns.wants_features else np.empty((stop - begin, 0))
                yield Table(X, None if labels is None else labels[begin:stop], first_row=begin)

    def _source(self, archive: zipfile.ZipFile) -> _DenseRows | _SparseRows:
        names = _members(archive)
        if "X" in names:
            return _DenseRows(archive, self.path)
        if set(_CSR_PARTS) <= set(names):
            self._check_is_csr(archive, names)
            return _SparseRows(archive, self.path)
        raise TableFileError(
            f"{self.path} holds the arrays {listing(names)}; it should hold X, or {listing(_CSR_PARTS)}."
        )

    def _check_is_csr(self, archive: zipfile.ZipFile, names: list[str]) -> None:
        """Raise for other matrices with the same parts, which scipy.sparse.save_npz names in ``format``."""
        if "format" not in names:
            return
        said = _ArrayStream(archive, "format", self.path).rest().ravel()[0]
        kind = said.decode("ascii", "replace") if isinstance(said, bytes) else str(said)
        if kind != "csr":
            raise TableFileError(f"{self.path} is a {kind} matrix; save it as CSR: .tocsr().")

    def _labels(self, archive: zipfile.ZipFile, name: str) -> LabelArray:
        names = _members(archive)
        if name not in names:
            raise TableFileError(
                f"{self.path} has no array {name!r} of labels; its arrays are {listing(names)}."
                f"{did_you_mean(name, names)}"
            )
        labels: LabelArray = text_or_integer(_ArrayStream(archive, name, self.path).rest(), self.path, name)
        if labels.ndim != 1 or labels.dtype.kind not in "Uiub":
            raise TableFileError(
                f"{self.path} has labels of shape {labels.shape} and type {labels.dtype} in {name!r}; they "
                "must be one text or whole number per row."
            )
        return labels

    def _check_shape(
        self, source: _DenseRows | _SparseRows, columns: Columns, labels: LabelArray | None
    ) -> None:
        if labels is not None and len(labels) != source.n_rows:
            raise TableFileError(f"{self.path} has {source.n_rows:,} rows, but {len(labels):,} labels.")
        if columns.wants_features:
            self._check_width(source.n_features, columns)
        if columns.wants_features and columns.n_features not in (None, source.n_features):
            raise TableFileError(
                f"{self.path} has {source.n_features:,} features, but the model was fitted with "
                f"{columns.n_features:,}."
            )


class _ArrayStream:
    """One array of an NPZ file, read sequentially."""

    def __init__(self, archive: zipfile.ZipFile, name: str, path: Path) -> None:
        self._file = archive.open(f"{name}.npy")
        there = archive.getinfo(f"{name}.npy").file_size
        version = npy.read_magic(self._file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        self.shape, self.is_fortran, self.dtype = read_header(self._file)
        if self.dtype.hasobject:
            raise TableFileError(
                f"{path} holds pickled objects in {name!r}, which are not read, because they could run any "
                "code; save the array as numbers or as text (astype(str))."
            )
        if math.prod(self.shape) * self.dtype.itemsize > there:
            raise EOFError(f"{name} is said to be of shape {self.shape}, but holds only {there:,} bytes")
        self._left = self.shape[0] if self.shape else 1

    def read(self, n: int) -> npt.NDArray[Any]:
        """Return the next `n` entries along the first axis."""
        shape = (n, *self.shape[1:])
        size = int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize
        content = self._file.read(size)
        if len(content) < size:
            raise EOFError("an array ends too early")
        self._left -= n
        values: npt.NDArray[Any] = np.frombuffer(content, self.dtype).reshape(shape)
        return values

    def rest(self) -> npt.NDArray[Any]:
        """Return everything not read yet."""
        values = self.read(self._left)
        if self.is_fortran and len(self.shape) > 1:
            return values.reshape(self.shape[::-1]).T
        return values.reshape(self.shape) if len(self.shape) != 1 else values


class _DenseRows:
    """The rows of the array ``X``."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._stream = _ArrayStream(archive, "X", path)
        shape = self._stream.shape
        if len(shape) != 2 or self._stream.dtype.kind not in "fiub":
            raise TableFileError(
                f"{path} has an X of shape {shape} and type {self._stream.dtype}; it must be a matrix of "
                "numbers."
            )
        self.n_rows, self.n_features = shape
        # Fortran order: no row is complete before the last column has been read
        self._whole = self._stream.rest() if self._stream.is_fortran else None
        self._done = 0

    def read(self, n: int) -> Matrix:
        """Return the next `n` rows."""
        rows = self._stream.read(n) if self._whole is None else self._whole[self._done : self._done + n]
        self._done += n
        # a copy, because the buffer is read-only and kernels may require writable arrays
        return np.array(rows, dtype=np.float32 if rows.dtype == np.float32 else np.float64, order="C")


class _SparseRows:
    """The rows of a CSR matrix."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        streams = {name: _ArrayStream(archive, name, path) for name in _CSR_PARTS}
        self._data, self._indices = streams["data"], streams["indices"]
        for name, stream in streams.items():
            wrong_size = stream.shape != (2,) if name == "shape" else len(stream.shape) != 1
            if wrong_size or stream.dtype.kind not in ("fiub" if name == "data" else "iu"):
                raise TableFileError(
                    f"{path} has {name!r} of shape {stream.shape} and type {stream.dtype}, which is no part "
                    "of a CSR matrix; save the matrix again."
                )
        self.n_rows, self.n_features = (int(size) for size in streams["shape"].rest())
        if self.n_features < 0:
            raise TableFileError(f"{path} has a shape with a negative number of features.")
        self._ends = streams["indptr"].rest()
        self._path, self._done = path, 0
        if len(self._ends) != self.n_rows + 1 or (np.diff(self._ends) < 0).any() or self._ends[0] != 0:
            raise TableFileError(f"{path} has an indptr that does not fit its shape.")

    def read(self, n: int) -> Matrix:
        """Return the next `n` rows."""
        ends = self._ends[self._done : self._done + n + 1]
        size = int(ends[-1] - ends[0])
        data, indices = self._data.read(size).astype(np.float64), self._indices.read(size)
        if size and not (indices.min() >= 0 and indices.max() < self.n_features):
            raise TableFileError(f"{self._path} has indices beyond its {self.n_features:,} features.")
        self._done += n
        parts = (data, indices.astype(np.int32), (ends - ends[0]).astype(np.int32))
        return csr_array(parts, shape=(n, self.n_features))


def _members(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
