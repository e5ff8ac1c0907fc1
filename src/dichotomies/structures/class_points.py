"""Class centroids as points in few dimensions, for structures that cluster the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse

from dichotomies._common.chunks import row_slices, rows_within
from dichotomies._common.typing import FloatArray, IntArray
from dichotomies.structures.base import GrowingTask

METRICS = ("auto", "raw", "within", "cosine")

#: Key of the sums of the features of each class in the memo of `Rows`.
CLASS_TOTALS = "class totals"
#: Key of the covariance of the features within classes in the memo of `Rows`.
WITHIN_COVARIANCE = "covariance within classes"

#: Bytes of dense features held at a time.
_CHUNK_BYTES = 2**25

#: Maximum number of features without dimension reduction.
MANY_FEATURES = 512
#: Number of dimensions after reduction.
N_COMPONENTS = 100
#: Added to the covariance within classes, as a share of its mean diagonal.
_RIDGE = 0.01
#: Steps of subspace iteration: more than usual in randomised SVD, because distances are needed.
_N_STEPS = 6
#: Number of features multiplied at a time.
_FEATURE_BLOCK = 2**15


@dataclass(frozen=True)
class ClassPoints:
    """Class centroids in a space where Euclidean distance measures separability.

    Attributes
    ----------
    order : (k,)
        Class codes in an order that depends on the rows and not on the label names.
    points : (k, r)
        By class code; the farther apart two points are, the easier the classes are to separate.
    weight : (k,)
        By class code: total weight of the rows.
    """

    order: IntArray
    points: FloatArray
    weight: FloatArray


def class_points(task: GrowingTask, metric: str = "auto") -> ClassPoints:
    """Return the class centroids under `metric`, reduced in dimension if there are many features.

    Parameters
    ----------
    task : GrowingTask
        Rows, classes and weights.
    metric : "auto", "raw", "within" or "cosine"
        "raw": Euclidean distance of the centroids. "within": Mahalanobis distance by the pooled within-class
        covariance, as in linear discriminant analysis, which weights features by how well they separate
        classes, unless their scales differ by orders of magnitude. "cosine": centroids scaled to unit
        length, for text. "auto": "within" up to 512 features, "cosine" beyond.

    Notes
    -----
    More than 512 features are reduced to the leading 100 singular directions of the centroids by subspace
    iteration over blocks of features, so that no dense array of classes times features or of features times
    directions is allocated.
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {list(METRICS)}, got {metric!r}.")
    points: ClassPoints = task.rows.remember(("class points", metric), lambda: _points(task, metric))
    return points


def _points(task: GrowingTask, metric: str) -> ClassPoints:
    sums = class_sums(task)
    n_features = sums.mean.shape[1]
    if metric == "auto":
        metric = "within" if n_features <= MANY_FEATURES else "cosine"
    if metric == "within":
        placed = _whitened(task, sums)
    else:
        placed = _reduced(_unit_length(sums.mean) if metric == "cosine" else sums.mean)
    points = np.empty(placed.shape)
    points[sums.order] = placed
    return ClassPoints(sums.order, points, task.rows.class_weight)


def _unit_length(mean: Any) -> Any:
    """Scale rows to unit length; rows of zeros stay."""
    if is_sparse(mean):
        length = np.sqrt(np.asarray(mean.multiply(mean).sum(axis=1)).ravel())
    else:
        length = np.sqrt((mean * mean).sum(axis=1))
    inverse = np.divide(1.0, length, out=np.zeros(len(length)), where=length > 0)
    return csr_array(mean.multiply(inverse[:, None])) if is_sparse(mean) else mean * inverse[:, None]


def _reduced(mean: Any) -> FloatArray:
    """Return the centroids or, with many features, their coordinates along the leading directions."""
    if mean.shape[1] <= MANY_FEATURES:
        return np.asarray(mean.toarray() if is_sparse(mean) else mean, dtype=np.float64)
    basis, length = _leading_directions(mean)
    return basis * length


def _whitened(task: GrowingTask, sums: ClassSums) -> FloatArray:
    """Return the centroids in coordinates where the within-class covariance is the identity."""
    mean, overall = sums.mean, sums.overall_mean
    axes: _Axes | None = None
    if mean.shape[1] > MANY_FEATURES:
        axes = _Axes(mean)
        placed, centre = axes.project(mean), axes.project(csr_array(overall[None, :]))[0]
    else:
        placed, centre = np.asarray(mean.toarray() if is_sparse(mean) else mean), overall
    placed = placed - centre
    if axes is None and WITHIN_COVARIANCE in task.rows.memo:
        return _whiten(placed, task.rows.memo[WITHIN_COVARIANCE])
    covariance = _total_scatter(task, axes, centre) - (placed.T * sums.weight) @ placed
    covariance /= max(sums.weight.sum(), np.finfo(float).tiny)
    return _whiten(placed, covariance)


