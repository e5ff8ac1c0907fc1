"""Whether what a file says fits together: loops over arrays do not look, and would leave their memory."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from dichotomies.persistence.errors import InconsistentModelError

_KINDS: dict[str, tuple[type[np.generic], ...]] = {
    "float": (np.float64, np.float32),
    "integer": (np.int64, np.int32),
    "int8": (np.int8,),
    "boolean": (np.bool_,),
    "byte": (np.uint8,),
    "string": (np.str_,),
}


def expect(holds: bool, what: str) -> None:
    """Refuse the model unless this holds; `what` says what is the case in every model."""
    if not holds:
        raise InconsistentModelError(f"its parts do not fit together; in a model, {what}")


def expect_type(value: Any, kind: type, name: str) -> None:
    """Refuse anything but an object of this class."""
    expect(isinstance(value, kind), f"{name} must be a {kind.__name__}")


def expect_array(array: Any, kind: str, shape: tuple[int | None, ...], name: str) -> None:
    """Refuse anything but an array of this kind of numbers and of this shape; None is any length."""
    what = f"{name} must be an array of {kind}s of shape {shape}"
    expect(isinstance(array, np.ndarray) and array.dtype.type in _KINDS[kind] and array.dtype.isnative, what)
    expect(array.ndim == len(shape), what)
    expect(all(a in (None, b) for a, b in zip(shape, array.shape, strict=True)), what)


def expect_offsets(offsets: Any, n_ranges: int, end: int, name: str) -> None:
    """Refuse anything but bounds of consecutive ranges that begin at 0 and end at `end`."""
    expect_array(offsets, "integer", (n_ranges + 1,), name)
    expect(
        bool(offsets[0] == 0 and offsets[-1] == end and (offsets[1:] >= offsets[:-1]).all()),
        f"{name} must rise from 0 to {end}",
    )


def expect_indices(indices: Any, lowest: int, end: int, name: str) -> None:
    """Refuse integers outside ``[lowest, end)``."""
    if indices.size:
        expect(
            bool(lowest <= indices.min() and indices.max() < end),
            f"{name} must be from {lowest} to {end - 1}",
        )


def expect_fitted_on(estimator: Any) -> None:
    """Refuse an estimator that does not say, as scikit-learn wants it, which features it was fitted on."""
    n_features, names = estimator.n_features_in_, getattr(estimator, "feature_names_in_", None)
    expect(isinstance(n_features, Integral) and int(n_features) > 0, "n_features_in_ is a number of features")
    if names is not None:
        expect(isinstance(names, np.ndarray) and names.shape == (n_features,), "every feature has a name")
