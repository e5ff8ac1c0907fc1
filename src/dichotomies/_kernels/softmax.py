"""Loss and derivative sums of a softmax with a scale and a bias per class, in single precision.

Every row passes through four short loops while it is in cache: scaled inputs, their maximum, their
exponentials, and sums per class. LLVM vectorises each of them because the exponential is a polynomial and the
maximum is one of integers (floating-point maxima stay scalar). Reassociation is allowed: it is harmless for
sums of a few thousand positive terms, and no value in these loops is infinite or NaN. The caller sums
blocks of rows in double precision.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel, vector_kernel
from dichotomies._kernels.elementary import exponential

SingleArray: TypeAlias = npt.NDArray[np.float32]

_F = np.float32
_ONE = _F(1.0)
_MAGNITUDE, _SIGN_SHIFT = np.int32(0x7FFFFFFF), np.int32(31)


@vector_kernel
def _scale(
    row: FloatArray,
    shift: np.float32,
    floor: np.float32,
    scale: SingleArray,
    bias: SingleArray,
    out: SingleArray,
) -> None:
    for c in range(len(out)):
        out[c] = scale[c] * max(np.float32(row[c]) - shift, floor) + bias[c]


@kernel
def _maximum(bits: npt.NDArray[np.int32]) -> np.int32:
    """Return the bits of the largest float, compared as integers of the same order."""
    top = np.int32(-0x7FFFFFFF)
    for c in range(len(bits)):
        top = max(top, bits[c] ^ ((bits[c] >> _SIGN_SHIFT) & _MAGNITUDE))
    return np.int32(top ^ ((top >> _SIGN_SHIFT) & _MAGNITUDE))


@vector_kernel
def _exponentials(top: np.float32, out: SingleArray) -> np.float32:
    """Replace z by ``exp(z - top)`` and return the sum."""
    total = np.float32(0.0)
    for c in range(len(out)):
        e = exponential(out[c] - top)
        out[c] = e
        total += e
    return total


@vector_kernel
def _add_moments(
    row: FloatArray,
    shift: np.float32,
    floor: np.float32,
    factor: np.float32,
    e: SingleArray,
    out: SingleArray,
) -> None:
    """Add p and p x to the first two rows of `out`."""
    p_sum, px_sum = out[0], out[1]
    for c in range(len(e)):
        p = e[c] * factor
        p_sum[c] += p
        px_sum[c] += p * max(np.float32(row[c]) - shift, floor)


@vector_kernel
def _add_curvature(
    row: FloatArray,
    shift: np.float32,
    floor: np.float32,
    inverse: np.float32,
    weight: np.float32,
    e: SingleArray,
    out: SingleArray,
) -> None:
    """Add q, q x and q x^2 with q = p (1 - p) to the last three rows of `out`."""
    q_sum, qx_sum, qxx_sum = out[2], out[3], out[4]
    for c in range(len(e)):
        x = max(np.float32(row[c]) - shift, floor)
        p = e[c] * inverse
        q = weight * p * (_ONE - p)
        q_sum[c] += q
        qx_sum[c] += q * x
        qxx_sum[c] += q * x * x


@kernel
def class_sums(
    log_proba: FloatArray,
    shift: SingleArray,
    floor: SingleArray,
    codes: IntArray,
    weight: SingleArray,
    scale: SingleArray,
    bias: SingleArray,
    curvature: bool,
    out: SingleArray,
) -> float:
    """Negative log-likelihood of a block of rows, and the class sums of its derivatives.

    With ``x = max(log_proba - shift, floor)``, ``z = scale x + bias`` and ``p = softmax(z)``, the weighted
    sums of p and p x, and if `curvature` those of p (1 - p) times 1, x and x^2, are added per class to the
    rows of `out`.

    Parameters
    ----------
    log_proba : (n_rows, n_classes), float32 or float64
    shift, floor, codes, weight : (n_rows,)
    scale, bias : (n_classes,)
    out : (5, n_classes)
        Added to.
    """
    n_rows, n_classes = log_proba.shape
    z = np.empty(n_classes, dtype=np.float32)
    bits = z.view(np.int32)
    top = np.empty(1, dtype=np.int32)
    top_value = top.view(np.float32)
    loss = 0.0
    for i in range(n_rows):
        row = log_proba[i]
        _scale(row, shift[i], floor[i], scale, bias, z)
        top[0] = _maximum(bits)
        own = z[codes[i]]
        total = _exponentials(top_value[0], z)
        loss += weight[i] * (np.log(np.float64(total)) + top_value[0] - own)
        _add_moments(row, shift[i], floor[i], np.float32(weight[i] / total), z, out)
        if curvature:
            _add_curvature(row, shift[i], floor[i], np.float32(_ONE / total), weight[i], z, out)
    return loss


@kernel
def own_log_proba(
    log_proba: FloatArray,
    shift: SingleArray,
    floor: SingleArray,
    codes: IntArray,
    weight: SingleArray,  # noqa: ARG001 - the same arguments as those of the sums
    scale: SingleArray,
    bias: SingleArray,
    out: FloatArray,
) -> None:
    """Write the log-probability of each row's class; see `class_sums`."""
    z = np.empty(log_proba.shape[1], dtype=np.float32)
    bits = z.view(np.int32)
    top = np.empty(1, dtype=np.int32)
    top_value = top.view(np.float32)
    for i in range(len(log_proba)):
        _scale(log_proba[i], shift[i], floor[i], scale, bias, z)
        top[0] = _maximum(bits)
        own = z[codes[i]] - top_value[0]
        out[i] = own - np.log(np.float64(_exponentials(top_value[0], z)))


@vector_kernel
def _expectations(
    row: FloatArray, shift: np.float32, floor: np.float32, centre: np.float32, e: SingleArray
) -> tuple[np.float32, np.float32]:
    """Sums of e (x - centre) and e (x - centre)^2."""
    first, second = np.float32(0.0), np.float32(0.0)
    for c in range(len(e)):
        x = max(np.float32(row[c]) - shift, floor) - centre
        first += e[c] * x
        second += e[c] * x * x
    return first, second


@kernel
def scale_sums(
    log_proba: FloatArray,
    shift: SingleArray,
    floor: SingleArray,
    codes: IntArray,
    weight: SingleArray,
    scale: SingleArray,
    bias: SingleArray,
) -> tuple[float, float, float]:
    """Negative log-likelihood and its first two derivatives with respect to a common factor of `scale`.

    The derivatives are taken at factor 1 and hold for a `scale` that is constant over classes.
    """
    n_rows, n_classes = log_proba.shape
    z = np.empty(n_classes, dtype=np.float32)
    bits = z.view(np.int32)
    top = np.empty(1, dtype=np.int32)
    top_value = top.view(np.float32)
    loss, slope, curvature = 0.0, 0.0, 0.0
    for i in range(n_rows):
        row = log_proba[i]
        own = max(np.float32(row[codes[i]]) - shift[i], floor[i])
        _scale(row, shift[i], floor[i], scale, bias, z)
        top[0] = _maximum(bits)
        own_z = z[codes[i]]
        total = np.float64(_exponentials(top_value[0], z))
        first, second = _expectations(row, shift[i], floor[i], own, z)
        mean = first / total
        loss += weight[i] * (np.log(total) + top_value[0] - own_z)
        slope += weight[i] * mean
        curvature += weight[i] * (second / total - mean * mean)
    return loss, slope, curvature
