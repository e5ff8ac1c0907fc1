"""Logarithms and exponentials of whole arrays, by arithmetic that becomes vector instructions.

A positive number is ``2**e * m`` with ``1 <= m < 2``; both can be read off its bits, and written there.
"""

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.compile import kernel, vector_kernel

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


#: Beyond these the bits may mean something else; such numbers are left to `np.log`.
LEAST, MOST = 1e-300, 1e300

HALF_ROOT = np.int64(0x3FE6A09E667F3BCD)  # the bits of the square root of 1/2
LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SERIES = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip

FARTHEST = 700.0
WHOLE = 1.5 * 2.0**52
LOG2_E = 1.4426950408889634
C10, C11, C12 = 1 / 3628800, 1 / 39916800, 1 / 479001600  # of the exponential series

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
def are_usual(values: FloatArray) -> bool:
    """Test that all values are positive and neither tiny nor huge."""
    n_unusual = 0
    for i in range(len(values)):
        n_unusual += not (LEAST < values[i] < MOST)
    return n_unusual == 0


@kernel
def take_logs(values: FloatArray) -> None:
    """Replace positive numbers by their logarithms, to about the last digit.

    Each is ``2**e * m`` with `m` between the roots of 1/2 and 2, and ``log(m)`` is a series in
    ``(m - 1) / (m + 1)``, as in FreeBSD's ``e_log.c`` (Sun Microsystems, 1993), whose coefficients these are.
    """
    if not are_usual(values):
        for i in range(len(values)):
            values[i] = np.log(values[i])
        return
    bits, exponents = values.view(np.int64), np.empty(len(values))
    for i in range(len(values)):
        exponent = (bits[i] - HALF_ROOT) >> 52
        exponents[i] = exponent
        bits[i] -= exponent << 52
    c0, c1, c2, c3, c4, c5, c6 = SERIES
    for i in range(len(values)):
        f, e = values[i] - 1.0, exponents[i]
        s = f / (2.0 + f)
        z, half = s * s, 0.5 * f * f
        rest = z * (c0 + z * (c1 + z * (c2 + z * (c3 + z * (c4 + z * (c5 + z * c6))))))
        values[i] = e * LOG_2_HIGH - ((half - (s * (half + rest) + e * LOG_2_LOW)) - f)


@kernel
def take_exponentials(values: FloatArray) -> None:
    """Replace numbers from -700 to 700 by their exponentials, to about the last digit; others are cut off.

    ``exp(x) = 2**e * exp(r)`` with a whole number `e` and ``|r| < 0.35``, for which a few terms of the series
    are enough. Added to a number as large as `WHOLE`, a fraction is rounded off, and the sum ends in the bits
    of `e`.
    """
    rounded = np.empty(len(values))
    bits = rounded.view(np.int64)
    for i in range(len(values)):
        x = min(max(values[i], -FARTHEST), FARTHEST)
        rounded[i] = x * LOG2_E + WHOLE
        e = rounded[i] - WHOLE
        r = (x - e * LOG_2_HIGH) - e * LOG_2_LOW
        high = 1 / 720 + r * (1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * (C10 + r * (C11 + r * C12)))))
        values[i] = 1.0 + r * (1.0 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * high)))))
    for i in range(len(values)):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(len(values)):
        values[i] *= rounded[i]


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
