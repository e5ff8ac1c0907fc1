"""Arrays of other libraries than numpy, such as torch tensors on a GPU.

They are taken where scikit-learn takes them: inside ``sklearn.config_context(array_api_dispatch=True)``.
Elsewhere numpy converts what it can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray


def namespace(array: Any) -> Any | None:
    """Return the namespace of another library's array; None for all that numpy handles."""
    if not get_config()["array_api_dispatch"] or isinstance(array, np.ndarray) or not _is_array(array):
        return None
    from sklearn.utils._array_api import _is_numpy_namespace, get_namespace

    xp, _ = get_namespace(array)
    return None if _is_numpy_namespace(xp) else xp


def _is_array(array: Any) -> bool:
    return hasattr(array, "__array_namespace__") or type(array).__module__.partition(".")[0] == "torch"


def to_host(array: Any) -> Any:
    """Return another library's array as numpy's; anything else as it is."""
    from sklearn.utils._array_api import _convert_to_numpy

    return array if (xp := namespace(array)) is None else _convert_to_numpy(array, xp)


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


def own_entries(x: Any, codes: Any, xp: Any) -> Any:
    """Return the entry of each row in its own column."""
    return xp.take_along_axis(x, xp.reshape(codes, (-1, 1)), axis=1)[:, 0]
