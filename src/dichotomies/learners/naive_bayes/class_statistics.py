"""`ClassStatistics`: sums or moments of features, by class and fold; they are added and saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.parallel import even_batches, run
from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Each, Size, Such, check_value, expect
from dichotomies.rows import Rows

#: Contents of `tables` by kind: weight, means and centred second moments, of the rows weighted and then
#: unweighted; sums of features; the same sums as a CSR matrix (data, indices, indptr).
KINDS = {"moments": 6, "counts": 1, "sparse-counts": 3}

#: Features of so many rows that they stay in the caches while they are summed.
_BLOCK = 2**17


class Moments(NamedTuple):
    """Weight, means and centred second moments of groups of rows.

    Attributes
    ----------
    total : (n_groups,)
    mean, moment : (n_groups, n_features)
    """

    total: FloatArray
    mean: FloatArray
    moment: FloatArray

    def plus(self, other: Moments) -> Moments:
        """Moments of the union of two sets of rows, by the formula of Chan, Golub & LeVeque (1979).

        With weights ``a`` and ``b`` and means that differ by ``d``, the moments of the union are the sum of
        those of the parts and ``d**2 * a * b / (a + b)``: nothing cancels.
        """
        total = self.total + other.total
        share = np.divide(other.total, total, out=np.zeros_like(total), where=total > 0)[:, None]
        apart = other.mean - self.mean
        mean = self.mean + share * apart
        apart *= apart
        apart *= self.total[:, None] * share
        apart += self.moment
        apart += other.moment
        return Moments(total, mean, apart)


@savable(
    "class-statistics",
    kind=Such(lambda kind: isinstance(kind, str) and kind in KINDS, "is a kind of statistics"),
    n_folds=Size("n_folds"),
    n_features=Size("n_features"),
    n_classes=Size("n_classes"),
    size=Array("integer", "n_groups"),
    weight=Array("float", "n_groups"),
    tables=Each(np.ndarray),
)
@dataclass(frozen=True, eq=False)
class ClassStatistics:
    """Statistics of each class in each fold: group ``code * n_folds + fold``.

    Attributes
    ----------
    kind : str
    n_folds, n_features : int
    size, weight : (n_groups,)
        Number of rows and their weight.
    tables : list of ndarray
        See `KINDS`.
    """

    kind: str
    n_folds: int
    n_features: int
    size: IntArray
    weight: FloatArray
    tables: Sequence[Any]

    @classmethod
    def of(cls, rows: Rows, X: Matrix, n_jobs: int | None, *, moments: bool) -> ClassStatistics:
        """Compute the moments or the sums of the features of rows, in one pass."""
        n_folds = rows.n_folds
        group = rows.codes if rows.fold is None else rows.codes * n_folds + rows.fold
        order = np.argsort(group, kind="stable")
        if rows.weight is not None:
            order = order[rows.weight[order] > 0]
        weight = np.ones(len(order)) if rows.weight is None else rows.weight[order]
        n_groups = rows.n_classes * n_folds
        size = np.bincount(group[order], minlength=n_groups)
        offsets = np.concatenate([[0], np.cumsum(size)])
        members = csr_array((weight, order, offsets), (n_groups, len(rows)))
        of_group = np.bincount(group[order], weight, n_groups).astype(np.float64)
        tables: list[Any]
        if not isinstance(X, np.ndarray):
            kind, sums = "sparse-counts", csr_array(members @ csr_array(X))
            sums.eliminate_zeros()
            tables = [sums.data, sums.indices, sums.indptr]
        elif moments:
            kind, first = "moments", _moments(members, X, n_jobs)
            second = first
            if not (weight == 1).all():
                second = _moments(csr_array((np.ones(len(order)), order, offsets), members.shape), X, n_jobs)
            tables = [*first, *second]
        else:
            kind, tables = "counts", [_sums(members, X, n_jobs)]
        return cls(kind, n_folds, X.shape[1], size, of_group, tables)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.size) // self.n_folds

    @property
    def class_size(self) -> IntArray:
        """Number of rows of each class."""
        size: IntArray = self.size.reshape(-1, self.n_folds).sum(axis=1)
        return size

    def over(self, codes: IntArray, n_classes: int) -> ClassStatistics:
        """The same for more classes: class i becomes class ``codes[i]``; the others have no rows."""
        source = np.full(n_classes, -1)
        source[codes] = np.arange(self.n_classes)
        return self.taken(source)

    def taken(self, classes: IntArray) -> ClassStatistics:
        """Statistics of some classes in another order; of none where the number is -1."""
        groups = classes[:, None] * self.n_folds + np.arange(self.n_folds)
        return self._of_groups(np.where(classes[:, None] < 0, -1, groups))

    def of_folds(self, folds: Sequence[int]) -> ClassStatistics:
        """Statistics of the rows in some of the folds, which are numbered anew."""
        return self._of_groups(np.arange(self.n_classes)[:, None] * self.n_folds + np.array(folds))

    def in_folds(self, n_folds: int) -> ClassStatistics:
        """The same for at least as many folds; the others have no rows."""
        groups = np.arange(self.n_classes)[:, None] * self.n_folds + np.arange(n_folds)
        return self._of_groups(np.where(np.arange(n_folds) < self.n_folds, groups, -1))

    def _of_groups(self, groups: IntArray) -> ClassStatistics:
        """Statistics of some groups (n_classes, n_folds); of none where the number is -1."""
        n_folds, groups = groups.shape[1], groups.ravel()
        if self.kind == "sparse-counts":
            matrix = self.counts()[np.maximum(groups, 0)]
            matrix.data[np.repeat(groups < 0, np.diff(matrix.indptr))] = 0.0
            matrix.eliminate_zeros()
            tables: list[Any] = _parts(matrix)
        else:
            taken = {id(table): _rows(table, groups) for table in self.tables}  # some are there twice
            tables = [taken[id(table)] for table in self.tables]
        size, weight = _rows(self.size, groups), _rows(self.weight, groups)
        return ClassStatistics(self.kind, n_folds, self.n_features, size, weight, tables)

    def plus(self, other: ClassStatistics) -> ClassStatistics:
        """Statistics of both sets of rows, of the same classes."""
        n_folds = max(self.n_folds, other.n_folds)
        if self.n_folds < n_folds or other.n_folds < n_folds:
            return self.in_folds(n_folds).plus(other.in_folds(n_folds))
        if self.kind == "moments":
            pairs = zip((self.moments(0), self.moments(1)), (other.moments(0), other.moments(1)), strict=True)
            tables = [table for one, two in pairs for table in one.plus(two)]
        elif self.kind == other.kind == "sparse-counts":
            tables = _parts(csr_array(self.counts() + other.counts()))
        else:
            tables = [self.counts(dense=True) + other.counts(dense=True)]
        kind = other.kind if self.kind == "sparse-counts" else self.kind
        size, weight = self.size + other.size, self.weight + other.weight
        return ClassStatistics(kind, self.n_folds, self.n_features, size, weight, tables)

    def moments(self, which: int) -> Moments:
        """Moments of the groups: 0 for weighted rows, 1 for unweighted ones."""
        return Moments(*self.tables[3 * which : 3 * which + 3])

    def counts(self, *, dense: bool = False) -> Any:
        """Sums of the features of each group, (n_groups, n_features), an array or CSR."""
        if self.kind == "counts":
            return self.tables[0]
        matrix = csr_array(tuple(self.tables), shape=(len(self.size), self.n_features))
        return matrix.toarray() if dense else matrix

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise unless the tables fit the groups; see `dichotomies.persistence.checks`."""
        expect(len(self.tables) == KINDS[self.kind], "statistics have the tables of their kind")
        expect(len(self.size) == names["n_folds"] * names["n_classes"], "every class has statistics")
        if self.kind == "sparse-counts":
            data, indices, indptr = self.tables
            rises = len(indptr) == len(self.size) + 1 and indptr[0] == 0 and (np.diff(indptr) >= 0).all()
            expect(bool(rises) and indptr[-1] == len(data), "the sums of groups follow one another")
            check_value(Array("integer", "n_sums", within=(0, "n_features")), indices, "indices", names)
            check_value(Array("float", "n_sums"), data, "data", names)
            return
        for i, table in enumerate(self.tables):
            is_total = self.kind == "moments" and i % 3 == 0
            shape = ("n_groups",) if is_total else ("n_groups", "n_features")
            check_value(Array("float", *shape), table, "a table", names)


