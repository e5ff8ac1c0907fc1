"""Growing one decision tree on binned rows, the most promising leaf first.

The rows of a leaf are one segment of `order`. Of two siblings, only the smaller one's histogram is summed
over rows; the other's is the parent's histogram minus it, in its place.
"""

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies._kernels.boosting.feature_order import first_and_step
from dichotomies._kernels.boosting.histograms import add_rows
from dichotomies._kernels.boosting.splits import (
    HESSIAN_BITS,
    HESSIAN_EPSILON,
    MAX_BINS,
    category_split,
    gini_split,
    newton_split,
)
from dichotomies._kernels.boosting.tree_memory import FEATURE_BLOCK, BinnedRows, Growth, Tree
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import copy

#: Impurity up to which a node counts as pure, as in scikit-learn.
PURE = float(np.finfo(np.float64).eps)


#: Distinguishes the features drawn for a tree from the order in which they are tried.
OF_TREES = 2**40


@kernel
def grow_tree(rows: BinnedRows, growth: Growth, number: int, tree: Tree) -> None:
    """Grow a tree on all rows: split the leaf with the largest gain until there are enough leaves.

    Ties between features are broken by the number of the tree, see `feature_order`.
    """
    n_active = choose_features(rows, growth, number, tree)
    root = init_root(rows, growth, tree)
    n_free = len(tree.free)
    for i in range(n_free):
        tree.free[i] = i
    if n_active == 0 or not may_split(growth, tree, root):
        return
    # Variables rather than literals, which would be types of their own: another signature to compile.
    yes, no = root == 0, root != 0
    n_free -= 1
    tree.slot[root] = tree.free[n_free]
    histogram = tree.histograms[tree.slot[root]]
    key = (number, root)
    active = tree.active[:n_active]
    search(rows, growth, key, active, tree, (root, root), (yes, no), (histogram, histogram, histogram), no)
    n_nodes = 1
    while tree.n_splits[0] + 1 < len(tree.splits):
        node = most_promising(tree, n_nodes)
        if node < 0:
            break
        left = n_nodes
        add_children(rows, tree, node, left)
        n_nodes += 2
        is_full = tree.n_splits[0] + 1 >= len(tree.splits)
        if tree.depth[left] < growth.max_depth and not is_full:
            n_free = search_children(rows, growth, number, active, tree, node, n_free)
        elif tree.slot[node] >= 0:
            tree.free[n_free] = tree.slot[node]
            n_free += 1


@kernel
def most_promising(tree: Tree, n_nodes: int) -> int:
    """Return the leaf whose split gains most; -1 if none can be split."""
    best, found = -1.0, -1
    for node in range(n_nodes):
        if tree.child[node] < 0 and tree.feature[node] >= 0:
            gain = tree.score[node] - tree.least[node]
            if gain > best:
                best, found = gain, node
    return found


@kernel
def choose_features(rows: BinnedRows, growth: Growth, number: int, tree: Tree) -> int:
    """Write the features that this tree may use; return their number."""
    n_features = len(rows.offsets) - 1
    n_active = n_features
    if growth.tree_features < 1.0 and n_features > 0:
        n_active = max(1, int(np.ceil(growth.tree_features * n_features)))
    if n_active == n_features:
        for f in range(n_features):
            tree.active[f] = f
        return n_features
    f, step = first_and_step(rows.offsets, number + OF_TREES, growth.seed)
    for j in range(n_active):
        tree.active[j] = f
        f = (f + step) % n_features
    return n_active


@kernel
def init_root(rows: BinnedRows, growth: Growth, tree: Tree) -> int:
    """Initialise the root of an empty tree; return its number."""
    n_rows = rows.codes.shape[1]
    for i in range(n_rows):
        tree.order[i] = i
    tree.n_splits[0] = 0
    init_node(tree, 0, 0, rows.n_negative, n_rows)
    tree.depth[0] = tree.leaf[0] = tree.key[0] = 0
    tree.sums[0, 0] = tree.sums[0, 1] = 0
    for i in range(n_rows if growth.newton else rows.n_negative):
        tree.sums[0, 0] += rows.amounts[0, i]
    for i in range(rows.n_negative, 0 if growth.newton else n_rows):
        tree.sums[0, 1] += rows.amounts[1, i]
    return int(tree.begin[0])


@kernel
def init_node(tree: Tree, node: int, begin: int, middle: int, end: int) -> None:
    """Initialise a leaf that has these rows."""
    tree.feature[node] = tree.child[node] = tree.slot[node] = -1
    tree.begin[node], tree.middle[node], tree.end[node] = begin, middle, end


