"""Codes of features: the number of the bin that each value falls into, a byte where 255 are enough."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel

Codes = npt.NDArray[np.uint8]

#: Code of a missing value and of a category without a bin of its own.
MISSING = 255

#: Rows that are read together, so that the values of a row are in the cache for all features.
ROW_BLOCK = 256

#: Steps into which the range of a feature's edges is divided.
STEPS = 256


class Encoder(NamedTuple):
    """Edges of features, and tables that find the place of a value among them.

    The range of a feature's edges is divided into equal steps; `starts` says how many edges are below each,
    so that few have to be compared with the value.

    Attributes
    ----------
    edges : (n_edges,)
        Ascending for each feature, then NaN, so that searches need not look for the end. The code of a number
        is the number of edges below it; that of a category is its position.
    offsets : (n_features + 1,)
        Start of each feature's edges, and the end.
    is_categorical : (n_features,)
    low, steps_per_unit : (n_features,)
    starts : (n_features, STEPS + 1)
    halvings : (n_features,)
        A search begins with ``2**halvings``; twice as much is more than the edges of any step.
    """

    edges: FloatArray
    offsets: IntArray
    is_categorical: BoolArray
    low: FloatArray
    steps_per_unit: FloatArray
    starts: npt.NDArray[np.uint32]
    halvings: IntArray


def make_encoder(edges: FloatArray, offsets: IntArray, is_categorical: BoolArray) -> Encoder:
    """Make the tables of an encoder."""
    n_features, n_edges = len(offsets) - 1, np.diff(offsets)
    low, steps_per_unit = np.zeros(n_features), np.zeros(n_features)
    some = np.flatnonzero(n_edges)
    low[some] = edges[offsets[some]]
    with np.errstate(all="ignore"):
        span = edges[offsets[some + 1] - 1] - low[some]
        steps_per_unit[some] = np.where(span > 0.0, np.minimum(STEPS / span, 1e300), 0.0)
        feature = np.repeat(np.arange(n_features), n_edges)
        position = (edges - low[feature]) * steps_per_unit[feature]
    step = np.clip(np.nan_to_num(position), 0, STEPS - 1).astype(np.intp)
    counts = np.bincount(feature * (STEPS + 1) + step + 1, minlength=n_features * (STEPS + 1))
    counts = counts.reshape(n_features, STEPS + 1)
    halvings = np.log2(counts.max(axis=1, initial=1)).astype(np.intp)
    padded_offsets = np.concatenate([[0], np.cumsum(n_edges + (2 << halvings))])
    padded = np.full(padded_offsets[-1], np.nan)
    padded[np.arange(len(edges)) + np.repeat(padded_offsets[:-1] - offsets[:-1], n_edges)] = edges
    starts = counts.cumsum(axis=1).astype(np.uint32)
    return Encoder(padded, padded_offsets, is_categorical, low, steps_per_unit, starts, halvings)


@kernel(inline=True)
def encode_column(x: FloatArray, encoder: Encoder, f: int, missing: Any, out: Any) -> None:
    """Write the code of each value of a feature.

    The search takes as many comparisons for every value, none of which is a branch to be predicted.

    Parameters
    ----------
    x : (n_rows,)
    missing : unsigned integer
        Code of NaN, and of a category that is none of the edges.
    out : (n_rows or more,)
    """
    edges, low = encoder.edges[encoder.offsets[f] : encoder.offsets[f + 1]], encoder.low[f]
    steps_per_unit = encoder.steps_per_unit[f]
    for i in range(len(x)):  # the step of a value is never less than that of a lower one
        position: Any = (np.float64(x[i]) - low) * steps_per_unit
        position = position if position > 0.0 else 0.0
        out[i] = np.int32(position if position < STEPS - 1 else STEPS - 1)
    search_edges(x, edges, encoder.starts[f], encoder.halvings[f], out)
    if encoder.is_categorical[f]:
        for i in range(len(x)):
            out[i] = missing if edges[out[i]] != x[i] else out[i]
    else:
        for i in range(len(x)):
            out[i] = missing if np.isnan(x[i]) else out[i]


@kernel(inline=True)
def search_edges(x: FloatArray, edges: FloatArray, starts: Any, halvings: int, out: Any) -> None:
    """Replace the step of each value by the number of edges below the value."""
    if halvings == 0:
        for i in range(len(x)):
            code = starts[out[i]]
            out[i] = code + (edges[code] < x[i])
        return
    later = edges[(1 << halvings) - 1 :]
    for i in range(len(x)):
        code = starts[out[i]]
        out[i] = code + ((later[code] < x[i]) << halvings)
    for halving in range(halvings - 1, -1, -1):
        later = edges[(1 << halving) - 1 :]
        for i in range(len(x)):
            out[i] += (later[out[i]] < x[i]) << halving


@kernel
def encode(
    X: FloatArray, rows: IntArray, features: IntArray, encoder: Encoder, missing: Any, at: int, out: Any
) -> None:
    """Write the codes of some rows in some features, each feature's one after the other, from `at` on.

    Parameters
    ----------
    X : (n_rows, n_features)
    features : (n_encoded,)
        Those that the encoder has edges for.
    missing : unsigned integer
        Code of NaN, and of a category that is none of the edges.
    out : (n_encoded, at + len(rows) or more)
    """
    column = np.empty(ROW_BLOCK, dtype=X.dtype)
    for begin in range(0, len(rows), ROW_BLOCK):
        taken = rows[begin : begin + ROW_BLOCK]
        for j in range(len(features)):
            f = features[j]
            for i in range(len(taken)):
                column[i] = X[taken[i], f]
            encode_column(column[: len(taken)], encoder, j, missing, out[j, at + begin :])
