"""The rows of one node where most values are zero: only the others are stored, and summed in histograms.

The bin of zeros is filled with what is missing from the total. Functions are the counterparts of those in
`local_rows`, under one name in `rows`.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.encoding import MISSING, Codes
from dichotomies._kernels.boosting.local_rows import FEATURE, HASH_FACTOR
from dichotomies._kernels.boosting.team import Team
from dichotomies._kernels.compile import kernel


class SparseBins(NamedTuple):
    """Binned rows, sorted by leaf of the class tree, as a CSR matrix.

    Attributes
    ----------
    indptr : (n_rows + 1,)
        Start of each row's entries, and the end.
    columns : (n_entries,)
        Features, ascending within a row.
    codes : (n_entries,)
    zero : (n_features,)
        The code of 0.
    lowest, highest : (n_bins,)
        The lowest and highest value in each bin; equal for categories.
    starts : (n_features + 1,)
        Start of each feature's bins, and the end.
    is_categorical : (n_features,)
    """

    indptr: IntArray
    columns: npt.NDArray[np.int32]
    codes: Codes
    zero: Codes
    lowest: FloatArray
    highest: FloatArray
    starts: IntArray
    is_categorical: BoolArray

    def take(self, rows: IntArray) -> "SparseBins":
        """Select rows, in this order."""
        shape = len(self.indptr) - 1, len(self.zero)
        taken = csr_matrix((self.codes, self.columns, self.indptr), shape=shape)[rows]
        indptr, columns = taken.indptr.astype(np.intp), taken.indices.astype(np.int32)
        return self._replace(indptr=indptr, columns=columns, codes=taken.data)


class SparseRows(NamedTuple):
    """The rows that one node is trained on, in memory that has room for those of any node.

    Attributes
    ----------
    n_rows, n_negative, n_all, most, n_features, features, amounts
        As in `LocalRows`.
    indptr : (n_rows + 1,)
    columns, codes : (n_entries,)
        Local features, ascending within a row, and local bins.
    zero_bin : (n_features,)
        The local bin of 0; -1 where no row has a 0.
    """

    n_rows: int
    n_negative: int
    n_all: int
    most: float
    n_features: int
    features: IntArray
    amounts: IntArray
    indptr: IntArray
    columns: npt.NDArray[np.int32]
    codes: Codes
    zero_bin: IntArray


class SparseOrigin(NamedTuple):
    """Where the rows and bins of a node come from.

    Attributes
    ----------
    taken, first_bin, last_bin
        As in `Origin`.
    seen, new_code : (n_bins,)
        Scratch: rows in each global bin, and its local number.
    filled, local : (n_all_features,)
        Scratch: rows with an entry, and the local number of a feature, -1 for none.
    """

    taken: IntArray
    first_bin: IntArray
    last_bin: IntArray
    seen: IntArray
    new_code: Codes
    filled: IntArray
    local: IntArray


def allocate_sparse_rows(bins: SparseBins, n_rows: int) -> tuple[SparseRows, SparseOrigin]:
    """Allocate room for this many rows."""
    n_features, n_entries = len(bins.zero), len(bins.codes)
    n_bins = int(bins.starts[-1]) + n_features  # with those of missing values
    rows = SparseRows(
        n_rows=0,
        n_negative=0,
        n_all=0,
        most=0.0,
        n_features=0,
        features=np.empty(n_features, dtype=FEATURE),
        amounts=np.empty((3, n_rows), dtype=np.int64),
        indptr=np.empty(n_rows + 1, dtype=np.intp),
        columns=np.empty(n_entries, dtype=np.int32),
        codes=np.empty(n_entries, dtype=np.uint8),
        zero_bin=np.empty(n_features, dtype=np.intp),
    )
    origin = SparseOrigin(
        taken=np.empty(n_rows, dtype=np.intp),
        first_bin=np.empty(n_bins, dtype=np.intp),
        last_bin=np.empty(n_bins, dtype=np.intp),
        seen=np.zeros(n_bins, dtype=np.intp),
        new_code=np.empty(n_bins, dtype=np.uint8),
        filled=np.zeros(n_features, dtype=np.intp),
        local=np.empty(n_features, dtype=np.intp),
    )
    return rows, origin


@kernel
def local_sparse_rows(
    bins: SparseBins,
    room: SparseRows,
    origin: SparseOrigin,
    n_negative: int,
    n_rows: int,
    n_all: int,
    most: float,
    merge: bool,  # noqa: ARG001 - bins are not merged, which changes no tree
    team: Team,  # noqa: ARG001 - one thread
) -> SparseRows:
    """Number the features that vary among the rows taken by a node, and their bins; see `local_rows`."""
    for i in range(n_rows):
        room.amounts[0, i] = room.amounts[1, i] = room.amounts[2, i] = 1
        for e in range(bins.indptr[origin.taken[i]], bins.indptr[origin.taken[i] + 1]):
            origin.seen[bin_of(bins, bins.columns[e], bins.codes[e])] += 1
            origin.filled[bins.columns[e]] += 1
    n_features, first = 0, 0
    for f in range(len(bins.zero)):
        origin.local[f] = -1
        if origin.filled[f] == 0:
            continue
        end = number_sparse_bins(bins, origin, f, n_rows, first)
        if end - first > 1:
            at, zero = room.features[n_features], origin.new_code[bin_of(bins, f, bins.zero[f])]
            at["number"], at["begin"], at["end"] = f, first, end
            at["has_missing"], at["is_categorical"] = (
                origin.last_bin[end - 1] == MISSING,
                bins.is_categorical[f],
            )
            room.zero_bin[n_features] = zero if origin.filled[f] < n_rows else -1
            origin.local[f] = n_features
            n_features, first = n_features + 1, end
        origin.filled[f] = 0
    room.indptr[0] = n_entries = 0
    for i in range(n_rows):
        for e in range(bins.indptr[origin.taken[i]], bins.indptr[origin.taken[i] + 1]):
            f = bins.columns[e]
            if origin.local[f] >= 0:
                room.columns[n_entries] = origin.local[f]
                room.codes[n_entries] = origin.new_code[bin_of(bins, f, bins.codes[e])]
                n_entries += 1
        room.indptr[i + 1] = n_entries
    return SparseRows(
        n_rows,
        n_negative,
        n_all,
        most,
        n_features,
        room.features,
        room.amounts,
        room.indptr,
        room.columns,
        room.codes,
        room.zero_bin,
    )


@kernel(inline=True)
def bin_of(bins: SparseBins, feature: int, code: int) -> Any:
    """Place of a bin among those of all features, each with one for missing values at its end."""
    return feature + (bins.starts[feature + 1] if code == MISSING else bins.starts[feature] + code)


@kernel
def number_sparse_bins(bins: SparseBins, origin: SparseOrigin, f: int, n_rows: int, first: int) -> int:
    """Number the bins of one feature that have rows, from 0, and forget the rows.

    Returns
    -------
    int
        End of the entries written to `first_bin` and `last_bin` from `first` on.
    """
    begin, stop, end = bins.starts[f] + f, bins.starts[f + 1] + f + 1, first
    origin.seen[bin_of(bins, f, bins.zero[f])] += n_rows - origin.filled[f]
    for b in range(begin, stop):
        if origin.seen[b] > 0:
            origin.first_bin[end] = origin.last_bin[end] = MISSING if b == stop - 1 else b - begin
            origin.new_code[b] = end - first
            end += 1
        origin.seen[b] = 0
    return end


@kernel
def add_sparse_rows(
    rows: SparseRows, amounts: IntArray, order: IntArray, block: IntArray, n: int, out: IntArray
) -> None:
    """Add the amounts of some rows to the bins of all features; see `add_rows`."""
    total = np.int64(0)
    for i in range(len(order)):
        amount = amounts[order[i]]
        total += amount
        for e in range(rows.indptr[order[i]], rows.indptr[order[i] + 1]):
            out[rows.features[rows.columns[e]]["begin"] + rows.codes[e]] += amount
    for j in range(n):
        f = block[0, j]
        if rows.zero_bin[f] >= 0:
            rest = total
            for b in range(rows.features[f]["begin"], rows.features[f]["end"]):
                rest -= out[b]
            out[rows.features[f]["begin"] + rows.zero_bin[f]] += rest


@kernel
def write_sparse_bins(rows: SparseRows, feature: int, order: IntArray, out: Codes) -> None:
    """Write the local bins of some rows in one local feature."""
    for i in range(len(order)):
        first, end = rows.indptr[order[i]], rows.indptr[order[i] + 1]
        stop = end
        while first < end:
            middle = (first + end) // 2
            if rows.columns[middle] < feature:
                first = middle + 1
            else:
                end = middle
        has_entry = first < stop and rows.columns[first] == feature
        out[i] = rows.codes[first] if has_entry else rows.zero_bin[feature]


@kernel
def sparse_row_keys(rows: SparseRows, keys: Any) -> None:
    """Write hash values of the rows' bins."""
    for i in range(rows.n_rows):
        keys[i] = np.uint64(0)
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            keys[i] = keys[i] * HASH_FACTOR + np.uint64(256 * rows.columns[e]) + np.uint64(rows.codes[e])


@kernel
def sparse_global_code(bins: SparseBins, row: int, feature: int) -> Any:
    """Code of one row and feature; never called, because bins are not merged."""
    return np.int64(bins.zero[feature]) + 0 * row


@kernel
def write_sparse_codes(
    bins: SparseBins, rows: IntArray, features: IntArray, local: IntArray, out: Codes
) -> None:
    """Write the codes of some rows in some features; see `write_local_codes`."""
    for j in range(len(features)):
        for i in range(len(rows)):
            out[j, i] = bins.zero[features[j]]
    for i in range(len(rows)):
        for e in range(bins.indptr[rows[i]], bins.indptr[rows[i] + 1]):
            j = local[bins.columns[e]]
            if j >= 0:
                out[j, i] = bins.codes[e]
