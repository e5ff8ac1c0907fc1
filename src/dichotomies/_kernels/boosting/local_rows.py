"""The rows of one node, feature by feature, with bins numbered without the empty ones."""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.encoding import MISSING, ROW_BLOCK, Codes
from dichotomies._kernels.boosting.histograms import add_to_four
from dichotomies._kernels.boosting.team import Team, meet
from dichotomies._kernels.boosting.tree_memory import FEATURE_BLOCK
from dichotomies._kernels.compile import kernel

#: An odd number without structure: the golden ratio in 64 bits.
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)

#: A feature that varies among the rows of a node: its number among all features; the range of its bins in a
#: histogram; whether the last one is that of missing values. A list kept here, by position: the features that
#: a tree may use (`active`).
FEATURE = np.dtype(
    [
        *((name, "i8") for name in ("number", "begin", "end")),
        ("has_missing", "?"),
        ("is_categorical", "?"),
        ("active", "i8"),
    ],
    align=True,
)


class Bins(NamedTuple):
    """Binned rows, sorted by leaf of the class tree.

    Attributes
    ----------
    codes : (n_rows, n_features)
    lowest, highest : (n_bins,)
        The lowest and highest value in each bin; equal for categories.
    starts : (n_features + 1,)
        Start of each feature's bins, and the end.
    is_categorical : (n_features,)
    """

    codes: Codes
    lowest: FloatArray
    highest: FloatArray
    starts: IntArray
    is_categorical: BoolArray

    def take(self, rows: IntArray) -> "Bins":
        """Select rows, in this order."""
        return self._replace(codes=self.codes.take(rows, axis=0))


class LocalRows(NamedTuple):
    """The rows that one node is trained on, in memory that has room for those of any node.

    Attributes
    ----------
    n_rows, n_negative : int
        Rows, of which the negative ones come first: all of the node, or those of one member of a team.
    n_all : int
        Rows of all members.
    most : float
        Largest of their weights.
    n_features : int
        Features that vary among them.
    features : (n_features,) of FEATURE
    codes : (n_features, n_rows)
        Local bins.
    amounts : (3, n_rows)
        In fixed point. For Gini impurity the weight, twice (once for either class); for a Newton step the
        gradient and the Hessian in one, see `newton`. Last, 1 for each row that is drawn for a tree.
    """

    n_rows: int
    n_negative: int
    n_all: int
    most: float
    n_features: int
    features: IntArray
    codes: Codes
    amounts: IntArray


class Origin(NamedTuple):
    """Where the rows and bins of a node come from.

    Attributes
    ----------
    taken : (n_rows,)
        Row numbers.
    first_bin, last_bin : (n_bins,)
        First and last of the global bins merged into each local bin.
    numbers : (256,)
        Scratch: the local number of each bin of a feature.
    kinds : (size of the team, n_features, 256)
        Scratch: the classes that have rows in each bin, 1 for the negative one, 2 for the other, 3 for both;
        of each member's rows.
    """

    taken: IntArray
    first_bin: IntArray
    last_bin: IntArray
    numbers: IntArray
    kinds: Codes