@kernel
def may_split(growth: Growth, tree: Tree, node: int) -> bool:
    """Return True if a node may be split, and set the score that a split has to beat."""
    n_rows = tree.end[node] - tree.begin[node]
    tree.least[node] = -1.0
    if growth.newton:
        limits = growth.limits
        gradient = limits.unit * np.float64(tree.sums[node, 0] >> 32)
        hessian = limits.unit * np.float64(tree.sums[node, 0] & HESSIAN_BITS)
        penalty = limits.l2_regularization + HESSIAN_EPSILON
        # the value of the root is 0 for any gradient
        tree.least[node] = gradient * gradient / (hessian + penalty) if node > 0 else 0.0
    else:
        a, b = float(tree.sums[node, 0]), float(tree.sums[node, 1])
        if 2.0 * a * b <= PURE * (a + b) * (a + b):
            return False
    tree.score[node] = tree.least[node]
    return bool(n_rows >= 2 * growth.limits.min_rows)


@kernel
def add_children(rows: BinnedRows, tree: Tree, node: int, left: int) -> None:
    """Split a node: partition its rows between two new nodes, keeping their order."""
    right, feature = left + 1, tree.feature[node]
    codes, order, last = rows.codes[feature], tree.order, tree.last_bin[node]
    missing = -1
    if tree.missing_left[node]:
        missing = rows.offsets[feature + 1] - rows.offsets[feature] - 1
    is_categorical, bits = rows.is_categorical[feature], tree.bits[node]
    begin, middle, end = tree.begin[node], tree.middle[node], tree.end[node]
    kept, moved = begin, 0
    left_middle = right_middle = -1
    for k in range(begin, end):
        if k == middle:
            left_middle, right_middle = kept, moved
        row = order[k]
        code = codes[row]
        goes_left = code <= last or code == missing
        if is_categorical:
            goes_left = (bits[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) == np.uint64(1)
        if goes_left:
            order[kept] = row
            kept += 1
        else:
            tree.spare[moved] = row
            moved += 1
    copy(tree.spare, order[kept : kept + moved])
    if middle == end:
        left_middle, right_middle = kept, moved
    init_node(tree, left, begin, left_middle, kept)
    init_node(tree, right, kept, kept + right_middle, end)
    for channel in range(2):
        tree.sums[left, channel] = tree.sums_left[node, channel]
        tree.sums[right, channel] = tree.sums[node, channel] - tree.sums_left[node, channel]
    tree.child[node] = left
    tree.depth[left] = tree.depth[right] = tree.depth[node] + 1
    tree.key[left], tree.key[right] = 2 * tree.key[node] + 1, 2 * tree.key[node] + 2
    split = tree.n_splits[0]
    tree.leaf[left], tree.leaf[right] = tree.leaf[node], split + 1
    tree.splits[split] = node
    tree.n_splits[0] = split + 1


@kernel
def search_children(
    rows: BinnedRows, growth: Growth, number: int, active: IntArray, tree: Tree, node: int, n_free: int
) -> int:
    """Find the splits of both children of a node, and write their histograms.

    Returns
    -------
    int
        Number of free places of histograms afterwards.
    """
    left = tree.child[node]
    right, is_last = left + 1, tree.depth[left] + 1 == growth.max_depth
    search_left, search_right = may_split(growth, tree, left), may_split(growth, tree, right)
    parent = tree.slot[node]
    if search_left or search_right:
        left_is_small = tree.end[left] - tree.begin[left] <= tree.end[right] - tree.begin[right]
        small, large = (left, right) if left_is_small else (right, left)
        wanted = (search_left, search_right) if left_is_small else (search_right, search_left)
        of_parent = tree.histograms[parent]
        own = tree.free[n_free - 1]
        of_small = tree.last_level[0] if is_last else tree.histograms[own]
        of_large = tree.last_level[1] if is_last else of_parent
        histograms = (of_parent, of_small, of_large)
        search(
            rows, growth, (number, tree.key[node]), active, tree, (small, large), wanted, histograms, is_last
        )
        if not is_last and tree.feature[small] >= 0:
            tree.slot[small] = own
            n_free -= 1
        if not is_last and tree.feature[large] >= 0:
            tree.slot[large] = parent
            return n_free
    tree.free[n_free] = parent
    return n_free + 1


@kernel
def search(  # noqa: C901 - nested loops
    rows: BinnedRows,
    growth: Growth,
    order_key: tuple[int, int],
    active: IntArray,
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
    order_key : (number of the tree, key of the parent)
        Determines the order of features.
    active : (n_active,)
        Features to consider.
    siblings, wanted
        The node and its sibling, and flags to find the split of each.
    histograms : (of the parent, of the node, of its sibling)
        The last two are written; if `is_last`, they hold one block of features only.
    """
    (small, large), (parent, of_small, of_large) = siblings, histograms
    begin, middle, end = tree.begin[small], tree.middle[small], tree.end[small]
    all_rows, second_rows = tree.order[begin:end], tree.order[middle:end]
    first_rows = all_rows if growth.newton else tree.order[begin:middle]
    codes, offsets = rows.codes, rows.offsets
    n_active, n_channels = len(active), len(of_small)
    n_tried = max(1, int(np.ceil(growth.split_features * n_active)))
    n_summed = n_tried if is_last else n_active
    features, places = np.empty(FEATURE_BLOCK, dtype=np.int64), np.empty(FEATURE_BLOCK, dtype=np.int64)
    at, step = first_and_step(offsets, order_key[0], order_key[1])
    if n_active < len(offsets) - 1:
        at, step = first_and_step(offsets[: n_active + 1], order_key[0], order_key[1])
    for done in range(0, n_summed, FEATURE_BLOCK):
        n = min(FEATURE_BLOCK, n_summed - done)
        for j in range(n):
            at = (at + step) % n_active
            f = active[at]
            features[j], places[j] = f, j * MAX_BINS if is_last else offsets[f]
            clear(of_small, places[j], places[j] + offsets[f + 1] - offsets[f])
        add_rows(codes, rows.amounts[0], first_rows, features[:n], places, of_small[0])
        if not growth.newton:
            add_rows(codes, rows.amounts[1], second_rows, features[:n], places, of_small[1])
        if growth.limits.min_rows > 1:
            add_rows(codes, rows.amounts[2], all_rows, features[:n], places, of_small[n_channels - 1])
        for j in range(n):
            a, f = places[j], features[j]
            b = offsets[f]
            width = offsets[f + 1] - b
            for side in range(2):
                node, histogram = (small, of_small) if side == 0 else (large, of_large)
                if side == 1 and (wanted[1] or not is_last) and small != large:
                    for channel in range(n_channels):
                        for i in range(width):
                            of_large[channel, a + i] = parent[channel, b + i] - of_small[channel, a + i]
                if not wanted[side] or done + j >= n_tried:
                    continue
                first, counts = histogram[0, a : a + width], histogram[n_channels - 1, a : a + width]
                if not growth.newton:
                    second = histogram[1, a : a + width]
                    last = gini_split(
                        first,
                        second,
                        counts,
                        tree.sums[node],
                        growth.limits.min_rows,
                        tree.score[node],
                        tree.workspace,
                    )
                    if last >= 0:
                        following = last + 1
                        while first[following] + second[following] == 0:
                            following += 1
                        record_split(tree, node, f, last, following, False)
                elif rows.is_categorical[f]:
                    n_rows = tree.end[node] - tree.begin[node]
                    total = tree.sums[node, 0]
                    if category_split(
                        first, counts, n_rows, total, growth.limits, tree.score[node], tree.workspace
                    ):
                        record_split(tree, node, f, 0, 0, False)
                        tree.bits[node] = tree.workspace.bits
                else:
                    has_missing, total = rows.has_missing[f], tree.sums[node, 0]
                    last, missing_left = newton_split(
                        first, counts, has_missing, total, growth.limits, tree.score[node], tree.workspace
                    )
                    if last >= 0:
                        record_split(tree, node, f, last, last + 1, missing_left)


@kernel
def record_split(tree: Tree, node: int, feature: int, last: int, following: int, missing_left: bool) -> None:
    """Record the split of a node by this feature, after this bin."""
    tree.feature[node], tree.last_bin[node], tree.next_bin[node] = feature, last, following
    tree.missing_left[node] = missing_left
    tree.score[node] = tree.workspace.best[0]
    tree.sums_left[node, 0], tree.sums_left[node, 1] = tree.workspace.left[0], tree.workspace.left[1]


@kernel
def clear(histogram: IntArray, begin: int, end: int) -> None:
    """Set some bins to 0."""
    for channel in range(len(histogram)):
        for b in range(begin, end):
            histogram[channel, b] = 0
