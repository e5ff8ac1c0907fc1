"""Arithmetic on arrays of other libraries than numpy, such as torch tensors on a GPU, on their device."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._common.validation import namespace


def like(values: Any, array: Any, xp: Any) -> Any:
    """Return numpy's values as an array on the device of another, real numbers in its precision."""
    from sklearn.utils._array_api import device

    dtype = array.dtype if np.asarray(values).dtype.kind == "f" else None
    return xp.asarray(values, dtype=dtype, device=device(array))


def as_given(values: FloatArray, given: Any) -> FloatArray:
    """Return numpy's values as an array of the library, and on the device, of what was given."""
    if (xp := namespace(given)) is not None:
        values = like(values, given, xp)
    return values


def log_softmax(z: Any, xp: Any) -> Any:
    """Subtract the log-sum-exp of every row."""
    z = z - xp.max(z, axis=1, keepdims=True)
    return z - xp.log(xp.sum(xp.exp(z), axis=1, keepdims=True))
