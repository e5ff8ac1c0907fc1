"""One-vs-rest isotonic regression for each class, normalised over the classes."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import isotonic_regression

from dichotomies._common.typing import FloatArray
from dichotomies.calibrators.multiclass._calibration_rows import CalibrationRows
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator


@MULTICLASS.register("isotonic")
class IsotonicOneVsRest(MulticlassCalibrator):
    """One-vs-rest isotonic regression from log-probability to frequency, normalised over the classes.

    The curve of a class is the isotonic regression of its indicator on log p, interpolated linearly between
    blocks and constant outside. It is never 0 or 1: a block of total weight n without the class gets
    1 / (n + 2), Laplace's rule of succession, or the next block's value if that is lower; a block with only
    that class gets (n + 1) / (n + 2), or the previous block's value if that is higher. A class absent from
    the rows therefore gets 1 / (n + 2) everywhere.

    It needs hundreds of rows per class; with fewer, prefer penalised vector scaling.

    Attributes
    ----------
    curves_ : list of pairs of arrays
        Knots of each class's curve: log-probabilities and frequencies.

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
        """Return the logarithms of the frequencies, before normalisation."""
        for c, (log_proba, frequency) in enumerate(self.curves_):
            x[:, c] = np.interp(x[:, c], log_proba, frequency)
        return np.log(x, out=x)


def _curve(x: FloatArray, is_class: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both ends of every block of the isotonic regression, and the fitted values there."""
    points, group = np.unique(x, return_inverse=True)
    total = np.bincount(group, weight)
    share = np.bincount(group, weight * is_class) / total
    fitted = isotonic_regression(share, sample_weight=total, y_min=0.0, y_max=1.0)
    starts = np.flatnonzero(np.r_[True, np.diff(fitted) > 0])
    ends = np.r_[starts[1:], len(fitted)] - 1
    frequency = _laplace_ends(fitted[starts], np.add.reduceat(total, starts))
    knots = np.column_stack([points[starts], points[ends]]).ravel()
    return knots, np.repeat(frequency, 2)


def _laplace_ends(frequency: FloatArray, total: FloatArray) -> FloatArray:
    """Apply Laplace's rule to a first block of 0 and a last block of 1, without breaking monotonicity."""
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
