"""Binned features: codes of rows, the codes of one tree node side by side, and sums of amounts per bin.

Amounts are integers (weights or gradients in fixed point), so that a sum does not depend on the order of the
rows and the histogram of one side of a split is exactly that of the whole minus the other side.
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
    """Lay the rows of a node out feature by feature, in bins numbered anew without those that are empty.

    A feature that is constant in the node is left out, so small nodes have short histograms. Neighbouring
    bins that have rows of one and the same class only can be merged: impurity is concave in the weight of
    one class, so whatever the weights of rows and wherever in a tree, a cut between these bins is worse than
    the better one of those before and behind them.

    Parameters
    ----------
    binned : (n_all_rows, n_features)
    rows : (n_rows,)
        The node's rows, the negative ones first.
    n_negative : int
        How many of them are negative.
    merge : bool
        Whether to merge such bins.
    codes : (n_features, n_rows)
        Written in as many rows as there are features that vary.
    features : (n_features,)
        Written: which feature each of them is.
    offsets : (n_features + 1,)
        Written: where the new bins of each of them begin in `lowest` and `highest`, and the end.
    lowest, highest : (n_features * 256,)
        Written: the first and the last of the bins before that each new bin is made of.

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
        The end of what is written in `lowest` and `highest`, beginning at `first`.
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
        The features, and where their bins begin in `out`.
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

    Where many rows share a bin, every sum waits for the one before: four at a time wait together.
    """
    for i in range(len(order)):
        row = order[i]
        amount = amounts[row]
        out_a[a[row]] += amount
        out_b[b[row]] += amount
        out_c[c[row]] += amount
        out_d[d[row]] += amount
