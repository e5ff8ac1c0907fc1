"""The logistic loss of scored rows: its value, slopes and curvatures.

Everywhere in the ``newton`` kernels the objective is scikit-learn's,
``sum_i c_i log(1 + exp(-y_i z_i)) + |w|^2 / 2``, with ``z = X w + b``, `y` +1 on the left and -1 on the
right, and a row's cost ``c_i``: C times its weight, 0 for a row that is only scored.
"""

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.compile import kernel, vector_kernel

#: Curvature of a row is never below this part of its cost, so that its square root can be divided by.
FLATTEST = 1e-14
_LARGE = 1e100


@kernel
def evaluate(z: FloatArray, y: FloatArray, cost: FloatArray, slope: FloatArray, curve: FloatArray) -> float:
    """Write minus the derivative of each row's loss by its score, and its curvature; return the loss."""
    loss = 0.0
    for i in range(len(z)):
        margin = y[i] * z[i]
        tail = np.exp(-abs(margin))
        likelier = 1.0 / (1.0 + tail)
        wrong = tail * likelier if margin >= 0.0 else likelier
        loss += cost[i] * (max(-margin, 0.0) + np.log1p(tail))
        slope[i] = cost[i] * y[i] * wrong
        curve[i] = cost[i] * max(tail * likelier * likelier, FLATTEST)
    return loss


@kernel
def loss_along(z: FloatArray, step: FloatArray, size: float, y: FloatArray, cost: FloatArray) -> float:
    """The loss at ``z + size * step``; rows of equal cost share a logarithm, half of the work."""
    loss, product, shared = 0.0, 1.0, 0.0
    for i in range(len(z)):
        if cost[i] == 0.0:
            continue
        margin = y[i] * (z[i] + size * step[i])
        if cost[i] != shared or product > _LARGE:
            loss += shared * np.log(product)
            product, shared = 1.0, cost[i]
        loss += cost[i] * max(-margin, 0.0)
        product *= 1.0 + np.exp(-abs(margin))
    return float(loss + shared * np.log(product))


@vector_kernel
def largest(values: FloatArray) -> float:
    """The largest absolute value, 0 of nothing."""
    most = 0.0
    for i in range(len(values)):
        most = max(most, abs(values[i]))
    return most
