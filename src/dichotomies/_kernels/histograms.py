"""Binned features: codes of rows, the codes of one tree node side by side, and sums of amounts per bin.

Amounts are integers (weights or gradients in fixed point), so that a sum does not depend on the order of the
rows and the histogram of one side of a split is exactly that of the whole minus the other side.
"""

import numpy as np
import numpy.typing as npt

from dichotomies._kernels.compile import kernel
from dichotomies._typing import FloatArray, IntArray

Codes = npt.NDArray[np.uint8]

ROW_BLOCK = 64


@kernel
def encode_rows(X: FloatArray, rows: IntArray, highest: FloatArray, n_bins: IntArray, out: Codes) -> None:
    """Write the bin of every feature of the given rows: the first whose highest value is not exceeded.

    Parameters
    ----------
    X : (n_rows, n_features)
    rows : (n_taken,)
        The rows to encode, in the order to write them.
    highest : (n_features, max_bins)
        The highest value of each bin, ascending in its first ``n_bins`` entries.
    n_bins : (n_features,)
    out : (n_taken, n_features)
    """
    for begin in range(0, len(rows), ROW_BLOCK):
        end = min(begin + ROW_BLOCK, len(rows))
        for f in range(X.shape[1]):
            edges = highest[f]
            for i in range(begin, end):
                x = X[rows[i], f]
                first, length = 0, n_bins[f] - 1
                while length > 0:
                    half = (length + 1) // 2
                    if edges[first + half - 1] < x:
                        first += half
                        length -= half
                    else:
                        length = half - 1
                out[i, f] = first


@kernel
def local_codes(
    binned: Codes, rows: IntArray, codes: Codes, features: IntArray, offsets: IntArray, bins: IntArray
) -> int:
    """Lay the rows of a node out feature by feature, in bins numbered anew without those that are empty.

    A feature that is constant in the node is left out, so small nodes have short histograms.

    Parameters
    ----------
    binned : (n_all_rows, n_features)
    rows : (n_rows,)
        The node's rows.
    codes : (n_features, n_rows)
        Written in as many rows as there are features that vary.
    features : (n_features,)
        Written: which feature each of them is.
    offsets : (n_features + 1,)
        Written: where the bins of each of them begin in `bins`, and the end.
    bins : (n_features * 256,)
        Written: the number of each bin before.

    Returns
    -------
    int
        How many features vary.
    """
    n_rows, n_features = len(rows), binned.shape[1]
    for begin in range(0, n_rows, ROW_BLOCK):
        for i in range(begin, min(begin + ROW_BLOCK, n_rows)):
            for f in range(n_features):
                codes[f, i] = binned[rows[i], f]
    new_code = np.empty(256, dtype=np.uint8)
    kept = 0
    offsets[0] = 0
    for f in range(n_features):
        present = np.zeros(256, dtype=np.bool_)
        for i in range(n_rows):
            present[codes[f, i]] = True
        first = last = offsets[kept]
        for b in range(256):
            if present[b]:
                bins[last] = b
                new_code[b] = last - first
                last += 1
        if last - first > 1:
            for i in range(n_rows):
                codes[kept, i] = new_code[codes[f, i]]
            features[kept] = f
            kept += 1
            offsets[kept] = last
    return kept


@kernel
def add_all(codes: Codes, amounts: IntArray, begin: int, end: int, out: IntArray) -> None:
    """Add the amounts of consecutive rows to the bins of one feature."""
    for i in range(begin, end):
        out[codes[i]] += amounts[i]


@kernel
def add_some(codes: Codes, amounts: IntArray, order: IntArray, begin: int, end: int, out: IntArray) -> None:
    """Add the amounts of the rows ``order[begin:end]`` to the bins of one feature."""
    for k in range(begin, end):
        row = order[k]
        out[codes[row]] += amounts[row]
