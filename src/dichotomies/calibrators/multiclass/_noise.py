"""Rows that the scores say nothing about: probabilities become ``(1 - e) p + e / k``, e their share.

Wrong labels, and rows unlike any of training, have any class whatever the model says. Without a share of
their own they would lower the scale of all other rows. The order of the classes stays the same, and no
probability is lower than e / k, whatever the scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from dichotomies._common.typing import FloatArray

#: Lowest log-probability whose exponential is an ordinary number.
_LOWEST = -700.0


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


def best_noise(own: FloatArray, weight: FloatArray, n_classes: int) -> Noise:
    """Return the share of highest posterior density.

    The density of the prior is proportional to ``e (1 - e)``: if m of n rows are certainly noise, and the
    others certainly not, the share is (m + 1) / (n + 2), by Laplace's rule.

    Parameters
    ----------
    own : (n_rows,)
        Log-probability of each row's class.
    weight : (n_rows,)
        Weight of each row, as a count.
    """
    p = np.exp(np.maximum(own, _LOWEST), dtype=np.float64)
    gain = 1 / n_classes - p

    def slope(share: float) -> float:
        """Derivative of the log-posterior, which is concave, times ``share (1 - share)``."""
        return share * (1 - share) * float(weight @ (gain / (p + share * gain))) + 1 - 2 * share

    share = float(brentq(slope, 0.0, 1.0, xtol=1e-15, rtol=1e-6))
    mixed = p + share * gain
    log_posterior = float(weight @ np.log(mixed) + np.log(share) + np.log1p(-share))
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
