"""Class means, in a class order that does not depend on the label names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.structures.base import GrowingTask


@dataclass(frozen=True)
class ClassSums:
    """Weights and mean features of the classes, in an order that depends on the features only.

    Attributes
    ----------
    order : (k,)
        Class codes; position i of the other arrays is class ``order[i]``.
    weight : (k,)
        Total weight of the class's rows.
    mean : (k, n_features), dense or CSR
        Weighted mean of the class's rows; for a class without weight, the mean of all rows.
    """

    order: IntArray
    weight: FloatArray
    mean: Any

    @property
    def overall_mean(self) -> FloatArray:
        """Weighted mean of all rows."""
        share = self.weight / max(self.weight.sum(), np.finfo(float).tiny)
        return np.asarray(share @ self.mean, dtype=np.float64)


def is_sparse(matrix: Any) -> bool:
    """Return True for scipy's sparse matrices and arrays."""
    return bool(issparse(matrix))


def class_sums(task: GrowingTask) -> ClassSums:
    """Compute the class means; sparse features never become a dense array of classes times features."""
    total = _indicator(task) @ task.features
    order = _order_by_content(total, task)
    total, weight = total[order], task.rows.class_weight[order]
    overall = total.sum(axis=0) / max(weight.sum(), np.finfo(float).tiny)
    return ClassSums(order, weight, _means(total, weight, np.asarray(overall)))


def without_gaps(X: Any) -> Any:
    """Return X as a CSR or dense matrix, with NaN and infinity replaced by the feature's finite mean."""
    X = csr_array(X) if is_sparse(X) else np.asarray(X)
    values = X.data if is_sparse(X) else X
    if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
        return X
    is_known = np.isfinite(values)
    column = X.indices if is_sparse(X) else np.broadcast_to(np.arange(X.shape[1]), X.shape)
    counts = np.bincount(column[is_known], minlength=X.shape[1])
    sums = np.bincount(column[is_known], values[is_known], minlength=X.shape[1])
    mean = sums / np.maximum(counts, 1)
    filled = np.where(is_known, values, mean[column])
    return csr_array((filled, X.indices, X.indptr), shape=X.shape) if is_sparse(X) else filled


def _indicator(task: GrowingTask) -> Any:
    """Return the (k, n_rows) matrix of weights whose product with X sums the rows of each class."""
    rows, by_class = task.rows, task.rows.by_class
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight[by_class]
    offsets = np.concatenate([[0], np.cumsum(rows.class_size)])
    return csr_array((weight, by_class, offsets), shape=(rows.n_classes, len(rows)))


def _order_by_content(total: Any, task: GrowingTask) -> IntArray:
    """Sort the classes by a random projection of their sums; ties keep the order of the task.

    The projection is rounded, so that a row of weight two and the same row given twice sort alike.
    """
    mixing = np.random.RandomState(0).standard_normal(total.shape[1])
    key = total @ mixing if is_sparse(total) else (total * mixing).sum(axis=1)
    scale = np.abs(key).max(initial=0.0)
    rounded = np.round(key / scale, 9) if scale > 0 else key
    order = task.rows.class_order
    return np.asarray(order[np.argsort(rounded[order], kind="stable")])


def _means(total: Any, weight: FloatArray, overall: FloatArray) -> Any:
    """Divide sums by weights; a class without weight gets the mean of all rows."""
    inverse = np.divide(1.0, weight, out=np.zeros(len(weight)), where=weight > 0)
    if not is_sparse(total):
        mean = total * inverse[:, None]
        mean[weight == 0] = overall
        return mean
    mean = csr_array(total.multiply(inverse[:, None]))
    if (weight > 0).all():
        return mean
    empty = csc_array((weight == 0).astype(float)[:, None])
    return csr_array(mean + empty @ csr_array(overall[None, :]))
