"""Binned features: encoding rows, local codes of one node, and histograms.

Amounts are integers (weights or gradients in fixed point), so that sums do not depend on the order of the
rows, and the histogram of one child is exactly that of the parent minus its sibling's.
"""

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel

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
    binned: Codes,
    rows: IntArray,
    n_negative: int,
    merge: bool,
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
    their outer edges.

    Parameters
    ----------
    binned : (n_all_rows, n_features)
    rows : (n_rows,)
        The node's rows, the negative ones first.
    n_negative : int
        Number of negative rows.
    merge : bool
        Merge such bins.
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
    kept = 0
    offsets[0] = 0
    for f in range(n_features):
        has_rows = np.zeros((2, 256), dtype=np.bool_)
        for i in range(n_negative):
            has_rows[0, codes[f, i]] = True
        for i in range(n_negative, n_rows):
            has_rows[1, codes[f, i]] = True
        first = offsets[kept]
        end = number_bins(has_rows, merge, first, new_code, lowest, highest)
        if end - first > 1:
            for i in range(n_rows):
                codes[kept, i] = new_code[codes[f, i]]
            features[kept] = f
            kept += 1
            offsets[kept] = end
    return kept


@kernel
def number_bins(
    has_rows: BoolArray, merge: bool, first: int, new_code: Codes, lowest: IntArray, highest: IntArray
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
        kind = (1 if has_rows[0, b] else 0) + (2 if has_rows[1, b] else 0)
        if kind == 0:
            continue
        if not merge or kind == 3 or kind != kind_before:
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
