"""The likelihood of ``softmax(scale * x + bias)``, and the best scale common to all classes.

The likelihood and its derivatives are sums over rows. Small problems are evaluated in double precision,
others in single precision with blocks that are accumulated in double precision, large ones by a kernel. The
blocks depend on the shape alone and are added in order, so the result does not depend on the number of
threads.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs

from dichotomies._common.chunks import row_slices
from dichotomies._common.parallel import run
from dichotomies._kernels.softmax import class_sums, own_log_proba, scale_sums
from dichotomies.calibrators.multiclass._calibration_rows import (
    DOUBLE_UP_TO,
    CalibrationRows,
    normalise,
    row_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray

    RealArray = npt.NDArray[Any]
    SingleArray = npt.NDArray[np.float32]

#: Maximum number of entries (rows times classes) that are evaluated without a kernel.
PLAIN_UP_TO = 2**21

#: Bounds of the common scale; naive Bayes on a thousand counts needs 1e-5.
_LOWEST, _HIGHEST = 1e-12, 1e5

#: Entries whose exponentials, and sums of thousands of them, are ordinary numbers in single precision.
_SAFE = 60.0

_TASKS = 16
_SINGLE_ROWS = 128  # accumulated in single precision before they are added to the double-precision sums


@dataclass
class Likelihood:
    """Negative log-likelihood of some rows, as a function of a scale and a bias per class."""

    rows: CalibrationRows
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        n_rows, n_classes = self.rows.shape
        self.single = n_rows * n_classes > DOUBLE_UP_TO
        self._by_kernel = n_rows * n_classes > PLAIN_UP_TO
        #: Relative rounding error of a value.
        self.noise = 3e-7 if self.single else 1e-14
        step = -(-n_rows // (_TASKS if self._by_kernel else 1))
        self._tasks = [(part,) for part in row_slices(n_rows, step)]
        if self._by_kernel:
            shift, floor, weight = self.rows.shift, self.rows.floor, self.rows.weight
            self._shift, self._floor = shift.astype(np.float32), floor.astype(np.float32)
            self._weight: npt.NDArray[Any] = weight.astype(np.float32)
        else:
            precision = np.float32 if self.single else np.float64
            self._x: npt.NDArray[Any] = self.rows.dense().astype(precision, copy=False)
            self._longest = max(-float(self._x.min(initial=0.0)), float(self._x.max(initial=0.0)))
            self._best = self._x.argmax(axis=1)
            self._weight = self.rows.weight.astype(precision, copy=False)

    def class_sums(
        self, scale: FloatArray, bias: FloatArray, *, curvature: bool = True
    ) -> tuple[float, FloatArray]:
        """Return the value and, by class, the weighted row sums of p, p x and p (1 - p) times 1, x and x^2.

        Without `curvature`, the last three may be left at zero.
        """
        single = _in_single(scale), _in_single(bias)

        def task(rows: slice) -> tuple[float, FloatArray]:
            if self._by_kernel:
                return self._kernel_class_sums(rows, *single, curvature=curvature)
            return self._plain_class_sums(*(single if self.single else (scale, bias)), curvature=curvature)

        parts = self._run(task)
        return sum(value for value, _ in parts), np.sum([sums for _, sums in parts], axis=0)

    def log_proba(self, scale: FloatArray, bias: FloatArray) -> FloatArray:
        """Return the log-probabilities of all classes, in the precision of the likelihood."""
        found = np.empty(self.rows.shape, np.float32 if self.single else np.float64)
        for few in row_blocks(*self.rows.shape):
            z = np.multiply(self._block(few), scale, out=found[few], casting="same_kind")
            z += bias.astype(z.dtype)
            normalise(z)
        return found

    def own_log_proba(self, scale: FloatArray, bias: FloatArray) -> FloatArray:
        """Return the log-probability of each row's class."""
        found = np.empty(len(self.rows.codes))
        if self._by_kernel:
            single = _in_single(scale), _in_single(bias)
            self._run(lambda rows: own_log_proba(*self._given(rows), *single, found[rows]))
            return found
        for few in row_blocks(*self.rows.shape):
            x = self._block(few)
            z = x * scale.astype(x.dtype) + bias.astype(x.dtype)
            log_total, own, _ = _softmax(z, self.rows.codes[few], z.max(axis=1))
            found[few] = own - log_total
        return found

    def _bounds(self, scale: RealArray, bias: RealArray) -> Callable[[RealArray, slice], RealArray | None]:
        """Return the function that finds what to subtract from ``scale * x + bias`` of some rows.

        Nothing, or the entry in the column of the largest x, where other entries are not far above that.
        """
        if self._longest * np.abs(scale).max() + np.abs(bias).max() < _SAFE:
            return lambda z, few: None  # noqa: ARG005
        if scale.min() >= 0 and self._longest * np.ptp(scale) + np.ptp(bias) < _SAFE:
            return lambda z, few: z[np.arange(len(z)), self._best[few]]
        return lambda z, few: z.max(axis=1)  # noqa: ARG005

    def _block(self, rows: slice) -> RealArray:
        return self.rows.block(rows) if self._by_kernel else self._x[rows]

    def take(self, chosen: BoolArray) -> Likelihood:
        """Return the likelihood of the rows where `chosen` is True, in the same precision."""
        rows = self.rows.take(chosen)
        if self._by_kernel:
            return Likelihood(rows, self.n_jobs)
        other = copy(self)
        other.rows, other._x, other._weight = rows, self._x[chosen], self._weight[chosen]
        other._best = self._best[chosen]
        other._tasks = [(slice(0, len(rows.codes)),)]
        return other

    def reweighted(self, weight: FloatArray) -> Likelihood:
        """Return the likelihood of the same rows with other weights."""
        rows = replace(self.rows, weight=weight)
        other = copy(self)
        other.rows, other._weight = rows, weight.astype(self._weight.dtype)
        return other

    def scale_sums(self, scale: float) -> tuple[float, float, float]:
        """Return the value and its first and second derivative in one common scale, with zero biases."""
        n_classes = self.rows.shape[1]
        single = np.full(n_classes, scale, dtype=np.float32), np.zeros(n_classes, dtype=np.float32)

        def task(rows: slice) -> tuple[float, float, float]:
            if self._by_kernel:
                return scale_sums(*self._given(rows), *single)
            return self._plain_scale_sums(scale)

        value, slope, curvature = np.sum(self._run(task), axis=0).tolist()
        return value, slope, curvature

    def _run(self, task: Callable[[slice], Any]) -> list[Any]:
        if len(self._tasks) == 1 or effective_n_jobs(self.n_jobs) == 1:
            return [task(*each) for each in self._tasks]
        return run(task, self._tasks, n_jobs=self.n_jobs, shared_memory=True)

    def _given(self, rows: slice) -> tuple[Any, SingleArray, SingleArray, IntArray, SingleArray]:
        """Return the arguments that kernels take for some rows."""
        codes, weight = self.rows.codes[rows], self._weight[rows]
        return self.rows.raw[rows], self._shift[rows], self._floor[rows], codes, weight

    def _kernel_class_sums(
        self, rows: slice, scale: SingleArray, bias: SingleArray, *, curvature: bool
    ) -> tuple[float, FloatArray]:
        value, sums = 0.0, np.zeros((5, len(scale)))
        part = np.empty((5, len(scale)), dtype=np.float32)
        for start in range(rows.start, rows.stop, _SINGLE_ROWS):
            few = slice(start, min(start + _SINGLE_ROWS, rows.stop))
            part[:] = 0.0
            value += class_sums(*self._given(few), scale, bias, curvature, part)
            sums += part
        return value, sums

    def _plain_class_sums(
        self, scale: npt.NDArray[Any], bias: npt.NDArray[Any], *, curvature: bool
    ) -> tuple[float, FloatArray]:
        value, sums = 0.0, np.zeros((5, len(scale)))
        bound = self._bounds(scale, bias)
        for few in row_blocks(*self.rows.shape):
            x, codes, weight = self._x[few], self.rows.codes[few], self._weight[few]
            z = x * scale
            z += bias
            log_total, own, p = _softmax(z, codes, bound(z, few))
            value += float(weight @ (log_total - own))
            sums[0] += weight @ p
            sums[1] += weight @ np.multiply(p, x)
            if curvature:
                q = np.multiply(p, 1 - p, out=p)
                sums[2] += weight @ q
                q *= x
                sums[3] += weight @ q
                q *= x
                sums[4] += weight @ q
        return value, sums

    def _plain_scale_sums(self, scale: float) -> tuple[float, float, float]:
        sums, bound = np.zeros(3), self._bounds(np.full(1, scale), np.zeros(1))
        for few in row_blocks(*self.rows.shape):
            x, codes, weight = self._x[few], self.rows.codes[few], self._weight[few]
            z = x * scale
            log_total, own, p = _softmax(z, codes, bound(z, few))
            p *= x
            mean = p @ np.ones(x.shape[1], dtype=p.dtype)
            mean_square = np.einsum("ij,ij->i", p, x)
            own_x = x[np.arange(len(x)), codes]
            sums += weight @ np.column_stack([log_total - own, mean - own_x, mean_square - mean**2])
        value, slope, curvature = sums.tolist()
        return value, slope, curvature


