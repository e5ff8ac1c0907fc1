"""Logarithms of whole arrays, by arithmetic that becomes vector instructions.

A positive number is ``2**e * m`` with ``1 <= m < 2``, both of which can be read off its bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dichotomies._kernels.compile import vector_kernel

if TYPE_CHECKING:
    from dichotomies._typing import FloatArray

#: Beyond these the bits may mean something else; such numbers are left to `np.log`.
LEAST, MOST = 1e-300, 1e300
FRACTION = np.int64((1 << 52) - 1)
ONE = np.int64(1023 << 52)
CHUNK = 512  # numbers below 2 whose product does not overflow
LOG_2 = 0.6931471805599453


@vector_kernel
def are_usual(values: FloatArray) -> bool:
    """Whether all values are positive and neither tiny nor huge."""
    n_unusual = 0
    for i in range(len(values)):
        n_unusual += not (LEAST < values[i] < MOST)
    return n_unusual == 0


@vector_kernel
def sum_of_logs(values: FloatArray) -> float:
    """Sum of the logarithms of positive numbers: that of the exponents, and one logarithm of a product."""
    total = 0.0
    if not are_usual(values):
        for i in range(len(values)):
            total += np.log(values[i])
        return total
    bits = values.view(np.int64)
    factors = np.empty(min(CHUNK, len(values)))
    fraction = factors.view(np.int64)
    for begin in range(0, len(values), CHUNK):
        n = min(CHUNK, len(values) - begin)
        exponent = 0
        for i in range(n):
            exponent += (bits[begin + i] >> 52) - 1023
            fraction[i] = (bits[begin + i] & FRACTION) | ONE
        product = 1.0
        for i in range(n):
            product *= factors[i]
        total += exponent * LOG_2 + np.log(product)
    return total
