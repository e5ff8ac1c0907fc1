"""Growing one small decision tree on binned rows, level by level.

Nodes of the tree are numbered as in a heap: the root is 0, the children of h are 2h + 1 and 2h + 2. The rows
of a node are one segment of `order`. Of two siblings, only the smaller one's histogram is summed over rows;
the other's is the parent's histogram minus it.
"""

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.boosting.feature_order import first_and_step
from dichotomies._kernels.boosting.histograms import Codes, add_rows
from dichotomies._kernels.boosting.splits import (
    HESSIAN_EPSILON,
    MAX_BINS,
    SplitWorkspace,
    allocate_workspace,
    gini_split,
    newton_split,
)
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import copy

#: Number of features whose histograms are summed together.
FEATURE_BLOCK = 4

#: Impurity up to which a node counts as pure, as in scikit-learn.
PURE = float(np.finfo(np.float64).eps)


class BinnedRows(NamedTuple):
    """The binned rows of one training set, and the amounts summed in histograms.

    Attributes
    ----------
    codes : (n_features, n_rows)
        Local bins, those of the negative rows first.
    offsets : (n_features + 1,)
        Start of each feature's bins in a histogram, and the end.
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
    """Parameters of growing a tree.

    Attributes
    ----------
    newton : bool
        Score splits by the gain of a Newton step; otherwise by Gini impurity.
    unit : float
        Value of the integer 1 in fixed-point gradients.
    """

    max_depth: int
    min_rows: int
    newton: bool
    unit: float
    l2_regularization: float
    min_hessian: float


class Tree(NamedTuple):
    """A tree, and the memory it is grown in.

    Attributes
    ----------
    feature, last_bin, next_bin : (n_nodes,)
        Local feature of each node's split, -1 for a leaf; the last nonempty local bin on its left, and the
        next on its right.
    score : (n_nodes,)
        Score of the split.
    begin, middle, end : (n_nodes,)
        The node's rows are ``order[begin:end]``; the positive ones begin at ``middle``.
    sums, sums_left : (n_nodes, 2)
        The first two amounts, summed over the node's rows and over those left of its split.
    order, spare : (n_rows,)
        Row numbers by node, and scratch for partitioning them.
    histograms : (2, n_leaves / 4, n_channels, n_bins)
        Histograms of the nodes of two consecutive levels, alternating; not used for the last level.
    last_level : (2, n_channels, FEATURE_BLOCK * MAX_BINS)
        Histograms of two siblings on the last level that is split, of one block of features at a time.
    workspace : SplitWorkspace
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
    spare: IntArray
    histograms: IntArray
    last_level: IntArray
    workspace: SplitWorkspace


def allocate_tree(max_depth: int, n_rows: int, n_bins: int, n_channels: int) -> Tree:
    """Allocate a tree, whose memory is reused for all trees of a node."""
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
        np.empty((2, n_channels, FEATURE_BLOCK * MAX_BINS), dtype=np.int64),
        allocate_workspace(),
    )


@kernel
def grow_tree(rows: BinnedRows, growth: Growth, number: int, tree: Tree) -> None:
    """Grow a tree on all rows; nonempty nodes without a feature are its leaves.

    Ties between features are broken by the number of the tree, see `feature_order`.
    """
    root = init_root(rows, growth, tree)
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
            partition_rows(rows, tree, node)
            if level + 1 < growth.max_depth:
                is_last = level + 2 == growth.max_depth
                child = 2 * (node - first)
                children = tree.last_level if is_last else below[child : child + 2]
                search_children(rows, growth, number, tree, node, here[node - first], children, is_last)


@kernel
def init_root(rows: BinnedRows, growth: Growth, tree: Tree) -> int:
    """Initialise the root of an empty tree; return its number."""
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
    """Return True if a node may be split, and set the score that a split has to beat."""
    n_rows = tree.end[node] - tree.begin[node]
    a, b = float(tree.sums[node, 0]), float(tree.sums[node, 1])
    tree.score[node] = -1.0
    if growth.newton:
        a, b = growth.unit * a, growth.unit * b
        # the value of the root is 0 for any gradient
        tree.score[node] = a * a / (b + growth.l2_regularization + HESSIAN_EPSILON) if node > 0 else 0.0
    elif 2.0 * a * b <= PURE * (a + b) * (a + b):
        return False
    return bool(n_rows >= 2 * growth.min_rows)