def _total_scatter(task: GrowingTask, axes: _Axes | None, centre: FloatArray) -> FloatArray:
    """Return the weighted scatter matrix of the rows about `centre`."""
    X = task.features
    scatter: FloatArray = np.zeros((len(centre), len(centre)))
    for rows in row_slices(X.shape[0], rows_within(_CHUNK_BYTES, len(centre))):
        part: Any = X[rows] if axes is None else axes.project(X[rows])
        part = np.asarray(part.toarray() if is_sparse(part) else part, dtype=np.float64) - centre
        weight = 1.0 if task.rows.weight is None else task.rows.weight[rows, None]
        scatter += (part * weight).T @ part
    return scatter


class _Axes:
    """Leading right singular vectors of the centroids, computed block by block and never stored."""

    def __init__(self, mean: Any) -> None:
        basis, length = _leading_directions(mean)
        kept = length > 1e-9 * max(float(length.max(initial=0.0)), np.finfo(float).tiny)
        self._combination = basis[:, kept] / length[kept]
        self._blocks = _feature_blocks(mean)

    def project(self, rows: Any) -> FloatArray:
        """Coordinates (n_rows, r) of some rows."""
        placed: FloatArray = np.zeros((rows.shape[0], self._combination.shape[1]))
        for part, block in zip(_feature_blocks(rows), self._blocks, strict=True):
            placed += part @ (block.T @ self._combination)
        return placed


def _whiten(placed: FloatArray, covariance: FloatArray) -> FloatArray:
    """Multiply points by the inverse square root of the ridge-regularised covariance."""
    size = np.trace(covariance) / max(len(covariance), 1)
    largest = max(float((placed**2).sum()), np.finfo(float).tiny)
    if size <= 1e-12 * largest:  # no within-class scatter: every class is a single point
        return placed
    variance, axes = np.linalg.eigh(covariance)
    whitened: FloatArray = placed @ (axes / np.sqrt(np.maximum(variance, 0.0) + _RIDGE * size))
    return whitened


def _leading_directions(mean: Any) -> tuple[FloatArray, FloatArray]:
    """Return left singular vectors (k, r) and values (r,) of the centroids, the largest first.

    Subspace iteration on the k x k Gram matrix, which is never formed.
    """
    n_classes, n_features = mean.shape
    n_components = min(N_COMPONENTS, n_classes, n_features)
    blocks = _feature_blocks(mean)
    start = np.random.RandomState(0).standard_normal((n_classes, min(n_classes, n_components + 10)))
    basis = np.linalg.qr(start)[0]
    for _ in range(_N_STEPS):
        basis = np.linalg.qr(_gram_times(blocks, basis))[0]
    values, rotation = np.linalg.eigh(basis.T @ _gram_times(blocks, basis))
    largest = np.argsort(-values)[:n_components]
    return basis @ rotation[:, largest], np.sqrt(np.maximum(values[largest], 0.0))


def _feature_blocks(mean: Any) -> list[Any]:
    """Split the centroids into blocks of features."""
    columns = csc_array(mean) if is_sparse(mean) else mean
    starts = range(0, mean.shape[1], _FEATURE_BLOCK)
    blocks = [columns[:, start : start + _FEATURE_BLOCK] for start in starts]
    return [csr_array(block) if is_sparse(block) else block for block in blocks]


def _gram_times(blocks: list[Any], basis: FloatArray) -> FloatArray:
    """Multiply the Gram matrix of the centroids with some vectors."""
    product: FloatArray = np.zeros_like(basis)
    for block in blocks:
        product += block @ (block.T @ basis)
    return product


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
    total = task.rows.remember(CLASS_TOTALS, lambda: task.rows.class_indicator() @ task.features)
    order = _order_by_content(total, task)
    total, weight = total[order], task.rows.class_weight[order]
    overall = total.sum(axis=0) / max(weight.sum(), np.finfo(float).tiny)
    return ClassSums(order, weight, _means(total, weight, np.asarray(overall)))


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
