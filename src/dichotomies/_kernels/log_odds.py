"""Log-odds of a binary classifier's second class, from what it answers.

A classifier that answers exactly 0 or 1 cannot mean it: no finite number of rows proves an event
impossible, and one such node would make the log-loss of every class below it infinite. It is taken to
mean one step of double precision away, odds of 2**53 to 1. All other answers are kept as they are, even
more extreme ones.
"""

import numpy as np

from dichotomies._common.typing import FloatArray

CERTAIN = float(53 * np.log(2))


def from_probabilities(probabilities: FloatArray, sign: float, out: FloatArray) -> None:
    """Write ``sign * log(p1 / p0)`` for rows ``(p0, p1)``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        from_log_probabilities(np.log(np.maximum(probabilities, 0.0), dtype=np.float64), sign, out)


def from_log_probabilities(log_probabilities: FloatArray, sign: float, out: FloatArray) -> None:
    """Write ``sign * (log p1 - log p0)`` for rows ``(log p0, log p1)``."""
    log_odds = np.subtract(log_probabilities[:, 1], log_probabilities[:, 0], dtype=np.float64)
    certain = np.isinf(log_odds)
    log_odds[certain] = np.sign(log_odds[certain]) * CERTAIN
    np.multiply(sign, log_odds, out=out)
