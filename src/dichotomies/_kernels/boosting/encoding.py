"""Codes of features: the number of the bin that each value falls into, a byte where 255 are enough."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel

Codes = npt.NDArray[np.uint8]

#: Code of a missing value and of a category without a bin of its own.
MISSING = 255

ROW_BLOCK = 64

#: Steps into which the range of a feature's edges is divided.
STEPS = 256


class Encoder(NamedTuple):
    """Edges of features, and tables that find the place of a value among them.

    The range of a feature's edges is divided into equal steps; `starts` says how many edges are below each,
    so that few have to be compared with the value.

    Attributes
    ----------
    edges : (n_edges,)
        Ascending for each feature. The code of a number is the number of edges below it; that of a category
        is its position.
    offsets : (n_features + 1,)
        Start of each feature's edges, and the end.
    is_categorical : (n_features,)
    low, steps_per_unit : (n_features,)
    starts : (n_features, STEPS + 1)
    """

    edges: FloatArray
    offsets: IntArray
    is_categorical: BoolArray
    low: FloatArray
    steps_per_unit: FloatArray
    starts: npt.NDArray[np.int32]


def make_encoder(edges: FloatArray, offsets: IntArray, is_categorical: BoolArray) -> Encoder:
    """Make the tables of an encoder."""
    n_features = len(offsets) - 1
    low, steps_per_unit = np.zeros(n_features), np.zeros(n_features)
    some = np.flatnonzero(np.diff(offsets))
    low[some] = edges[offsets[some]]
    with np.errstate(all="ignore"):
        span = edges[offsets[some + 1] - 1] - low[some]
        steps_per_unit[some] = np.where(span > 0.0, np.minimum(STEPS / span, 1e300), 0.0)
        feature = np.repeat(np.arange(n_features), np.diff(offsets))
        position = (edges - low[feature]) * steps_per_unit[feature]
    step = np.clip(np.nan_to_num(position), 0, STEPS - 1).astype(np.intp)
    counts = np.bincount(feature * (STEPS + 1) + step + 1, minlength=n_features * (STEPS + 1))
    starts = counts.reshape(n_features, STEPS + 1).cumsum(axis=1).astype(np.int32)
    return Encoder(edges, offsets, is_categorical, low, steps_per_unit, starts)


@kernel
def step_of(x: Any, low: float, steps_per_unit: float) -> Any:
    """The step that a value is in; never less for a higher value."""
    position = (x - low) * steps_per_unit
    if position >= STEPS - 1:
        return np.int64(STEPS - 1)
    return np.int64(position) if position > 0.0 else np.int64(0)


@kernel
def encode_column(x: FloatArray, encoder: Encoder, f: int, missing: Any, out: Any) -> None:
    """Write the code of each value of a feature.

    Parameters
    ----------
    x : (n_rows,)
    missing : unsigned integer
        Code of NaN, and of a category that is none of the edges.
    out : (n_rows or more,)
    """
    edges, starts = encoder.edges[encoder.offsets[f] : encoder.offsets[f + 1]], encoder.starts[f]
    low, steps_per_unit, is_categorical = encoder.low[f], encoder.steps_per_unit[f], encoder.is_categorical[f]
    for i in range(len(x)):
        value = np.float64(x[i])
        if np.isnan(value):
            out[i] = missing
            continue
        step = step_of(value, low, steps_per_unit)
        first, end = np.int64(starts[step]), np.int64(starts[step + 1])
        while first < end:
            middle = (first + end) // 2
            if edges[middle] < value:
                first = middle + 1
            else:
                end = middle
        out[i] = first
        if is_categorical and (first >= len(edges) or edges[first] != value):
            out[i] = missing


@kernel
def encode_rows(X: FloatArray, rows: IntArray, encoder: Encoder, out: Codes) -> None:
    """Write the code of every feature of the given rows.

    Parameters
    ----------
    X : (n_rows, n_features)
    rows : (n_taken,)
        The rows to encode, in the order to write them.
    out : (n_taken, n_features)
    """
    column, codes = np.empty(ROW_BLOCK, dtype=X.dtype), np.empty(ROW_BLOCK, dtype=np.uint8)
    for begin in range(0, len(rows), ROW_BLOCK):
        n = min(ROW_BLOCK, len(rows) - begin)
        for f in range(X.shape[1]):
            for i in range(n):
                column[i] = X[rows[begin + i], f]
            encode_column(column[:n], encoder, f, np.uint8(MISSING), codes)
            for i in range(n):
                out[begin + i, f] = codes[i]


@encode_rows.plainly
def encode_few_rows(X: FloatArray, rows: IntArray, encoder: Encoder, out: Codes) -> None:
    """Write the codes of rows without compiled code."""
    for f in range(X.shape[1]):
        edges = encoder.edges[encoder.offsets[f] : encoder.offsets[f + 1]]
        out[:, f] = encode_values(X[rows, f], edges, encoder.is_categorical[f])


def encode_values(x: FloatArray, edges: FloatArray, is_categorical: bool) -> IntArray:
    """Codes of values of one feature, without compiled code."""
    x = x.astype(np.float64, copy=False)
    code, is_missing = np.searchsorted(edges, x), np.isnan(x)
    if is_categorical:
        is_missing |= np.append(edges, np.nan)[code] != x
    return np.where(is_missing, MISSING, code)
