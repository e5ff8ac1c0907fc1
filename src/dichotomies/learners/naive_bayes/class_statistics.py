"""`ClassStatistics`: the statistics of each class apart from any tree and rows; they are added and saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.naive_bayes.moments import Moments
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Each, Size, Such, check_value, expect

#: Contents of `tables` by kind: weight, means and centred second moments, of the rows weighted and then
#: unweighted; sums of features; the same sums as a CSR matrix (data, indices, indptr).
KINDS = {"moments": 6, "counts": 1, "sparse-counts": 3}


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
            tables = [_rows(table, groups) for table in self.tables]
        size, weight = _rows(self.size, groups), _rows(self.weight, groups)
        return ClassStatistics(self.kind, n_folds, self.n_features, size, weight, tables)

    def plus(self, other: ClassStatistics) -> ClassStatistics:
        """Statistics of both sets of rows, of the same classes."""
        n_folds = max(self.n_folds, other.n_folds)
        if self.n_folds < n_folds or other.n_folds < n_folds:
            return self.in_folds(n_folds).plus(other.in_folds(n_folds))
        if self.kind == "moments":
            pairs = zip((self.moments(0), self.moments(1)), (other.moments(0), other.moments(1)), strict=True)
            tables = [table for one, two in pairs for table in _combined(one, two)]
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


def _combined(one: Moments, two: Moments) -> Moments:
    """Moments of the union of two sets of rows, by the formula of Chan, Golub & LeVeque (1979)."""
    total = one.total + two.total
    share = np.divide(two.total, total, out=np.zeros_like(total), where=total > 0)[:, None]
    apart = two.mean - one.mean
    moment = one.moment + two.moment + apart**2 * (one.total[:, None] * share)
    return Moments(total, one.mean + share * apart, moment)