def _rows(table: Any, groups: IntArray) -> Any:
    """Rows of a table; zeros where the number is -1."""
    taken = table[np.maximum(groups, 0)]
    taken[groups < 0] = 0
    return taken


def _parts(matrix: Any) -> list[Any]:
    matrix.sort_indices()
    return [matrix.data, matrix.indices, matrix.indptr]


def _sums(members: Any, X: Matrix, n_jobs: int | None) -> FloatArray:
    """Weighted sums of the features of dense rows over each group."""
    out = np.empty((members.shape[0], X.shape[1]))

    def add(groups: range) -> None:
        block, own = _block(members, X, groups)
        out[groups.start : groups.stop] = own @ block

    _in_blocks(add, members, X, n_jobs)
    return out


def _moments(members: Any, X: Matrix, n_jobs: int | None) -> Moments:
    """Moments of each group, in two passes over its rows."""
    shape = members.shape[0], X.shape[1]
    out = Moments(np.empty(shape[0]), np.empty(shape), np.empty(shape))

    def add(groups: range) -> None:
        block, own = _block(members, X, groups)
        chosen = slice(groups.start, groups.stop)
        total = own.sum(axis=1)
        mean = (own @ block) / np.where(total > 0, total, 1.0)[:, None]
        block -= np.repeat(mean, np.diff(own.indptr), axis=0)
        block *= block
        out.total[chosen], out.mean[chosen], out.moment[chosen] = total, mean, own @ block

    _in_blocks(add, members, X, n_jobs)
    return out


def _in_blocks(task: Any, members: Any, X: Matrix, n_jobs: int | None) -> None:
    n_blocks = max(16, X.size // _BLOCK)
    batches = [(batch,) for batch in even_batches(np.diff(members.indptr), n_jobs, n_blocks)]
    run(task, batches, n_jobs=n_jobs, shared_memory=True)


def _block(members: Any, X: Matrix, groups: range) -> tuple[FloatArray, Any]:
    """A copy of the rows of some groups in double precision, and the matrix that sums them by group."""
    first, last = members.indptr[groups.start], members.indptr[groups.stop]
    block = X.take(members.indices[first:last], axis=0).astype(np.float64, copy=False)
    offsets = members.indptr[groups.start : groups.stop + 1] - first
    own = (members.data[first:last], np.arange(last - first), offsets)
    return block, csr_array(own, (len(groups), last - first))
