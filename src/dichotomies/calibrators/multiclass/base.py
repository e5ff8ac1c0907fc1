"""Base class of multiclass calibrators, which map class log-probabilities to calibrated ones."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from dichotomies._common.registry import Registry
from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._common.validation import as_given, bounded_counts, namespace, row_weights, to_host
from dichotomies.calibrators.multiclass._calibration_rows import (
    CalibrationRows,
    normalise,
    normalised,
    row_blocks,
)
from dichotomies.persistence import CATALOGUE, Estimator
from dichotomies.persistence.checks import Size, declares, expect
from dichotomies.tree import ClassTree

#: Finite entries beyond are read as this, so that differences and sums of them are finite.
_FARTHEST = 1e100
#: Maximum number of classes for which a loaded calibrator is tested on one row.
_TRIED_CLASSES = 2**22


class HeldOut(NamedTuple):
    """Loss of each row, the negative log-probability of its class, and what it could have been.

    Attributes
    ----------
    loss, largest : (n_rows,)
        Negative log-probabilities of the row's class, and of the least probable class.
    is_best : (n_rows,)
        True where the row's class is the most probable one.
    """

    loss: FloatArray
    largest: FloatArray
    is_best: BoolArray

    @classmethod
    def empty(cls, n: int) -> HeldOut:
        """Make room for so many rows."""
        return cls(np.empty(n), np.empty(n), np.empty(n, dtype=bool))

    def put(self, rows: BoolArray | slice, log_proba: FloatArray, codes: IntArray) -> None:
        """Write what log-probabilities say of some rows."""
        self.loss[rows] = -log_proba[np.arange(len(codes)), codes]
        self.largest[rows] = -log_proba.min(axis=1)
        self.is_best[rows] = log_proba.argmax(axis=1) == codes


@declares(n_classes_=Size("n_classes", 2))
class MulticlassCalibrator(BaseEstimator, ABC):
    """Base class of multiclass calibrators; subclasses implement `fit_rows` and `scores`.

    Attributes
    ----------
    n_classes_ : int
        Number of columns seen during fit.
    n_iter_ : int
        Iterations of the fit; 0 for closed-form solutions.
    converged_ : bool
        True if the fit reached its optimum.
    """

    n_classes_: int
    n_iter_: int
    converged_: bool

    #: Memory of the log-probabilities that are calibrated at a time.
    block_bytes: ClassVar[int] = 2**18

    def fit(
        self,
        log_proba: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        classes: npt.ArrayLike | None = None,
    ) -> MulticlassCalibrator:
        """Fit the calibrator to held-out rows.

        Parameters
        ----------
        log_proba : array of shape (n_rows, n_classes)
            Natural logarithms of class probabilities, or logits; single or double precision. Entries below
            -100 after normalisation are read as -100. Arrays of torch or CuPy are converted, under
            scikit-learn's `array_api_dispatch`.
        y : array of shape (n_rows,)
            The column of each row's true class, or its label if `classes` is given.
        sample_weight : array of shape (n_rows,), optional
            Weight of each row, as a count.
        classes : array of shape (n_classes,), optional
            The labels of the columns.

        Returns
        -------
        self
        """
        return self.fit_on(calibration_rows(log_proba, y, sample_weight, classes))

    def fit_from(
        self,
        before: MulticlassCalibrator,
        columns: IntArray,
        log_proba: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> MulticlassCalibrator:
        """Fit as `fit` does, starting at a calibrator of similar rows where that is quicker.

        Parameters
        ----------
        before : MulticlassCalibrator
            Fitted, of any kind.
        columns : array of shape (n_classes,)
            The column of each class in `before`; -1 for classes that it does not know.
        log_proba, y, sample_weight
            See `fit`.

        Returns
        -------
        self
        """
        del before, columns
        return self.fit(log_proba, y, sample_weight)

    def fit_on(self, rows: CalibrationRows) -> MulticlassCalibrator:
        """Fit the calibrator to validated `rows`."""
        self.n_classes_ = rows.shape[1]
        self.n_iter_, self.converged_ = 0, True
        self.fit_rows(rows)
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations, not at an optimum: either "
                "max_iter is too small, or the rows are separated, where plain likelihood has none. Its "
                "parameters are finite, but a penalised method such as 'vector' may serve better.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def predict_log_proba(self, log_proba: npt.ArrayLike, out: FloatArray | None = None) -> FloatArray:
        """Return the calibrated log-probabilities.

        Parameters
        ----------
        log_proba : array of shape (n_rows, n_classes)
            See `fit`.
        out : float64 array of shape (n_rows, n_classes), optional
            Output array; may be `log_proba` itself.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Normalised; bit-identical for any division of the rows into calls.
        """
        check_is_fitted(self, "n_classes_")
        if namespace(log_proba) is not None:
            return as_given(self.predict_log_proba(to_host(log_proba)), log_proba)
        raw = checked_log_proba(log_proba, self.n_classes_)
        out = np.empty(raw.shape) if out is None else out
        if out.shape != raw.shape or out.dtype != np.float64:
            raise ValueError(
                f"out must be float64 of shape {raw.shape}, got {out.dtype} of shape {out.shape}."
            )
        n_rows, n_classes = raw.shape
        for rows in row_blocks(n_rows, n_classes, self.block_bytes):
            out[rows] = normalise(self.scores(normalised(raw[rows])))
        return out

    def predict_proba(self, log_proba: npt.ArrayLike) -> FloatArray:
        """Return the calibrated probabilities: the exponential of `predict_log_proba` of `log_proba`."""
        result = self.predict_log_proba(log_proba)
        return np.exp(result, out=result) if (xp := namespace(result)) is None else xp.exp(result)

    def fit_held_out(
        self,
        log_proba: npt.ArrayLike,
        y: npt.ArrayLike,
        fold: IntArray,
        sample_weight: npt.ArrayLike | None = None,
    ) -> HeldOut:
        """Fit the calibrator to all rows, and judge each row by a refit without the row's fold.

        Parameters
        ----------
        log_proba, y, sample_weight
            See `fit`.
        fold : array of shape (n_rows,)
            Fold of each row.
        """
        return self.fit_held_out_on(calibration_rows(log_proba, y, sample_weight), fold)

    def fit_held_out_on(self, rows: CalibrationRows, fold: IntArray) -> HeldOut:
        """Fit to validated `rows`, and judge them by each `fold`; see `fit_held_out`."""
        return self.fit_on(rows).held_out_on(rows, fold)

    def held_out_on(self, rows: CalibrationRows, fold: IntArray, *, in_full: bool = False) -> HeldOut:
        """Judge the `rows` that the calibrator was fitted to, each by a refit without its `fold`.

        `in_full`, refits do not start from the fit to all rows.
        """
        found = HeldOut.empty(len(fold))
        for own, log_proba in self._refits_in_full(rows, fold) if in_full else self.refits(rows, fold):
            found.put(own, log_proba, rows.codes[own])
        return found

    def out_of_fold(
        self, rows: CalibrationRows, fold: IntArray, *, in_full: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return log-probabilities (n_rows, n_classes) of the `rows`, each by a refit without its `fold`.

        `in_full`, refits do not start from the fit to all rows.
        """
        found = np.empty(rows.shape, np.float32)
        for own, log_proba in self._refits_in_full(rows, fold) if in_full else self.refits(rows, fold):
            found[own] = log_proba
        return found

    def refits(self, rows: CalibrationRows, fold: IntArray) -> Iterator[tuple[BoolArray, FloatArray]]:
        """Refit to `rows` without each `fold`; yield its rows, and their log-probabilities by the refit.

        Subclasses may start from the fit to all rows, which remembers a little of the fold.
        """
        return self._refits_in_full(rows, fold)

    def _refits_in_full(
        self, rows: CalibrationRows, fold: IntArray
    ) -> Iterator[tuple[BoolArray, FloatArray]]:
        for f in np.unique(fold):
            own, others = fold == f, rows.take(fold != f)
            copy: MulticlassCalibrator = clone(self)
            calibrator = copy.fit_on(others) if others.weight.any() else self
            yield own, calibrator.predict_log_proba(rows.raw[own])

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise if one row cannot be calibrated; for `names` see `dichotomies.persistence.checks`."""
        if names["n_classes"] <= _TRIED_CLASSES:
            with np.errstate(all="ignore"):
                answer = self.predict_log_proba(np.zeros((1, self.n_classes_)))
            expect(not np.isnan(answer).any(), "a calibrator answers for every class")

    @abstractmethod
    def fit_rows(self, rows: CalibrationRows) -> None:
        """Set the attributes fitted to `rows`, and `n_iter_` and `converged_` for iterative fits."""

    def grown_tree(self) -> ClassTree | None:
        """Return the tree over the columns along which probabilities are calibrated, if there is one."""
        return None

    def slope_and_bias(self) -> tuple[FloatArray, FloatArray] | None:
        """Return w and b (n_classes,) if the probabilities are proportional to ``exp(w log p + b)``."""
        return None

    @abstractmethod
    def scores(self, x: FloatArray) -> FloatArray:
        """Return calibrated log-probabilities up to a constant per row; `x` may be overwritten."""


MULTICLASS: Registry[MulticlassCalibrator] = Registry("multiclass calibrator", __package__ or "")
CATALOGUE.add_family("multiclass-calibrator", MULTICLASS, Estimator())


def checked_log_proba(log_proba: npt.ArrayLike, n_classes: int | None = None) -> npt.NDArray[Any]:
    """Return a two-dimensional floating-point array, without a copy if possible."""
    raw = np.asarray(log_proba)
    if raw.dtype not in (np.float32, np.float64):
        raw = raw.astype(np.float64)
    _check_shape(raw, n_classes)
    return _bounded(raw)


def _check_shape(raw: Any, n_classes: int | None) -> None:
    if raw.ndim != 2 or raw.shape[1] < 2 or n_classes not in (None, raw.shape[1]):
        wanted = "at least 2" if n_classes is None else str(n_classes)
        shape = tuple(raw.shape)
        raise ValueError(
            f"log_proba must have shape (n_rows, n_classes) with {wanted} classes, got shape {shape}."
        )


def _bounded(raw: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the entries, finite ones beyond ±1e100 replaced; the same array if there are none."""
    if raw.dtype == np.float32 or not raw.size:
        return raw
    lowest = raw.min()
    if np.isneginf(lowest):
        lowest = raw.min(initial=0.0, where=raw > -np.inf)
    if max(raw.max(), -lowest) <= _FARTHEST:
        return raw
    return np.where(np.isfinite(raw), np.clip(raw, -_FARTHEST, _FARTHEST), raw)


