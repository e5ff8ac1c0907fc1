"""`SpilledRows`, rows in memory-mapped files sorted by class, and `SpillFolder`, the passes that are done."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, vstack

from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies.rows.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


#: Number of features beyond which their scatter is not summed; trees then need only the means of the classes.
_MANY_FEATURES = 512


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Result of the first pass: classes, their rows, and the sums of their features.

    Attributes
    ----------
    classes : (n_classes,)
        Labels, sorted.
    size, n_values : (n_classes,)
        Number of rows and, if they are sparse, of values stored.
    weight : (n_classes,) or None
        Total weight; None without weights.
    totals : (n_classes, n_features), dense or CSR
        Weighted sum of the features.
    scatter : (n_features, n_features) or None
        Weighted scatter of all rows about their mean; None of more than 512 features.
    dtype : dtype
        Of the features.
    """

    classes: LabelArray
    size: IntArray
    n_values: IntArray
    weight: FloatArray | None
    totals: Any
    scatter: FloatArray | None
    dtype: np.dtype[Any]

    def check_classes(self) -> None:
        """Raise if there are fewer than two classes."""
        if len(self.classes) < 2:
            only = self.classes.tolist()[0]
            raise ValueError(f"A classifier needs at least two classes, but y has only one class: {only!r}.")

    @property
    def is_sparse(self) -> bool:
        """True if rows are CSR."""
        return not isinstance(self.totals, np.ndarray)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.totals.shape[1])

    @property
    def row_bytes(self) -> float:
        """Mean size of a row in memory."""
        if not self.is_sparse:
            return float(self.n_features * self.dtype.itemsize)
        return float(8 + self.n_values.sum() / max(1, self.size.sum()) * (4 + self.dtype.itemsize))

    @classmethod
    def of(cls, batches: Iterable[Rows]) -> RowCounts:
        """Count batches of rows, each with the classes that it has."""
        counts: RowCounts | None = None
        for batch in batches:
            own = cls._of_batch(batch)
            counts = own if counts is None else counts.plus(own)
        if counts is None:
            raise ValueError("There is no batch of rows.")
        return counts

    @classmethod
    def _of_batch(cls, rows: Rows) -> RowCounts:
        is_sparse = not isinstance(rows.X, np.ndarray)
        n_values = np.diff(rows.X.indptr) if is_sparse else np.zeros(len(rows), dtype=np.intp)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        return cls(
            rows.classes,
            rows.class_size,
            np.bincount(rows.codes, n_values, rows.n_classes).astype(np.intp),
            None if rows.weight is None else rows.class_weight,
            rows.class_indicator() @ rows.X,
            _scatter(rows.X, weight),
            rows.X.dtype,
        )

    @property
    def total_weight(self) -> float:
        """Total weight of all rows."""
        return float((self.size if self.weight is None else self.weight).sum())

    @property
    def mean(self) -> FloatArray:
        """Mean of each feature over all rows."""
        total = np.asarray(self.totals.sum(axis=0), dtype=np.float64)
        return total / max(self.total_weight, np.finfo(float).tiny)

    def plus(self, other: RowCounts) -> RowCounts:
        """Counts of both sets of rows."""
        if (self.weight is None) != (other.weight is None):
            raise ValueError("Either all batches have weights, or none has.")
        if (self.classes.dtype.kind in "US") != (other.classes.dtype.kind in "US"):
            one, two = self.classes.tolist()[0], other.classes.tolist()[0]
            raise TypeError(f"Labels of one batch are like {one!r}, those of another like {two!r}.")
        classes = np.union1d(self.classes, other.classes)
        one, two = (_indicator(each.classes, classes) for each in (self, other))
        weight = None
        if self.weight is not None and other.weight is not None:
            weight = one @ self.weight + two @ other.weight
        return RowCounts(
            classes,
            one @ self.size + two @ other.size,
            one @ self.n_values + two @ other.n_values,
            weight,
            one @ self.totals + two @ other.totals,
            self._scatter_with(other),
            np.result_type(self.dtype, other.dtype),
        )

    def _scatter_with(self, other: RowCounts) -> FloatArray | None:
        """Scatter of both sets of rows about their common mean."""
        if self.scatter is None or other.scatter is None:
            return None
        apart, (one, two) = self.mean - other.mean, (self.total_weight, other.total_weight)
        share = one * two / max(one + two, np.finfo(float).tiny)
        return self.scatter + other.scatter + share * np.outer(apart, apart)


