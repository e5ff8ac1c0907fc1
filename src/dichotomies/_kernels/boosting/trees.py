"""Growing one small decision tree on binned rows, level by level.

Nodes of the tree are numbered as in a heap: the root is 0, the children of h are 2h + 1 and 2h + 2. The rows
of a node are one segment of `order`. Of two siblings only the smaller is summed up row by row; the other's
histogram is what that leaves of their parent's.
"""

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.boosting.feature_rounds import start_round
from dichotomies._kernels.boosting.histograms import Codes, add_rows
from dichotomies._kernels.boosting.splits import (
    LEAST_HESSIAN,
    MAX_BINS,
    Room,
    gini_cut,
    newton_cut,
    room_for_cuts,
)
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import copy

#: So many features are summed up together.
TOGETHER = 4

#: Impurity that counts as none, as in scikit-learn.
PURE = float(np.finfo(np.float64).eps)


class Rows(NamedTuple):
    """The binned rows of one training set, and what is summed up over them.

    Attributes
    ----------
    codes : (n_features, n_rows)
        Local bins, those of the negative rows first.
    offsets : (n_features + 1,)
        Where each feature's bins begin in a histogram, and the end.
    n_negative : int
        Number of negative rows.
    amounts : (3, n_rows)
        In fixed point. For Gini impurity the weight, twice (once for either class); for a Newton step the
        gradient and the Hessian. Last, 1 for each row.
    """

    codes: Codes
    offsets: IntArray
    n_negative: int
    amounts: IntArray


class Growth(NamedTuple):
    """Parameters of growth.

    Attributes
    ----------
    newton : bool
        Whether cuts are judged by a Newton step's gain, or else by Gini impurity.
    unit : float
        What one step of the integer gradients stands for.
    """

    max_depth: int
    min_rows: int
    newton: bool
    unit: float
    l2_regularization: float
    min_hessian: float


class Tree(NamedTuple):
    """A tree, and the room it is grown in.

    Attributes
    ----------
    feature, last_bin, next_bin : (n_nodes,)
        Local feature of each node's cut, -1 for a leaf; the last local bin on its left that has rows, and
        the next on its right.
    score : (n_nodes,)
        How good the cut is.
    begin, middle, end : (n_nodes,)
        The node's rows are ``order[begin:end]``; the positive ones, if apart, begin at ``middle``.
    sums, sums_left : (n_nodes, 2)
        The first two amounts, summed up over the node's rows and over those left of its cut.
    order, aside : (n_rows,)
        Row numbers by node, and room for half of them.
    histograms : (2, n_leaves / 4, n_channels, n_bins)
        Of the nodes of one level and the one before, in turns, as long as there is a level below to be cut.
    of_few : (2, n_channels, TOGETHER * MAX_BINS)
        Of two siblings below which nothing is cut, of a few features at a time.
    room : Room
    """

    feature: IntArray
    last_bin: IntArray
    next_bin: IntArray
    score: FloatArray
    begin: IntArray
    middle: IntArray
    end: IntArray
    sums: IntArray
    sums_left: IntArray
    order: IntArray
    aside: IntArray
    histograms: IntArray
    of_few: IntArray
    room: Room


def room_for_tree(max_depth: int, n_rows: int, n_bins: int, n_channels: int) -> Tree:
    """Room for a tree, to be grown in again and again."""
    n = 2 ** (max_depth + 1) - 1
    n_stored = 2 ** max(max_depth - 2, 0)
    return Tree(
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty((n, 2), dtype=np.int64),
        np.empty((n, 2), dtype=np.int64),
        np.empty(n_rows, dtype=np.int64),
        np.empty(n_rows, dtype=np.int64),
        np.empty((2, n_stored, n_channels, n_bins), dtype=np.int64),
        np.empty((2, n_channels, TOGETHER * MAX_BINS), dtype=np.int64),
        room_for_cuts(),
    )