def _softmax(z: Any, codes: npt.NDArray[np.intp], top: Any | None) -> tuple[Any, Any, Any]:
    """Return each row's log normaliser, its true class's entry, and the softmax, which overwrites z.

    Parameters
    ----------
    top : (n_rows,) or None
        An entry of each row that others exceed by `_SAFE` at most; None if no entry is beyond that, so that
        sums of exponentials are finite and positive as they are.
    """
    own = z[np.arange(len(z)), codes]
    if top is not None:
        z -= top[:, None]
    np.exp(z, out=z)
    total = z @ np.ones(z.shape[1], dtype=z.dtype)
    z /= total[:, None]
    return np.log(total) if top is None else top + np.log(total), own, z


@dataclass(frozen=True)
class BestScale:
    """Scale common to all classes; `separated` if its maximum-likelihood value is infinite."""

    scale: float
    separated: bool
    n_iter: int
    converged: bool


def best_scale(
    likelihood: Likelihood, max_iter: int = 100, tol: float = 1e-11, start: float = 1.0
) -> BestScale:
    """Return the maximum-likelihood scale up to a relative error, by Newton's method with bracketing."""
    separated = likelihood.rows.is_separated()
    smallest = max(1e-6, tol) if likelihood.single else tol
    low, high, scale = _LOWEST, _HIGHEST, start
    for iteration in range(1, max_iter + 1):
        _, slope, curvature = likelihood.scale_sums(scale)
        if separated:
            slope, curvature = slope + scale - 1, curvature + 1
        low, high = (scale, high) if slope < 0 else (low, scale)
        newton = scale - slope / curvature if curvature > 0 else np.nan
        if abs(newton - scale) <= smallest * scale or high / low < 1 + smallest:
            best = float(np.clip(newton, low, high)) if np.isfinite(newton) else scale
            return BestScale(best, separated, iteration, converged=True)
        scale = float(newton if low < newton < high else np.sqrt(low * high))
    return BestScale(scale, separated, max_iter, converged=False)


def _in_single(values: FloatArray) -> npt.NDArray[np.float32]:
    """Round to single precision, within its range."""
    return np.clip(values, -1e30, 1e30).astype(np.float32)