def _scatter(X: Matrix, weight: FloatArray) -> FloatArray | None:
    """Weighted scatter of rows about their mean."""
    if X.shape[1] > _MANY_FEATURES:
        return None
    dense = np.array(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)
    dense -= weight @ dense / max(float(weight.sum()), np.finfo(float).tiny)
    dense *= np.sqrt(weight)[:, None]
    scatter: FloatArray = dense.T @ dense
    return scatter


def _indicator(some: LabelArray, every: LabelArray) -> Any:
    """Matrix that moves values of some classes to their places among all classes."""
    place = np.searchsorted(every, some)
    return csr_array(
        (np.ones(len(some), dtype=np.intp), (place, np.arange(len(some)))), (len(every), len(some))
    )


_MANIFEST, _COUNTS = "manifest.json", "counts.npz"
_CHANGED = "The batches differ from those of the pass before; make_batches() must give the same rows again."


@dataclass(frozen=True, eq=False)
class SpilledRows:
    """Rows of a folder.

    Attributes
    ----------
    folder : Path
        ``values.bin`` holds the features of all rows, sorted by class, or of sparse rows the values, with
        ``indices.bin`` and, for each row, ``lengths.bin``; ``weight.bin`` the weights.
    counts : RowCounts
    """

    folder: Path
    counts: RowCounts

    # ------------------------------------------------------------------ writing

    def write(self, batches: Iterable[Rows]) -> None:
        """Write the rows of batches, whose classes were counted before, each to its place."""
        counts, files = self.counts, {name: self._map(name, "w+") for name in self._shapes}
        row, value = self._offsets[:-1].copy(), self._value_offsets[:-1].copy()
        for batch in batches:
            codes = np.searchsorted(counts.classes, batch.classes)
            for own, code in enumerate(codes.tolist()):
                rows = batch.by_class[slice(*np.searchsorted(batch.codes[batch.by_class], [own, own + 1]))]
                if row[code] + len(rows) > self._offsets[code + 1]:
                    raise ValueError(_CHANGED)
                row[code], value[code] = self._put(files, batch, rows, int(row[code]), int(value[code]))
        if not np.array_equal(row, self._offsets[1:]):
            raise ValueError(_CHANGED)
        for file in files.values():
            file.flush()

    def _put(
        self, files: dict[str, Any], batch: Rows, rows: IntArray, row: int, value: int
    ) -> tuple[int, int]:
        """Write rows of one class from these places on; return the next places."""
        X, end = batch.X[rows], row + len(rows)
        if batch.weight is not None:
            files["weight"][row:end] = batch.weight[rows]
        if not self.counts.is_sparse:
            files["values"][row:end] = X
            return end, value
        files["lengths"][row:end] = np.diff(X.indptr)
        files["values"][value : value + X.nnz] = X.data
        files["indices"][value : value + X.nnz] = X.indices
        return end, value + X.nnz

    @cached_property
    def _shapes(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Type and shape of each file."""
        counts = self.counts
        n, n_values = int(counts.size.sum()), int(counts.n_values.sum())
        shapes: dict[str, tuple[Any, tuple[int, ...]]] = {"values": (counts.dtype, (n, counts.n_features))}
        if counts.is_sparse:
            shapes = {"values": (counts.dtype, (n_values,)), "indices": (np.int32, (n_values,))}
            shapes["lengths"] = np.int32, (n,)
        if counts.weight is not None:
            shapes["weight"] = np.float64, (n,)
        return shapes

    def _map(self, name: str, mode: Any = "r") -> Any:
        dtype, shape = self._shapes[name]
        if 0 in shape:
            return np.empty(shape, dtype)
        return np.memmap(self.folder / f"{name}.bin", dtype, mode, shape=shape)

    # ------------------------------------------------------------------ reading

    @cached_property
    def _offsets(self) -> IntArray:
        """First row of each class, and the end."""
        return np.concatenate([[0], np.cumsum(self.counts.size)])

    @cached_property
    def _value_offsets(self) -> IntArray:
        """First value of each class of sparse rows, and the end."""
        return np.concatenate([[0], np.cumsum(self.counts.n_values)])

    def rows(self, codes: IntArray, places: Sequence[IntArray]) -> Rows:
        """Copy of some rows: `places` are the numbers of rows of each class, which are ascending."""
        label = np.repeat(codes, [len(each) for each in places])
        numbers = np.concatenate(
            [self._offsets[code] + each for code, each in zip(codes, places, strict=True)]
        )
        weight = None if self.counts.weight is None else np.array(self._map("weight")[numbers])
        if self.counts.is_sparse:
            X = self._sparse(codes, places)
        else:
            X = np.empty((len(numbers), self.counts.n_features), dtype=self.counts.dtype)
            np.take(self._map("values"), numbers, axis=0, out=X, mode="clip")
        return Rows(X, label, self.counts.classes, weight)

    def training_rows(self, codes: IntArray, places: Sequence[IntArray]) -> Rows:
        """Copy of some rows, as the learner takes them."""
        return self.rows(codes, places)

    def _sparse(self, codes: IntArray, places: Sequence[IntArray]) -> Matrix:
        lengths, indices, values = (self._map(name) for name in ("lengths", "indices", "values"))
        parts = []
        for code, own in zip(codes.tolist(), places, strict=True):
            rows = slice(self._offsets[code], self._offsets[code + 1])
            inside = slice(self._value_offsets[code], self._value_offsets[code + 1])
            indptr = np.concatenate([[0], np.cumsum(lengths[rows])])
            shape = len(indptr) - 1, self.counts.n_features
            parts.append(csr_array((values[inside], indices[inside], indptr), shape)[own])
        stacked = vstack(parts, format="csr")
        if stacked.nnz < 2**31:  # some estimators take no others
            stacked.indices, stacked.indptr = (
                each.astype(np.int32) for each in (stacked.indices, stacked.indptr)
            )
        return stacked


class SpillFolder:
    """Folder of spilled rows, with a manifest of the passes that are finished, so that they are not repeated.

    Parameters
    ----------
    path : path
        Created if need be.
    key : dict
        Describes the rows; a folder made for others is started afresh.
    """

    def __init__(self, path: Path, key: dict[str, Any]) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._key = key

    @property
    def finished(self) -> list[str]:
        """Names of the passes that are finished."""
        try:
            manifest = json.loads((self.path / _MANIFEST).read_text())
        except (OSError, ValueError):
            return []
        return list(manifest["finished"]) if manifest.get("key") == self._key else []

    def finish(self, name: str) -> None:
        """Note that a pass is finished."""
        text = json.dumps({"key": self._key, "finished": [*self.finished, name]})
        draft = self.path / f"{_MANIFEST}.new"
        draft.write_text(text)
        draft.replace(self.path / _MANIFEST)

    def counted(self, counts: RowCounts) -> None:
        """Store the result of the first pass."""
        totals = counts.totals
        arrays = (
            {"totals": totals}
            if not counts.is_sparse
            else {"data": totals.data, "indices": totals.indices, "indptr": totals.indptr}
        )
        if counts.weight is not None:
            arrays["weight"] = counts.weight
        if counts.scatter is not None:
            arrays["scatter"] = counts.scatter
        np.savez(
            self.path / _COUNTS,
            classes=counts.classes,
            size=counts.size,
            n_values=counts.n_values,
            n_features=counts.n_features,
            empty=np.empty(0, counts.dtype),
            **arrays,
        )
        self.finish("counting")

    def counts(self) -> RowCounts:
        """Read the result of the first pass."""
        with np.load(self.path / _COUNTS, allow_pickle=False) as stored:
            known = dict(stored)
        n_features = int(known["n_features"])
        totals = known.get("totals")
        if totals is None:
            shape = len(known["classes"]), n_features
            totals = csr_array((known["data"], known["indices"], known["indptr"]), shape)
        return RowCounts(
            known["classes"],
            known["size"],
            known["n_values"],
            known.get("weight"),
            totals,
            known.get("scatter"),
            known["empty"].dtype,
        )

    def remove(self) -> None:
        """Remove the files, and the folder if nothing else is in it."""
        for name in (
            _MANIFEST,
            _COUNTS,
            "bins.npz",
            *(f"{each}.bin" for each in ("values", "indices", "lengths", "weight", "log_proba")),
        ):
            (self.path / name).unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()