def calibration_rows(
    log_proba: npt.ArrayLike, y: npt.ArrayLike, sample_weight: Any, classes: npt.ArrayLike | None = None
) -> CalibrationRows:
    """Validate rows that a calibrator is to be fitted to.

    Parameters
    ----------
    log_proba, y, sample_weight, classes
        See `MulticlassCalibrator.fit`.

    Returns
    -------
    CalibrationRows
        For `MulticlassCalibrator.fit_on`.
    """
    raw = np.ascontiguousarray(checked_log_proba(to_host(log_proba)))
    codes = _codes(to_host(y), raw, classes)
    return CalibrationRows.read(raw, codes, bounded_counts(row_weights(to_host(sample_weight), len(raw))))


def _codes(y: npt.ArrayLike, raw: Any, classes: npt.ArrayLike | None) -> IntArray:
    """Return the validated column of each row's class."""
    labels = np.asarray(y)
    n_rows, n_classes = raw.shape
    if labels.shape != (n_rows,) or n_rows == 0:
        raise ValueError(
            f"log_proba has {n_rows} rows and y has shape {labels.shape}: calibration needs at least one "
            "row, and one label for each."
        )
    if classes is not None:
        return _columns_of(labels, np.asarray(classes), n_classes)
    if labels.dtype.kind not in "iu":
        raise ValueError(
            f"y must hold the column of each row's class as an integer, got {labels.dtype}; "
            "for labels of another kind, give the labels of the columns as classes=."
        )
    if labels.min() < 0 or labels.max() >= n_classes:
        wrong = labels[(labels < 0) | (labels >= n_classes)][0]
        raise ValueError(
            f"y must be in 0..{n_classes - 1}, the columns of log_proba, but has {wrong}; "
            "for labels of another kind, give the labels of the columns as classes=."
        )
    return labels.astype(np.intp, copy=False)


def _columns_of(labels: npt.NDArray[Any], classes: npt.NDArray[Any], n_classes: int) -> IntArray:
    if classes.shape != (n_classes,):
        raise ValueError(f"classes must name the {n_classes} columns, got shape {classes.shape}.")
    column = {label: i for i, label in enumerate(classes.tolist())}
    unknown = [label for label in labels.tolist() if label not in column]
    if unknown:
        raise ValueError(f"y has the label {unknown[0]!r}, which is not among the {n_classes} classes.")
    return np.array([column[label] for label in labels.tolist()], dtype=np.intp)
