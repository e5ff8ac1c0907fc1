"""Rows that the scores say nothing about: probabilities become ``(1 - e) p + e / k``, e their share.

Wrong labels, and rows unlike any of training, have any class whatever the model says. Without a share of
their own they would lower the scale of all other rows. The order of the classes stays the same, and no
probability is lower than e / k, whatever the scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import xlog1py, xlogy

from dichotomies._common.typing import FloatArray

#: Lowest log-probability whose exponential is an ordinary number.
_LOWEST = -700.0
#: A lower share is none, where no noise is imagined.
_SMALLEST = 1e-9


class Noise(NamedTuple):
    """The share of rows that the scores say nothing about.

    Attributes
    ----------
    share : float
    log_posterior : float
        Logarithm of its posterior density, up to a constant.
    trust : (n_rows,)
        Probability of each row that the scores bear on it.
    """

    share: float
    log_posterior: float
    trust: FloatArray


def best_noise(
    own: FloatArray, weight: FloatArray, n_classes: int, imagined: tuple[int, int] = (1, 1)
) -> Noise:
    """Return the share of highest posterior density.

    If m of n rows are certainly noise, and the others certainly not, the share with a and b imagined rows is
    (m + a) / (n + a + b): by default Laplace's rule.

    Parameters
    ----------
    own : (n_rows,)
        Log-probability of each row's class.
    weight : (n_rows,)
        Weight of each row, as a count.
    imagined : pair of int
        Rows that are imagined to be noise, and not to be noise: the prior.
    """
    noise, ordinary = imagined
    p = np.exp(np.maximum(own, _LOWEST), dtype=np.float64)
    gain = 1 / n_classes - p

    def slope(share: float) -> float:
        """Derivative of the log-posterior, which is concave, times ``share (1 - share)``."""
        of_rows = share * (1 - share) * float(weight @ (gain / (p + share * gain)))
        return of_rows + noise * (1 - share) - ordinary * share

    least = 0.0 if noise else _SMALLEST
    share = float(brentq(slope, least, 1.0, xtol=1e-15, rtol=1e-6)) if noise or slope(least) > 0 else 0.0
    mixed = p + share * gain
    log_prior = xlogy(noise, share) + xlog1py(ordinary, -share)
    log_posterior = float(weight @ np.log(mixed) + log_prior)
    return Noise(share, log_posterior, (1 - share) * p / mixed)


def mix(log_proba: FloatArray, share: FloatArray | float) -> FloatArray:
    """Mix normalised log-probabilities with a share of noise, in place.

    Parameters
    ----------
    log_proba : (n_rows, n_classes)
    share : (n_rows, 1) or float
    """
    if np.any(share > 0):
        np.exp(log_proba, out=log_proba)
        log_proba *= 1 - share
        log_proba += share / log_proba.shape[1]
        np.log(log_proba, out=log_proba)
    return log_proba