@kernel
def partition_rows(rows: BinnedRows, tree: Tree, node: int) -> None:
    """Partition the rows of a node between its children, keeping their order."""
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
            tree.spare[moved] = row
            moved += 1
    copy(tree.spare, order[kept : kept + moved])
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
    rows: BinnedRows,
    growth: Growth,
    number: int,
    tree: Tree,
    node: int,
    parent: IntArray,
    children: IntArray,
    is_last: bool,
) -> None:
    """Find the splits of both children of a node, and write their histograms.

    On the last level, `children` holds the bins of one block of features only.
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
def search(  # noqa: C901 - nested loops
    rows: BinnedRows,
    growth: Growth,
    order_key: tuple[int, int],
    tree: Tree,
    siblings: tuple[int, int],
    wanted: tuple[bool, bool],
    histograms: tuple[IntArray, IntArray, IntArray],
    is_last: bool,
) -> None:
    """Find the splits of a node, whose histogram is summed, and of its sibling, by subtraction.

    Functions called for every feature take single arrays, because passing a whole tree takes longer than the
    work.

    Parameters
    ----------
    order_key : (number of the tree, node)
        Determines the order of features.
    siblings, wanted
        The node and its sibling, and flags to find the split of each.
    histograms : (of the parent, of the node, of its sibling)
        The last two are written; if `is_last`, they hold one block of features only.
    """
    (small, large), (parent, of_small, of_large) = siblings, histograms
    begin, middle, end = tree.begin[small], tree.middle[small], tree.end[small]
    first_rows = tree.order[begin : end if growth.newton else middle]
    second_rows = tree.order[begin if growth.newton else middle : end]
    all_rows = tree.order[begin:end]
    codes, offsets = rows.codes, rows.offsets
    n_features, n_channels = len(offsets) - 1, len(of_small)
    features, places = np.empty(FEATURE_BLOCK, dtype=np.int64), np.empty(FEATURE_BLOCK, dtype=np.int64)
    f, step = first_and_step(offsets, order_key[0], order_key[1])
    for done in range(0, n_features, FEATURE_BLOCK):
        n = min(FEATURE_BLOCK, n_features - done)
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
                last = best_split(
                    growth, first, second, counts, tree.sums[node], tree.score[node], tree.workspace
                )
                if last >= 0:
                    record_split(growth, tree, node, features[j], last, first, second)


@kernel
def best_split(
    growth: Growth,
    first: IntArray,
    second: IntArray,
    counts: IntArray,
    totals: IntArray,
    best: float,
    workspace: SplitWorkspace,
) -> int:
    """Return the last bin left of the best split of a feature, -1 if none is better than `best`."""
    if growth.newton:
        return newton_split(
            first,
            second,
            counts,
            totals,
            growth.min_rows,
            growth.unit,
            growth.l2_regularization,
            growth.min_hessian,
            best,
            workspace,
        )
    return gini_split(first, second, counts, totals, growth.min_rows, best, workspace)


@kernel
def record_split(
    growth: Growth, tree: Tree, node: int, feature: int, last: int, first: IntArray, second: IntArray
) -> None:
    """Record the split of a node by this feature, after this bin."""
    following = last + 1
    while not growth.newton and first[following] + second[following] == 0:
        following += 1
    tree.feature[node], tree.last_bin[node], tree.next_bin[node] = feature, last, following
    tree.score[node] = tree.workspace.score[last]
    tree.sums_left[node, 0], tree.sums_left[node, 1] = tree.workspace.first[last], tree.workspace.second[last]


@kernel
def clear(histogram: IntArray, begin: int, end: int) -> None:
    """Set some bins to 0."""
    for channel in range(len(histogram)):
        for b in range(begin, end):
            histogram[channel, b] = 0
