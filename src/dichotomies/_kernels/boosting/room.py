"""The rows of nodes, and the memory in which they are trained, allocated once for the largest of them.

Rows are sorted by leaf of the class tree: the rows of every node are contiguous, its left side first.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.ensembles import Ensembles
from dichotomies._kernels.boosting.local_rows import Bins, LocalRows, Origin, allocate_rows
from dichotomies._kernels.boosting.rows import rows_of_node
from dichotomies._kernels.boosting.sparse_rows import (
    SparseBins,
    SparseOrigin,
    SparseRows,
    allocate_sparse_rows,
)
from dichotomies._kernels.boosting.team import Team, teams
from dichotomies._kernels.boosting.tree_memory import MAX_BINS, Search, Tree, allocate_search, allocate_tree
from dichotomies._kernels.compile import kernel

#: Largest weights of a node's rows that are used as they are; others are scaled by a power of two.
LEAST_WEIGHT, MOST_WEIGHT = 2.0**-100, 2.0**100


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


class Boosted(NamedTuple):
    """Values of the rows of a node that change while it is boosted.

    Attributes
    ----------
    weight, score : (n_rows,)
    gradients : (2, n_rows)
        Gradients and Hessians in fixed point.
    keys : (n_rows,)
        Hash values of the rows' bins.
    factors : (max_leaves, 2)
        By which AdaBoost multiplies the weights of a leaf's rows of either class.
    """

    weight: FloatArray
    score: FloatArray
    gradients: IntArray
    keys: npt.NDArray[np.uint64]
    factors: FloatArray


class Room(NamedTuple):
    """Memory for the rows of a node and for a tree; kernels take its parts, which compiles faster."""

    rows: LocalRows | SparseRows
    origin: Origin | SparseOrigin
    tree: Tree
    search: Search
    boosted: Boosted


def allocate_rooms(
    n_threads: int, bins: Any, n_rows: int, max_leaves: int, max_depth: int, n_channels: int
) -> list[Room]:
    """Allocate room for nodes with at most so many rows and leaves of a tree, for every thread of a team.

    Each has a part of the rows; they share histograms.
    """
    first, *others = (
        _allocate_room(bins, n_rows, max_leaves, max_depth, n_channels, team) for team in teams(n_threads)
    )
    return [first, *(_sharing(room, first) for room in others)]


def _sharing(room: Room, first: Room) -> Room:
    """The room of another member of a team, with the memory that all members share."""
    origin: Any = room.origin
    return room._replace(
        origin=origin._replace(kinds=first.origin.kinds),  # type: ignore[union-attr]
        search=room.search._replace(histograms=first.search.histograms),
    )


def _allocate_room(
    bins: Any, n_rows: int, max_leaves: int, max_depth: int, n_channels: int, team: Team
) -> Room:
    n_features, most = len(bins.is_categorical), min(n_rows, MAX_BINS)
    n_bins = int(np.minimum(np.diff(bins.starts) + 1, most).sum())  # with those of missing values
    most_leaves, is_sparse = min(max_leaves, n_rows), isinstance(bins, SparseBins)
    rows: Any = allocate_sparse_rows(bins, n_rows) if is_sparse else allocate_rows(n_rows, n_features, team)
    n_rows = -(-n_rows // team.size)
    boosted = Boosted(
        weight=np.empty(n_rows),
        score=np.empty(n_rows),
        gradients=np.empty((2, n_rows), dtype=np.int64),
        keys=np.empty(n_rows, dtype=np.uint64),
        factors=np.empty((max_leaves, 2)),
    )
    tree = allocate_tree(most_leaves, n_rows)
    search = allocate_search(most_leaves, max_depth, n_channels, n_features, n_bins, is_sparse, team)
    return Room(rows[0], rows[1], tree, search, boosted)


@kernel
def take_weights(weight: FloatArray, most: float, taken: IntArray, n_rows: int, out: FloatArray) -> float:
    """Copy the weights of the rows taken; return `most`, the largest of the node.

    If it is extreme, all are scaled by a power of two, so that no sum overflows.
    """
    factor = 1.0
    while most * factor < LEAST_WEIGHT:
        factor *= 2.0**50
    while most * factor > MOST_WEIGHT:
        factor *= 2.0**-50
    for i in range(n_rows):
        out[i] = weight[taken[i]] * factor
    return most * factor


@kernel(inline=True)
def begin_node(
    bins: Bins | SparseBins,
    weight: FloatArray,
    fold: IntArray,
    left_out: int,
    ranges: Ranges,
    k: int,
    merge: bool,
    room: Any,
    origin: Any,
    team: Team,
    out: Ensembles,
) -> Any:
    """Take a member's part of the rows that a node is trained on.

    These have a positive weight, and are outside the fold left out.
    If only one class has rows, there is nothing to train: the log-odds are those with a row of weight 1 added
    to either class. Parameters as in `boost_gradient_nodes` and `local_rows`.
    """
    split, left_is_positive, taken = ranges.split[k], ranges.left_is_positive[k], origin.taken
    all_negative = n_all = n_negative = n_rows = turn = 0
    total = most = 0.0
    for side in range(2):  # the negative rows first
        on_left = (side == 0) != left_is_positive
        all_negative, n_negative = n_all, n_rows
        first, stop = (ranges.begin[k], split) if on_left else (split, ranges.end[k])
        for row in range(first, stop):
            if weight[row] > 0.0 and fold[row] != left_out:
                if turn == team.rank:  # every so many rows, so that all members have rows of all leaves
                    taken[n_rows] = row
                    n_rows += 1
                turn = turn + 1 if turn + 1 < team.size else 0
                total += weight[row]
                most = max(most, weight[row])
                n_all += 1
    out.is_trained[k], out.scale[k] = 0 < all_negative < n_all, 1.0 if left_is_positive else -1.0
    out.base[k], out.n_trees[k] = 0.0, 0
    if not out.is_trained[k]:
        out.base[k] = out.scale[k] * (-np.log(total + 1.0) if all_negative > 0 else np.log(total + 1.0))
        n_all = n_negative = n_rows = 0
    return rows_of_node(bins, room, origin, n_negative, n_rows, n_all, most, merge, team)
