"""`Rows`: features, class codes, weights and folds, with views of some rows and a memo."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from dichotomies.rows.folds import fold_of_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled rows: what trees are grown on, nodes are trained on and models are evaluated on.

    A view (`take`, `reweighted`, `in_folds`) is of the same kind and copies no features until `X` is read.

    Parameters
    ----------
    base : array or CSR matrix of shape (n_base_rows, n_features), or None
        Features of the rows that this is a view of; None where only classes are counted.
    codes : (n_rows,)
        Class of each row, as a position in `classes`.
    classes : (n_classes,)
        Labels, sorted.
    weight : (n_rows,) or None
        Weight of each row; None for ones.
    fold : (n_rows,) or None
        Fold of each row, where rows are divided into folds.
    index : (n_rows,) or None
        Position of each row in `base`; None where it is all of them, in order.
    memo : dict
        Results that depend on features, classes and weights alone, see `remember`.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.rows import Rows
    >>> rows = Rows(np.eye(4), np.array([0, 1, 1, 0]), np.array(["cat", "dog"]))
    >>> view = rows.take(np.array([1, 2]))
    >>> len(view), view.X[0].tolist(), view.class_weight.tolist()
    (2, [0.0, 1.0, 0.0, 0.0], [0.0, 2.0])
    """

    #: On a cluster, every worker has one copy and keeps what it remembers about it.
    is_shipped_once: ClassVar[bool] = True

    base: Matrix
    codes: IntArray
    classes: LabelArray
    weight: FloatArray | None = None
    fold: IntArray | None = None
    index: IntArray | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.codes)

    def __getstate__(self) -> dict[str, Any]:
        """Fields without the memo, which workers of another process would rather recompute than receive."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"memo": {}}

    # ------------------------------------------------------------------ views

    def take(self, rows: IntArray) -> Rows:
        """View of some rows."""
        return Rows(
            self.base,
            self.codes[rows],
            self.classes,
            None if self.weight is None else self.weight[rows],
            None if self.fold is None else self.fold[rows],
            rows if self.index is None else self.index[rows],
        )

    def reweighted(self, weight: FloatArray | None) -> Rows:
        """View with other weights."""
        return replace(self, weight=weight, memo={})

    def in_folds(self, cv: Any, rng: Any) -> Rows:
        """View divided into folds, see `fold_of_rows`; it shares the memo."""
        return replace(self, fold=fold_of_rows(self.codes, cv, rng))

    def with_features(self, columns: IntArray) -> Rows:
        """Copy with some of the features."""
        return replace(self, base=self.X[:, columns], index=None, memo={})

    def bootstrap(self, rng: Any) -> Rows:
        """View in which a row weighs as often as it is drawn, with as many draws per class as it has rows."""
        by_class = self.by_class
        counts = np.bincount(self.codes)[self.codes[by_class]]
        begin = np.searchsorted(self.codes[by_class], self.codes[by_class])
        drawn = by_class[begin + np.floor(rng.random_sample(len(self)) * counts).astype(np.intp)]
        times = np.bincount(drawn, minlength=len(self)).astype(np.float64)
        return self.reweighted(times if self.weight is None else times * self.weight)

    # ------------------------------------------------------------------ features

    @cached_property
    def X(self) -> Matrix:  # noqa: N802
        """Features of the rows."""
        return self.base if self.index is None else _taken(self.base, self.index)

    def features_of(self, rows: IntArray) -> Matrix:
        """Features of some of the rows, as a copy."""
        return _taken(self.base, rows if self.index is None else self.index[rows])

    @cached_property
    def imputed(self) -> Matrix:
        """Features with NaN and infinity replaced by the mean of the feature's finite values."""
        return self.remember("imputed", lambda: _imputed(self.X))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.base.shape[1])

    # ------------------------------------------------------------------ classes and folds

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_folds(self) -> int:
        """Number of folds; 1 where rows are not divided."""
        return 1 if self.fold is None else int(self.fold.max()) + 1

    @cached_property
    def by_class(self) -> IntArray:
        """Row numbers sorted by class code; rows of one class stay in their order."""
        order: IntArray = self.remember("by class", lambda: np.argsort(self.codes, kind="stable"))
        return order

    @cached_property
    def class_size(self) -> IntArray:
        """Number of rows of each class."""
        return np.bincount(self.codes, minlength=self.n_classes)

    @cached_property
    def class_weight(self) -> FloatArray:
        """Total weight of the rows of each class."""
        return np.bincount(self.codes, self.weight, self.n_classes).astype(np.float64)

    @cached_property
    def class_order(self) -> IntArray:
        """Class codes in an order given by the rows: by decreasing weight, then by first occurrence.

        Draws and ties between classes go by this order, so that permuting the names of the classes permutes
        the result. Rows of weight 0 count as absent. Weights that agree to nine digits are equal, because a
        sum is rounded differently where a row of weight two is given as two rows.
        """
        place = np.arange(len(self))
        if self.weight is not None:
            place[self.weight == 0] += len(self)
        first = np.full(self.n_classes, 2 * len(self))
        np.minimum.at(first, self.codes, place)
        mantissa, exponent = np.frexp(self.class_weight)
        return np.lexsort((first, -np.ldexp(np.round(mantissa, 9), exponent)))

    # ------------------------------------------------------------------ memo

    def remember(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return the value stored under a key, computing it on the first call.

        For results that depend on neither tree nor folds, such as bins or class means: views with the same
        rows and weights share them.
        """
        if key not in self.memo:
            self.memo[key] = compute()
        return self.memo[key]


def _taken(X: Matrix, rows: IntArray) -> Matrix:
    return X.take(rows, axis=0) if isinstance(X, np.ndarray) else X[rows]


def _imputed(X: Matrix) -> Matrix:
    values = X if isinstance(X, np.ndarray) else X.data
    if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
        return X
    is_known = np.isfinite(values)
    column = np.broadcast_to(np.arange(X.shape[1]), X.shape) if values is X else X.indices
    counts = np.bincount(column[is_known], minlength=X.shape[1])
    sums = np.bincount(column[is_known], values[is_known], minlength=X.shape[1])
    filled = np.where(is_known, values, (sums / np.maximum(counts, 1))[column])
    return filled if values is X else csr_array((filled, X.indices, X.indptr), shape=X.shape)