@kernel
def grow_tree(rows: Rows, growth: Growth, number: int, tree: Tree) -> None:
    """Grow a tree on all rows; its nodes without a feature, if they have rows, are its leaves.

    The number of the tree decides which of several equally good features is taken.
    """
    root = plant(rows, growth, tree)
    if not may_split(growth, tree, root):
        return
    histogram = tree.histograms[0, 0]
    # Variables rather than literals, which would be types of their own: another signature to compile.
    yes, no = root == 0, root != 0
    search(rows, growth, (number, root), tree, (root, root), (yes, no), (histogram, histogram, histogram), no)
    for level in range(growth.max_depth):
        first = 2**level - 1
        here = tree.histograms[level % 2]
        below = tree.histograms[(level + 1) % 2]
        for node in range(first, 2 * first + 1):
            if tree.feature[node] < 0:
                continue
            divide(rows, tree, node)
            if level + 1 < growth.max_depth:
                is_last = level + 2 == growth.max_depth
                child = 2 * (node - first)
                children = tree.of_few if is_last else below[child : child + 2]
                search_children(rows, growth, number, tree, node, here[node - first], children, is_last)


@kernel
def plant(rows: Rows, growth: Growth, tree: Tree) -> int:
    """Make the root of an empty tree; return its number."""
    for node in range(len(tree.feature)):
        tree.feature[node], tree.begin[node], tree.end[node] = -1, 0, 0
    n_rows = rows.codes.shape[1]
    for i in range(n_rows):
        tree.order[i] = i
    tree.middle[0], tree.end[0] = rows.n_negative, n_rows
    tree.sums[0, 0] = tree.sums[0, 1] = 0
    for i in range(n_rows if growth.newton else rows.n_negative):
        tree.sums[0, 0] += rows.amounts[0, i]
    for i in range(0 if growth.newton else rows.n_negative, n_rows):
        tree.sums[0, 1] += rows.amounts[1, i]
    return int(tree.begin[0])


@kernel
def may_split(growth: Growth, tree: Tree, node: int) -> bool:
    """Decide whether to search for a cut; if so, set what it has to beat."""
    n_rows = tree.end[node] - tree.begin[node]
    a, b = float(tree.sums[node, 0]), float(tree.sums[node, 1])
    tree.score[node] = -1.0
    if growth.newton:
        a, b = growth.unit * a, growth.unit * b
        # the root's value is 0, whatever its gradient
        tree.score[node] = a * a / (b + growth.l2_regularization + LEAST_HESSIAN) if node > 0 else 0.0
    elif 2.0 * a * b <= PURE * (a + b) * (a + b):
        return False
    return bool(n_rows >= 2 * growth.min_rows)


@kernel
def divide(rows: Rows, tree: Tree, node: int) -> None:
    """Hand the rows of a node to its children, each side in its order."""
    left, right = 2 * node + 1, 2 * node + 2
    codes, order, last = rows.codes[tree.feature[node]], tree.order, tree.last_bin[node]
    kept, moved = tree.begin[node], 0
    tree.middle[left] = tree.middle[right] = -1
    for k in range(tree.begin[node], tree.end[node]):
        if k == tree.middle[node]:
            tree.middle[left], tree.middle[right] = kept, moved
        row = order[k]
        if codes[row] <= last:
            order[kept] = row
            kept += 1
        else:
            tree.aside[moved] = row
            moved += 1
    copy(tree.aside, order[kept : kept + moved])
    if tree.middle[node] == tree.end[node]:
        tree.middle[left], tree.middle[right] = kept, moved
    tree.middle[right] += kept
    tree.begin[left], tree.end[left] = tree.begin[node], kept
    tree.begin[right], tree.end[right] = kept, tree.end[node]
    for channel in range(2):
        tree.sums[left, channel] = tree.sums_left[node, channel]
        tree.sums[right, channel] = tree.sums[node, channel] - tree.sums_left[node, channel]


@kernel
def search_children(
    rows: Rows,
    growth: Growth,
    number: int,
    tree: Tree,
    node: int,
    parent: IntArray,
    children: IntArray,
    is_last: bool,
) -> None:
    """Find the cuts of both children of a node, and write their histograms.

    Where nothing below them is cut, there is room for a few features' bins only, and no need of more.
    """
    left, right = 2 * node + 1, 2 * node + 2
    search_left, search_right = may_split(growth, tree, left), may_split(growth, tree, right)
    if not (search_left or search_right):
        return
    left_is_small = tree.end[left] - tree.begin[left] <= tree.end[right] - tree.begin[right]
    small, large = (left, right) if left_is_small else (right, left)
    search_small = search_left if left_is_small else search_right
    search_large = search_right if left_is_small else search_left
    of_small, of_large = children[0 if left_is_small else 1], children[1 if left_is_small else 0]
    histograms = (parent, of_small, of_large)
    search(
        rows, growth, (number, node), tree, (small, large), (search_small, search_large), histograms, is_last
    )


