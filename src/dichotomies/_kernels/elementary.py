"""Small parts of kernels: exponentials in single precision, sums of products, log-odds."""

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.compile import vector_kernel

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


_F = np.float32
_FARTHEST = _F(87.0)  # exp of less is below the normal numbers of single precision
_LOG2_E = _F(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = _F(0.693359375), _F(-2.12194440e-4)
_HALF, _ONE = _F(0.5), _F(1.0)
_C2, _C3, _C4 = _F(5.0000001201e-1), _F(1.6666665459e-1), _F(4.1665795894e-2)
_C5, _C6, _C7 = _F(8.3334519073e-3), _F(1.3981999507e-3), _F(1.9875691500e-4)
_BIAS, _MANTISSA_BITS = np.int32(127), np.int32(23)


@vector_kernel
def exponential(x: np.float32) -> np.float32:
    """``exp(x)`` to 3e-7 in single precision, by the polynomial of the Cephes library; x is cut off at 87."""
    x = min(max(x, -_FARTHEST), _FARTHEST)
    k = np.floor(x * _LOG2_E + _HALF)
    r = x - k * _LN2_HIGH - k * _LN2_LOW
    p = ((((_C7 * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + _C2
    power = np.int32((np.int32(k) + _BIAS) << _MANTISSA_BITS)
    result: np.float32 = (p * r * r + r + _ONE) * power.view(np.float32)
    return result


@vector_kernel
def dot(a: FloatArray, b: FloatArray) -> float:
    """The sum of products."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@vector_kernel
def copy(values: Any, out: Any) -> None:
    """Copy as many numbers as both have; numba takes seconds to compile ``out[:] = values``."""
    for i in range(min(len(values), len(out))):
        out[i] = values[i]
