"""One-vs-rest isotonic regression: a rising step curve for each class, normalised over the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.isotonic import isotonic_regression

from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray
    from dichotomies.calibrators.multiclass._rows import CalibrationRows


@MULTICLASS.register("isotonic")
class IsotonicOneVsRest(MulticlassCalibrator):
    """For each class a rising curve from its log-probability to its frequency; rows are then normalised.

    The curve is the isotonic regression of "this class or not" on log p, joined linearly between its
    steps and constant beyond them. It is never 0 or 1: a step on which a class of total weight n never
    occurs answers 1 / (n + 2), Laplace's rule of succession, or what the next step answers if that is
    less; a step on which it always occurs answers (n + 1) / (n + 2), or what the step before answers if
    that is more. A class absent from the rows so gets 1 / (n + 2) throughout.

    It needs hundreds of rows a class; with fewer, prefer the penalised vector scaling.

    Attributes
    ----------
    curves_ : list of pairs of arrays
        For each class the log-probabilities and the frequencies between which the curve is joined.

    References
    ----------
    Zadrozny & Elkan, *Transforming classifier scores into accurate multiclass probability estimates*,
    KDD 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.multiclass import MULTICLASS
    >>> log_proba = np.log([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.2, 0.8]])
    >>> calibrator = MULTICLASS.create("isotonic").fit(log_proba, [0, 0, 1, 1])
    >>> calibrator.predict_proba(log_proba).round(2)
    array([[0.75, 0.25],
           [0.75, 0.25],
           [0.25, 0.75],
           [0.25, 0.75]])
    """

    curves_: list[tuple[FloatArray, FloatArray]]

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Fit the curves."""
        counted = rows.weight > 0
        codes, weight = rows.codes[counted], rows.weight[counted]
        raw, shift, floor = rows.raw, rows.shift[counted], rows.floor[counted]
        self.curves_ = []
        for c in range(self.n_classes_):
            x = np.maximum(raw[counted, c] - shift, floor)
            self.curves_.append(_curve(x, codes == c, weight))

    def scores(self, x: FloatArray) -> FloatArray:
        """Logarithms of the frequencies, not yet normalised."""
        for c, (log_proba, frequency) in enumerate(self.curves_):
            x[:, c] = np.interp(x[:, c], log_proba, frequency)
        return np.log(x, out=x)


def _curve(x: FloatArray, is_class: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The two ends of every step of the isotonic regression, and what it answers there."""
    points, group = np.unique(x, return_inverse=True)
    total = np.bincount(group, weight)
    share = np.bincount(group, weight * is_class) / total
    fitted = isotonic_regression(share, sample_weight=total, y_min=0.0, y_max=1.0)
    starts = np.flatnonzero(np.r_[True, np.diff(fitted) > 0])
    ends = np.r_[starts[1:], len(fitted)] - 1
    frequency = _never_certain(fitted[starts], np.add.reduceat(total, starts))
    knots = np.column_stack([points[starts], points[ends]]).ravel()
    return knots, np.repeat(frequency, 2)


def _never_certain(frequency: FloatArray, total: FloatArray) -> FloatArray:
    """Laplace's rule on a first step of 0 and a last step of 1, kept in order with its neighbour."""
    result = frequency.copy()
    if frequency[0] <= 0.0:
        result[0] = 1 / (total[0] + 2)
    if frequency[-1] >= 1.0:
        result[-1] = (total[-1] + 1) / (total[-1] + 2)
    if len(frequency) > 1 and frequency[0] <= 0.0:
        result[0] = min(result[0], result[1])
    if len(frequency) > 1 and frequency[-1] >= 1.0:
        result[-1] = max(result[-1], result[-2])
    return result