@kernel
def search(  # noqa: C901 - loops in one another
    rows: Rows,
    growth: Growth,
    turn: tuple[int, int],
    tree: Tree,
    siblings: tuple[int, int],
    wanted: tuple[bool, bool],
    histograms: tuple[IntArray, IntArray, IntArray],
    is_last: bool,
) -> None:
    """Find the cuts of a node, whose rows are summed up, and of its sibling, which has the rest.

    What is called for every feature gets single arrays: handing on a whole tree takes longer than the work.

    Parameters
    ----------
    turn : (number of the tree, node)
        Decide the order of features.
    siblings, wanted
        The node and its sibling, and whether to find the cut of each.
    histograms : (of the parent, of the node, of its sibling)
        The last two are written; by `is_last` they have room for a few features only.
    """
    (small, large), (parent, of_small, of_large) = siblings, histograms
    begin, middle, end = tree.begin[small], tree.middle[small], tree.end[small]
    first_rows = tree.order[begin : end if growth.newton else middle]
    second_rows = tree.order[begin if growth.newton else middle : end]
    all_rows = tree.order[begin:end]
    codes, offsets = rows.codes, rows.offsets
    n_features, n_channels = len(offsets) - 1, len(of_small)
    features, places = np.empty(TOGETHER, dtype=np.int64), np.empty(TOGETHER, dtype=np.int64)
    f, step = start_round(offsets, turn[0], turn[1])
    for done in range(0, n_features, TOGETHER):
        n = min(TOGETHER, n_features - done)
        for j in range(n):
            f = (f + step) % n_features
            features[j], places[j] = f, j * MAX_BINS if is_last else offsets[f]
            clear(of_small, places[j], places[j] + offsets[f + 1] - offsets[f])
        add_rows(codes, rows.amounts[0], first_rows, features[:n], places, of_small[0])
        add_rows(codes, rows.amounts[1], second_rows, features[:n], places, of_small[1])
        if growth.min_rows > 1:
            add_rows(codes, rows.amounts[2], all_rows, features[:n], places, of_small[2])
        for j in range(n):
            a, b = places[j], offsets[features[j]]
            width = offsets[features[j] + 1] - b
            for side in range(2):
                if not wanted[side]:
                    continue
                node, histogram = (small, of_small) if side == 0 else (large, of_large)
                if side == 1:
                    for channel in range(n_channels):
                        for i in range(width):
                            of_large[channel, a + i] = parent[channel, b + i] - of_small[channel, a + i]
                first, second = histogram[0, a : a + width], histogram[1, a : a + width]
                counts = histogram[n_channels - 1, a : a + width]
                last = best_cut(growth, first, second, counts, tree.sums[node], tree.score[node], tree.room)
                if last >= 0:
                    keep(growth, tree, node, features[j], last, first, second)


@kernel
def best_cut(
    growth: Growth,
    first: IntArray,
    second: IntArray,
    counts: IntArray,
    totals: IntArray,
    best: float,
    room: Room,
) -> int:
    """The last bin left of the best cut of a feature, -1 if none is better than `best`."""
    if growth.newton:
        return newton_cut(
            first,
            second,
            counts,
            totals,
            growth.min_rows,
            growth.unit,
            growth.l2_regularization,
            growth.min_hessian,
            best,
            room,
        )
    return gini_cut(first, second, counts, totals, growth.min_rows, best, room)


@kernel
def keep(
    growth: Growth, tree: Tree, node: int, feature: int, last: int, first: IntArray, second: IntArray
) -> None:
    """Cut a node by this feature, behind that bin."""
    following = last + 1
    while not growth.newton and first[following] + second[following] == 0:
        following += 1
    tree.feature[node], tree.last_bin[node], tree.next_bin[node] = feature, last, following
    tree.score[node] = tree.room.score[last]
    tree.sums_left[node, 0], tree.sums_left[node, 1] = tree.room.first[last], tree.room.second[last]


@kernel
def clear(histogram: IntArray, begin: int, end: int) -> None:
    """Empty some bins."""
    for channel in range(len(histogram)):
        for b in range(begin, end):
            histogram[channel, b] = 0
