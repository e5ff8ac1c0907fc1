"""Binned features: encoding rows, local codes of one node, and histograms.

Amounts are integers (weights or gradients in fixed point), so that sums do not depend on the order of the
rows, and the histogram of one child is exactly that of the parent minus its sibling's.
"""

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


@kernel
def make_encoder(edges: FloatArray, offsets: IntArray, is_categorical: BoolArray) -> Encoder:
    """Make the tables of an encoder."""
    n_features = len(offsets) - 1
    low, steps_per_unit = np.zeros(n_features), np.zeros(n_features)
    starts = np.zeros((n_features, STEPS + 1), dtype=np.int32)
    for f in range(n_features):
        own = edges[offsets[f] : offsets[f + 1]]
        if len(own) > 0:
            low[f] = own[0]
            if own[-1] - own[0] > 0.0:
                steps_per_unit[f] = min(STEPS / (own[-1] - own[0]), 1e300)
        for e in range(len(own)):
            starts[f, step_of(own[e], low[f], steps_per_unit[f]) + 1] += 1
        for i in range(STEPS):
            starts[f, i + 1] += starts[f, i]
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


@kernel
def local_codes(
    binned: Codes,
    rows: IntArray,
    n_negative: int,
    merge: bool,
    is_categorical: BoolArray,
    codes: Codes,
    features: IntArray,
    offsets: IntArray,
    lowest: IntArray,
    highest: IntArray,
) -> int:
    """Transpose the rows of a node to feature-major order, renumbering bins without the empty ones.

    A feature that is constant in the node is left out, so small nodes have short histograms. Neighbouring
    bins with rows of the same single class can be merged: impurity is concave in the weight of one class, so
    for any row weights and at any depth, a split between them is worse than the better one of the splits at
    their outer edges. Missing values keep a bin of their own, the last one.

    Parameters
    ----------
    binned : (n_all_rows, n_features)
    rows : (n_rows,)
        The node's rows, the negative ones first.
    n_negative : int
        Number of negative rows.
    merge : bool
        Merge such bins.
    is_categorical : (n_features,)
        Categories are never merged.
    codes : (n_features, n_rows)
        Written: one row per feature that varies.
    features : (n_features,)
        Written: the global number of each feature that varies.
    offsets : (n_features + 1,)
        Written: start of each one's new bins in `lowest` and `highest`, and the end.
    lowest, highest : (n_features * 256,)
        Written: first and last of the old bins merged into each new bin.

    Returns
    -------
    int
        Number of features that vary.
    """
    n_rows, n_features = len(rows), binned.shape[1]
    for begin in range(0, n_rows, ROW_BLOCK):
        for i in range(begin, min(begin + ROW_BLOCK, n_rows)):
            for f in range(n_features):
                codes[f, i] = binned[rows[i], f]
    new_code = np.empty(256, dtype=np.uint8)
    counts = np.empty((2, 256), dtype=np.int64)
    kept = 0
    offsets[0] = 0
    for f in range(n_features):
        counts[:] = 0
        for i in range(n_negative):
            counts[0, codes[f, i]] += 1
        for i in range(n_negative, n_rows):
            counts[1, codes[f, i]] += 1
        first = offsets[kept]
        end = number_bins(counts, merge and not is_categorical[f], first, new_code, lowest, highest)
        if end - first > 1:
            for i in range(n_rows):
                codes[kept, i] = new_code[codes[f, i]]
            features[kept] = f
            kept += 1
            offsets[kept] = end
    return kept


@kernel
def number_bins(
    counts: IntArray,
    merge: bool,
    first: int,
    new_code: Codes,
    lowest: IntArray,
    highest: IntArray,
) -> int:
    """Number the bins of one feature that have negative or positive rows, from 0; see `local_codes`.

    Returns
    -------
    int
        End of the entries written to `lowest` and `highest` from `first` on.
    """
    end = first
    kind_before = 0
    for b in range(256):
        kind = (1 if counts[0, b] > 0 else 0) + (2 if counts[1, b] > 0 else 0)
        if kind == 0:
            continue
        if b == MISSING or not merge or kind == 3 or kind != kind_before:
            lowest[end] = b
            end += 1
        highest[end - 1] = b
        new_code[b] = end - 1 - first
        kind_before = kind
    return end


@kernel
def add_rows(
    codes: Codes, amounts: IntArray, order: IntArray, features: IntArray, places: IntArray, out: IntArray
) -> None:
    """Add the amounts of some rows to the bins of a few features.

    Parameters
    ----------
    codes : (n_all_features, n_all_rows)
    amounts : (n_all_rows,)
    order : (n_rows,)
        The rows to add.
    features, places : (n_features,)
        The features, and the start of their bins in `out`.
    """
    if len(features) == 4:
        add_to_four(
            codes[features[0]],
            codes[features[1]],
            codes[features[2]],
            codes[features[3]],
            amounts,
            order,
            out[places[0] :],
            out[places[1] :],
            out[places[2] :],
            out[places[3] :],
        )
        return
    for j in range(len(features)):
        of_feature, bins = codes[features[j]], out[places[j] :]
        for i in range(len(order)):
            row = order[i]
            bins[of_feature[row]] += amounts[row]


@kernel
def add_to_four(
    a: Codes,
    b: Codes,
    c: Codes,
    d: Codes,
    amounts: IntArray,
    order: IntArray,
    out_a: IntArray,
    out_b: IntArray,
    out_c: IntArray,
    out_d: IntArray,
) -> None:
    """Add the amounts of some rows to the bins of four features.

    Additions to the same bin depend on one another; interleaving four features hides that latency.
    """
    for i in range(len(order)):
        row = order[i]
        amount = amounts[row]
        out_a[a[row]] += amount
        out_b[b[row]] += amount
        out_c[c[row]] += amount
        out_d[d[row]] += amount
