"""A bend common to all classes: log-probabilities become ``t log p + g p`` up to a constant per row.

Vector scaling leaves one kind of error: whether a class is nearly certain or one of several, its log-odds are
scaled alike. The term g p changes probabilities near 1 alone. It may raise those (g >= 0) and lower others
(t <= 1), as trees are unsure where they should be nearly certain; the reverse, on the rows that the scales
were fitted to, would be a sign of overfitting. The order of the classes stays the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies.calibrators.multiclass._calibration_rows import normalise, row_blocks

#: Standard deviations of t around 1 and of g around 0.
_DEVIATIONS = np.array([0.3, 1.0])
_LEAST_EXPONENT = 0.1
_MAX_ITER, _MAX_HALVINGS, _TOL = 10, 10, 1e-5
_TINY = 1e-9


class Bend(NamedTuple):
    """The map from log p to ``exponent * log p + sharpness * p``, normalised."""

    exponent: float = 1.0
    sharpness: float = 0.0

    def apply(self, log_proba: FloatArray) -> FloatArray:
        """Bend normalised log-probabilities, in place."""
        p = np.exp(log_proba)
        p *= self.sharpness
        log_proba *= self.exponent
        log_proba += p
        return normalise(log_proba)


def best_bend(log_proba: FloatArray, codes: IntArray, weight: FloatArray) -> Bend:
    """Return the bend of highest posterior probability, by Newton's method from no change.

    Parameters
    ----------
    log_proba : (n_rows, n_classes)
        Normalised log-probabilities, in single precision if there are many.
    codes, weight : (n_rows,)
        Column of each row's class, and its weight as a count.
    """
    origin, precision = np.array([1.0, 0.0]), _DEVIATIONS**-2.0

    def posterior(point: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        value, gradient, curvature = _sums(log_proba, codes, weight, point)
        change = point - origin
        value += 0.5 * float(precision @ change**2)
        return value, gradient + precision * change, curvature + np.diag(precision)

    point, tol = origin, 2 * _TOL * max(float(weight.sum()), 1.0)
    value, gradient, curvature = posterior(point)
    for _ in range(_MAX_ITER):
        held = (
            _within(point - _TINY * np.sign(gradient)) == point
        )  # at a bound that the descent points across
        step = np.linalg.solve(
            np.where(held | held[:, None], np.eye(2), curvature), np.where(held, 0.0, gradient)
        )
        if step @ gradient < tol:
            break
        for _ in range(_MAX_HALVINGS):
            reached = posterior(_within(point - step))
            if reached[0] <= value:
                break
            step /= 2
        point = _within(point - step)
        value, gradient, curvature = reached
    return Bend(*point.tolist())


def _within(point: FloatArray) -> FloatArray:
    """Return the nearest point within the bounds."""
    return np.array([np.clip(point[0], _LEAST_EXPONENT, 1.0), max(point[1], 0.0)])


def _sums(
    log_proba: FloatArray, codes: IntArray, weight: FloatArray, point: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return the negative log-likelihood, its gradient (2,) and its second derivatives (2, 2)."""
    value, gradient, curvature = 0.0, np.zeros(2), np.zeros((2, 2))
    exponent, sharpness = point.astype(log_proba.dtype)
    one = np.ones(log_proba.shape[1], dtype=log_proba.dtype)
    for few in row_blocks(*log_proba.shape):
        x, w, own = log_proba[few], weight[few], codes[few]
        phi = np.exp(x)
        z = exponent * x
        z += sharpness * phi
        own_z = z[np.arange(len(z)), own]
        p = np.exp(z, out=z)  # no entry is large, and the largest of a row not small
        total = p @ one
        p /= total[:, None]
        value += float(w @ (np.log(total) - own_z))
        px, pf = p * x, p * phi
        mean = np.stack([px @ one, pf @ one]).astype(np.float64)
        mine = np.stack([x[np.arange(len(x)), own], phi[np.arange(len(x)), own]])
        gradient += (mean - mine) @ w
        squares = [np.einsum("ij,ij->i", a, b) for a, b in ((px, x), (px, phi), (pf, phi))]
        aa, ab, bb = (np.array(squares) - [mean[0] ** 2, mean[0] * mean[1], mean[1] ** 2]) @ w
        curvature += [[aa, ab], [ab, bb]]
    return value, gradient, curvature