def allocate_rows(n_rows: int, n_features: int, team: Team) -> tuple[LocalRows, Origin]:
    """Allocate room for the rows of one member of a team, of this many."""
    room, n_rows = n_features * min(256, n_rows), -(-n_rows // team.size)
    rows = LocalRows(
        n_rows=0,
        n_negative=0,
        n_all=0,
        most=0.0,
        n_features=0,
        features=np.empty(n_features, dtype=FEATURE),
        codes=np.empty((n_features, n_rows), dtype=np.uint8),
        amounts=np.empty((3, n_rows), dtype=np.int64),
    )
    origin = Origin(
        taken=np.empty(n_rows, dtype=np.intp),
        first_bin=np.empty(room, dtype=np.intp),
        last_bin=np.empty(room, dtype=np.intp),
        numbers=np.empty(256, dtype=np.intp),
        kinds=np.empty((team.size, n_features, 256), dtype=np.uint8),
    )
    return rows, origin


@kernel
def local_rows(
    bins: Bins,
    room: LocalRows,
    origin: Origin,
    n_negative: int,
    n_rows: int,
    n_all: int,
    most: float,
    merge: bool,
    team: Team,
) -> LocalRows:
    """Transpose the rows taken by a node to feature-major order, renumbering bins without the empty ones.

    A feature that is constant in the node is left out, so small nodes have short histograms. Neighbouring
    bins with rows of the same single class can be merged: impurity is concave in the weight of one class, so
    for any row weights and at any depth, a split between them is worse than the better one of the splits at
    their outer edges. Missing values keep a bin of their own, the last one, and categories theirs.

    Parameters
    ----------
    room : LocalRows
        Memory.
    origin : Origin
        Of which ``taken[:n_rows]`` are the node's rows, the negative ones first.
    n_all, most
        As in `LocalRows`.
    merge : bool
        Merge such bins.
    """
    codes, features, numbers = room.codes, room.features, origin.numbers
    copy_codes(bins, room, origin, n_negative, n_rows, origin.kinds[team.rank])
    meet(team)
    kept, first = 0, 0
    for f in range(len(codes)):
        is_categorical, kinds = bins.is_categorical[f], origin.kinds[:, f]
        merges = merge and not is_categorical
        end = number_bins(kinds, merges, first, origin.first_bin, origin.last_bin, numbers)
        if end - first > 1:
            for i in range(n_rows):
                codes[kept, i] = numbers[codes[f, i]]
            at = features[kept]
            at["number"], at["begin"], at["end"] = f, first, end
            at["has_missing"], at["is_categorical"] = origin.last_bin[end - 1] == MISSING, is_categorical
            kept, first = kept + 1, end
    meet(team)
    return LocalRows(n_rows, n_negative, n_all, most, kept, features, codes, room.amounts)


@kernel
def copy_codes(
    bins: Bins, room: LocalRows, origin: Origin, n_negative: int, n_rows: int, kinds: Codes
) -> None:
    """Copy the codes of the rows taken, and write the classes that have rows in each bin of a feature."""
    codes, taken = room.codes, origin.taken
    for i in range(n_rows):
        room.amounts[0, i] = room.amounts[1, i] = room.amounts[2, i] = 1
    for begin in range(0, n_rows, ROW_BLOCK):
        for i in range(begin, min(begin + ROW_BLOCK, n_rows)):
            for f in range(len(codes)):
                codes[f, i] = bins.codes[taken[i], f]
    for f in range(len(codes)):
        for b in range(256):
            kinds[f, b] = 0
        for i in range(n_negative):
            kinds[f, codes[f, i]] = 1
        for i in range(n_negative, n_rows):
            kinds[f, codes[f, i]] |= 2


@kernel
def number_bins(
    kinds: Codes, merge: bool, first: int, lowest: IntArray, highest: IntArray, numbers: IntArray
) -> int:
    """Number the bins of one feature that have negative or positive rows, from 0; see `local_rows`.

    Returns
    -------
    int
        End of the entries written to `lowest` and `highest` from `first` on.
    """
    end = first
    kind_before = np.uint8(0)
    for b in range(256):
        kind = kinds[0, b]
        for r in range(1, len(kinds)):
            kind |= kinds[r, b]
        if kind == 0:
            continue
        if b == MISSING or not merge or kind == 3 or kind != kind_before:
            lowest[end] = b
            end += 1
        highest[end - 1] = b
        numbers[b] = end - 1 - first
        kind_before = kind
    return end


@kernel
def add_local_rows(
    rows: LocalRows, amounts: IntArray, order: IntArray, block: IntArray, n: int, out: IntArray
) -> None:
    """Add the amounts of some rows to the bins of the `n` features of a block.

    Parameters
    ----------
    amounts : (n_all_rows,)
    order : (n_rows,)
        The rows to add.
    block : (2, n or more)
        The features, and the start of their bins in `out`.
    """
    codes = rows.codes
    if n == FEATURE_BLOCK:
        add_to_four(
            codes[block[0, 0]],
            codes[block[0, 1]],
            codes[block[0, 2]],
            codes[block[0, 3]],
            amounts,
            order,
            out[block[1, 0] :],
            out[block[1, 1] :],
            out[block[1, 2] :],
            out[block[1, 3] :],
        )
        return
    for j in range(n):
        of_feature, bins = codes[block[0, j]], out[block[1, j] :]
        for i in range(len(order)):
            row = order[i]
            bins[of_feature[row]] += amounts[row]


@kernel
def write_local_bins(rows: LocalRows, feature: int, order: IntArray, out: Codes) -> None:
    """Write the local bins of some rows in one local feature."""
    codes = rows.codes[feature]
    for i in range(len(order)):
        out[i] = codes[order[i]]


@kernel(inline=True)
def global_code(bins: Bins, row: int, feature: int) -> Any:
    """Code of one row and feature."""
    return np.int64(bins.codes[row, feature])


@kernel
def local_row_keys(rows: LocalRows, keys: Any) -> None:
    """Write hash values of the rows' bins."""
    for i in range(rows.n_rows):
        keys[i] = np.uint64(0)
    for f in range(rows.n_features):
        codes = rows.codes[f]
        for i in range(rows.n_rows):
            keys[i] = keys[i] * HASH_FACTOR + np.uint64(codes[i])


@kernel
def write_local_codes(
    bins: Bins,
    rows: IntArray,
    features: IntArray,
    local: IntArray,  # noqa: ARG001 - for sparse rows
    out: Codes,
) -> None:
    """Write the codes of some rows in some features.

    Parameters
    ----------
    rows : (n,)
    features : (m,)
    local : (n_features,)
        Place of each feature among those, -1 for all others.
    out : (m or more, n or more)
    """
    for i in range(len(rows)):
        for j in range(len(features)):
            out[j, i] = bins.codes[rows[i], features[j]]
