"""Binned rows, and the rows of one node of the class tree, with bins numbered without the empty ones.

Rows are sorted by leaf of the class tree: the rows of every node are contiguous, its left side first. Of
sparse rows, only entries are stored; the bin of zeros is filled with what is missing from the total.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.encoding import MISSING, Codes
from dichotomies._kernels.compile import kernel

#: An odd number without structure: the golden ratio in 64 bits.
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)

#: Features whose histograms are summed together.
FEATURE_BLOCK = 4

#: A feature that varies among the rows of a node: its number among all features; the range of its bins in a
#: histogram; the end of that range if neighbouring bins with rows of the same single class were one
#: (AdaBoost), which the order of features depends on; of sparse rows, the local bin of 0, or -1 where no row
#: has a 0; whether the last bin is that of missing values.
FEATURE = np.dtype(
    [
        *((name, "i8") for name in ("number", "begin", "end", "merged_end", "zero")),
        *((name, "?") for name in ("has_missing", "is_categorical")),
    ],
    align=True,
)


class Bins(NamedTuple):
    """Binned rows.

    Attributes
    ----------
    codes : (n_features, n_rows), or (1, n_entries) of sparse rows
    indptr, columns : (n_rows + 1,), (n_entries,), or both empty
        Of sparse rows, as of a CSR matrix.
    zero : (n_features,) or empty
        Of sparse rows: the code of 0.
    lowest, highest : (n_bins,)
        The lowest and highest value in each bin; equal for categories.
    starts : (n_features + 1,)
        Start of each feature's bins, and the end.
    is_categorical : (n_features,)
    """

    codes: Codes
    indptr: IntArray
    columns: npt.NDArray[np.int32]
    zero: Codes
    lowest: FloatArray
    highest: FloatArray
    starts: IntArray
    is_categorical: BoolArray

    def as_csr(self) -> Any:
        """Sparse rows as a matrix of codes."""
        shape = len(self.indptr) - 1, len(self.zero)
        return csr_matrix((self.codes[0], self.columns, self.indptr), shape=shape)

    def take(self, rows: IntArray) -> "Bins":
        """Select rows, in this order."""
        if len(self.indptr) == 0:
            return self._replace(codes=self.codes.take(rows, axis=1))
        taken = self.as_csr()[rows]
        indptr, columns = taken.indptr.astype(np.intp), taken.indices.astype(np.int32)
        return self._replace(codes=taken.data[None], indptr=indptr, columns=columns)

    def codes_of(self, rows: IntArray, features: IntArray) -> Codes:
        """Codes of some rows in some features, shape (n_taken_features, n_taken_rows)."""
        if len(self.indptr) == 0:
            return self.codes[np.ix_(features, rows)]
        out: Codes = np.repeat(self.zero[features][:, None], len(rows), axis=1)
        place = np.full(len(self.zero), -1)
        place[features] = np.arange(len(features))
        taken = self.as_csr()[rows]
        row, column = np.repeat(np.arange(len(rows)), np.diff(taken.indptr)), place[taken.indices]
        is_used = column >= 0
        out[column[is_used], row[is_used]] = taken.data[is_used]
        return out


class Ranges(NamedTuple):
    """The rows of nodes, as ranges of the binned rows.

    Attributes
    ----------
    begin, split, end : (n_nodes,)
        Each node's range, and the start of its right side.
    left_is_positive : (n_nodes,)
        True where the left side is the positive class, which loses ties.
    """

    begin: IntArray
    split: IntArray
    end: IntArray
    left_is_positive: BoolArray

    def take(self, nodes: slice) -> "Ranges":
        """Select some nodes."""
        sides = self.begin[nodes], self.split[nodes], self.end[nodes]
        return Ranges(*sides, self.left_is_positive[nodes])


class Sample(NamedTuple):
    """The rows to train on: those of positive weight outside the fold that is left out, -1 for none.

    Attributes
    ----------
    weight, fold : (n_rows,)
    """

    weight: FloatArray
    fold: IntArray
    left_out: int


class NodeRows(NamedTuple):
    """The rows that one node is trained on, in memory that is large enough for those of any node.

    Attributes
    ----------
    n_rows, n_negative : int
        Rows, of which the negative ones come first.
    largest : float
        Largest of their weights.
    n_features : int
        Features that vary among them.
    taken : (n_rows,)
        Row numbers.
    features : (n_features,) of FEATURE
    codes : (n_features, n_rows), or (1, n_entries) of sparse rows
        Local bins.
    indptr, columns : (n_rows + 1,), (n_entries,), or both empty
        Of sparse rows; columns are local features.
    bin_codes : (n_local_bins,)
        The code of each local bin.
    numbers : (n_bins + n_features,)
        Scratch: 1 for bins with negative rows, 2 with positive ones, 3 with both; then their local numbers.
    filled : (n_all_features,)
        Scratch: of sparse rows, those that have an entry; then the local number of a feature, -1 for none.
    amounts, drawn : (n_rows,)
        In fixed point: weights, or gradients and Hessians in one (see `splits`); 1 for each row that is drawn
        for a tree.
    """

    n_rows: int
    n_negative: int
    largest: float
    n_features: int
    taken: IntArray
    features: Any
    codes: Codes
    indptr: IntArray
    columns: npt.NDArray[np.int32]
    bin_codes: IntArray
    numbers: Codes
    filled: IntArray
    amounts: IntArray
    drawn: IntArray


def allocate_rows(bins: Bins, n_rows: int) -> NodeRows:
    """Allocate memory for nodes of at most so many rows."""
    n_features, is_sparse = len(bins.is_categorical), len(bins.indptr) > 0
    n_entries, n_bins = bins.codes.shape[1], int(bins.starts[-1]) + n_features
    return NodeRows(
        n_rows=0,
        n_negative=0,
        largest=0.0,
        n_features=0,
        taken=np.empty(n_rows, dtype=np.intp),
        features=np.empty(n_features, dtype=FEATURE),
        codes=np.empty((1, n_entries) if is_sparse else (n_features, n_rows), dtype=np.uint8),
        indptr=np.empty(n_rows + 1 if is_sparse else 0, dtype=np.intp),
        columns=np.empty(n_entries if is_sparse else 0, dtype=np.int32),
        bin_codes=np.empty(n_bins, dtype=np.intp),
        numbers=np.zeros(n_bins, dtype=np.uint8),
        filled=np.zeros(n_features, dtype=np.intp),
        amounts=np.empty(n_rows, dtype=np.int64),
        drawn=np.empty(n_rows, dtype=np.int64),
    )


@kernel(inline=True)
def take_rows(
    bins: Bins, sample: Sample, ranges: Ranges, k: int, merges: bool, memory: NodeRows
) -> tuple[Any, float]:
    """Take the rows that node k is trained on, the negative ones first; return also their total weight.

    Bins are numbered only if there are rows of both classes.
    """
    weight, taken, split = sample.weight, memory.taken, ranges.split[k]
    n_rows = n_negative = 0
    total = largest = 0.0
    for side in range(2):
        on_left = (side == 0) != ranges.left_is_positive[k]
        n_negative = n_rows
        first, stop = (ranges.begin[k], split) if on_left else (split, ranges.end[k])
        for row in range(first, stop):
            if weight[row] > 0.0 and sample.fold[row] != sample.left_out:
                taken[n_rows] = row
                n_rows += 1
                total += weight[row]
                largest = max(largest, weight[row])
    n_features = 0
    if 0 < n_negative < n_rows:
        if len(bins.indptr):
            n_features = number_sparse(bins, n_rows, memory)
        else:
            n_features = number_dense(bins, n_rows, n_negative, merges, memory)
    rows = NodeRows(
        n_rows,
        n_negative,
        largest,
        n_features,
        memory.taken,
        memory.features,
        memory.codes,
        memory.indptr,
        memory.columns,
        memory.bin_codes,
        memory.numbers,
        memory.filled,
        memory.amounts,
        memory.drawn,
    )
    return rows, total


@kernel(inline=True)
def number_dense(bins: Bins, n_rows: int, n_negative: int, merges: bool, memory: NodeRows) -> int:
    """Write the local bins of the rows taken, feature by feature; return how many features vary."""
    taken, numbers = memory.taken, memory.numbers
    n_features = first = merged_end = 0
    for f in range(len(bins.codes)):
        source, at = bins.codes[f], bins.starts[f] + f
        width = bins.starts[f + 1] - bins.starts[f]
        for i in range(n_negative):
            numbers[at + min(np.int64(source[taken[i]]), width)] |= 1
        for i in range(n_negative, n_rows):
            numbers[at + min(np.int64(source[taken[i]]), width)] |= 2
        end, n_merged = number_bins(bins, f, first, merges, memory)
        if end - first > 1:
            codes = memory.codes[n_features]
            for i in range(n_rows):
                codes[i] = numbers[at + min(np.int64(source[taken[i]]), width)]
            merged_end += n_merged
            memory.features[n_features]["merged_end"] = merged_end
            begin_feature(bins, f, first, end, memory, n_features)
            n_features, first = n_features + 1, end
        numbers[at : at + width + 1] = 0
    return n_features


@kernel(inline=True)
def number_sparse(bins: Bins, n_rows: int, memory: NodeRows) -> int:
    """Write the entries of the rows taken, with local features and bins; return how many features vary."""
    taken, numbers, filled, codes = memory.taken, memory.numbers, memory.filled, bins.codes[0]
    for i in range(n_rows):
        for e in range(bins.indptr[taken[i]], bins.indptr[taken[i] + 1]):
            numbers[place_of(bins, bins.columns[e], codes[e])] = 1
            filled[bins.columns[e]] += 1
    n_features, first = 0, 0
    for f in range(len(bins.zero)):
        n_filled, filled[f] = filled[f], -1
        if n_filled == 0:
            continue
        zero = place_of(bins, f, bins.zero[f])
        if n_filled < n_rows:
            numbers[zero] = 1
        end, _ = number_bins(bins, f, first, False, memory)
        if end - first > 1:
            begin_feature(bins, f, first, end, memory, n_features)
            memory.features[n_features]["merged_end"] = end
            memory.features[n_features]["zero"] = numbers[zero] if n_filled < n_rows else -1
            filled[f] = n_features
            n_features, first = n_features + 1, end
    n_entries = 0
    memory.indptr[0] = 0
    for i in range(n_rows):
        for e in range(bins.indptr[taken[i]], bins.indptr[taken[i] + 1]):
            if filled[bins.columns[e]] >= 0:
                memory.columns[n_entries] = filled[bins.columns[e]]
                memory.codes[0, n_entries] = numbers[place_of(bins, bins.columns[e], codes[e])]
                n_entries += 1
        memory.indptr[i + 1] = n_entries
    numbers[:], filled[:] = 0, 0
    return n_features


@kernel(inline=True)
def place_of(bins: Bins, feature: int, code: int) -> Any:
    """Place of a bin among those of all features, each with one for missing values at its end."""
    return feature + (bins.starts[feature + 1] if code == MISSING else bins.starts[feature] + code)


@kernel
def number_bins(bins: Bins, f: int, first: int, merges: bool, memory: NodeRows) -> tuple[int, int]:
    """Number the bins of one feature that have rows.

    Returns
    -------
    end : int
        End of the local bins, from `first` on.
    n_merged : int
        Number of bins if neighbours with rows of the same single class were one.
    """
    begin, stop, end, n_merged = bins.starts[f] + f, bins.starts[f + 1] + f, first, 0
    before = np.uint8(0)
    for b in range(begin, stop + 1):
        sides = memory.numbers[b]
        if sides:
            n_merged += b == stop or not merges or sides == 3 or sides != before
            before = sides
            memory.bin_codes[end] = MISSING if b == stop else b - begin
            memory.numbers[b] = end - first
            end += 1
    return end, n_merged


@kernel(inline=True)
def begin_feature(bins: Bins, f: int, begin: int, end: int, memory: NodeRows, number: int) -> None:
    """Describe a feature that varies."""
    at = memory.features[number]
    at["number"], at["begin"], at["end"] = f, begin, end
    at["has_missing"], at["is_categorical"] = memory.bin_codes[end - 1] == MISSING, bins.is_categorical[f]


@kernel
def add_histograms(
    rows: NodeRows, amounts: IntArray, order: IntArray, features: IntArray, out: IntArray
) -> None:
    """Add the amounts of some rows to the bins of some local features, which are 0 before.

    Additions to the same bin depend on one another; interleaving four features hides that latency.

    Parameters
    ----------
    order : (n_taken,)
        The rows to add.
    out : (n_bins,)
    """
    codes, at = rows.codes, rows.features
    if len(rows.indptr):
        add_entries(rows, amounts, order, features, out)
        return
    n_whole = len(features) // FEATURE_BLOCK * FEATURE_BLOCK
    for j in range(0, n_whole, FEATURE_BLOCK):
        f, g, h, k = features[j], features[j + 1], features[j + 2], features[j + 3]
        a, b, c, d = codes[f], codes[g], codes[h], codes[k]
        out_a, out_b = out[at[f]["begin"] :], out[at[g]["begin"] :]
        out_c, out_d = out[at[h]["begin"] :], out[at[k]["begin"] :]
        for i in range(len(order)):
            row = order[i]
            amount = amounts[row]
            out_a[a[row]] += amount
            out_b[b[row]] += amount
            out_c[c[row]] += amount
            out_d[d[row]] += amount
    for j in range(n_whole, len(features)):
        of_feature, bins = codes[features[j]], out[at[features[j]]["begin"] :]
        for i in range(len(order)):
            bins[of_feature[order[i]]] += amounts[order[i]]


@kernel(inline=True)
def add_entries(
    rows: NodeRows, amounts: IntArray, order: IntArray, features: IntArray, out: IntArray
) -> None:
    """The same for sparse rows; the bins of features that are not wanted are left in any state."""
    total = np.int64(0)
    for i in range(len(order)):
        amount = amounts[order[i]]
        total += amount
        for e in range(rows.indptr[order[i]], rows.indptr[order[i] + 1]):
            out[rows.features[rows.columns[e]]["begin"] + rows.codes[0, e]] += amount
    for j in range(len(features)):
        at = rows.features[features[j]]
        if at["zero"] >= 0:
            rest = total
            for b in range(at["begin"], at["end"]):
                rest -= out[b]
            out[at["begin"] + at["zero"]] += rest


@kernel
def write_bins(rows: NodeRows, feature: int, order: IntArray, out: Codes) -> None:
    """Write the local bins of some rows in one local feature."""
    if len(rows.indptr) == 0:
        codes = rows.codes[feature]
        for i in range(len(order)):
            out[i] = codes[order[i]]
        return
    for i in range(len(order)):
        first, stop = rows.indptr[order[i]], rows.indptr[order[i] + 1]
        at = first + np.searchsorted(rows.columns[first:stop], feature)
        has_entry = at < stop and rows.columns[at] == feature
        out[i] = rows.codes[0, at] if has_entry else rows.features[feature]["zero"]


@kernel
def write_row_keys(rows: NodeRows, keys: Any) -> None:
    """Write hash values of the rows' bins."""
    keys[: rows.n_rows] = np.uint64(0)
    if len(rows.indptr) == 0:
        for f in range(rows.n_features):
            codes = rows.codes[f]
            for i in range(rows.n_rows):
                keys[i] = keys[i] * HASH_FACTOR + np.uint64(codes[i])
        return
    for i in range(rows.n_rows):
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            keys[i] = keys[i] * HASH_FACTOR + np.uint64(256 * rows.columns[e]) + np.uint64(rows.codes[0, e])
