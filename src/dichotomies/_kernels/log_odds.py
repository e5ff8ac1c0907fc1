"""Log-odds of a binary classifier's second class, from what it answers.

A classifier that answers exactly 0 or 1 cannot mean it: no finite number of rows proves an event
impossible, and one such node would make the log-loss of every class below it infinite. It is taken to
mean one step of double precision away, odds of 2**53 to 1. All other answers are kept as they are, even
more extreme ones.
"""

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.compile import kernel

CERTAIN = float(53 * np.log(2))


@kernel
def from_probabilities(probabilities: FloatArray, sign: float, out: FloatArray) -> None:
    """Write ``sign * log(p1 / p0)`` for rows ``(p0, p1)``."""
    for i in range(len(probabilities)):
        p0, p1 = probabilities[i, 0], probabilities[i, 1]
        if p0 <= 0.0:
            out[i] = sign * CERTAIN
        elif p1 <= 0.0:
            out[i] = -sign * CERTAIN
        else:
            out[i] = sign * np.log(p1 / p0)


@kernel
def from_log_probabilities(log_probabilities: FloatArray, sign: float, out: FloatArray) -> None:
    """Write ``sign * (log p1 - log p0)`` for rows ``(log p0, log p1)``."""
    for i in range(len(log_probabilities)):
        log_odds = log_probabilities[i, 1] - log_probabilities[i, 0]
        if np.isinf(log_odds):
            log_odds = CERTAIN if log_odds > 0 else -CERTAIN
        out[i] = sign * log_odds
