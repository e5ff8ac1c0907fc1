"""Growing one small decision tree on binned rows, level by level.

Nodes of the tree are numbered as in a heap: the root is 0, the children of h are 2h + 1 and 2h + 2. The rows
of a node are one segment of `order`. Of two siblings only the smaller is summed up row by row; the other's
histogram is what that leaves of their parent's.
"""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.histograms import Codes, add_all, add_some
from dichotomies._kernels.tree_splits import LEAST_HESSIAN, gini_cut, newton_cut
from dichotomies._typing import FloatArray, IntArray

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
    """How a tree is grown.

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
    top, bottom : (n_nodes,)
        How good the cut is, as a fraction.
    begin, middle, end : (n_nodes,)
        The node's rows are ``order[begin:end]``; the positive ones, if apart, begin at ``middle``.
    sums : (n_nodes, 2)
        The first two amounts, summed up over the node's rows.
    order, aside : (n_rows,)
        Row numbers by node, and room for half of them.
    histograms : (2, n_leaves / 2, n_channels, n_bins)
        Of the nodes of one level and the one before, in turns.
    """

    feature: IntArray
    last_bin: IntArray
    next_bin: IntArray
    top: FloatArray
    bottom: FloatArray
    begin: IntArray
    middle: IntArray
    end: IntArray
    sums: IntArray
    order: IntArray
    aside: IntArray
    histograms: IntArray


@kernel
def room_for_tree(max_depth: int, n_rows: int, n_bins: int, n_channels: int) -> Tree:
    """Room for a tree, to be grown in again and again."""
    n = 2 ** (max_depth + 1) - 1
    return Tree(
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty(n),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty((n, 2), dtype=np.int64),
        np.empty(n_rows, dtype=np.int64),
        np.empty(n_rows, dtype=np.int64),
        np.empty((2, 2 ** (max_depth - 1), n_channels, n_bins), dtype=np.int64),
    )


@kernel
def grow_tree(rows: Rows, growth: Growth, number: int, tree: Tree) -> None:
    """Grow a tree on all rows; its nodes without a feature, if they have rows, are its leaves.

    The number of the tree decides which of several equally good features is taken.
    """
    tree.feature[:] = -1
    tree.begin[:] = 0
    tree.end[:] = 0
    plant(rows, growth, number, tree)
    for level in range(growth.max_depth):
        first = 2**level - 1
        here = tree.histograms[level % 2]
        below = tree.histograms[(level + 1) % 2]
        for node in range(first, 2 * first + 1):
            if tree.feature[node] < 0:
                continue
            divide(rows, tree, node, here[node - first])
            if level + 1 < growth.max_depth:
                small = 2 * (node - first)
                search_children(
                    rows, growth, number, tree, node, here[node - first], below[small : small + 2]
                )


@kernel
def plant(rows: Rows, growth: Growth, number: int, tree: Tree) -> None:
    """Make the root, and find its cut."""
    n_rows = rows.codes.shape[1]
    for i in range(n_rows):
        tree.order[i] = i
    tree.begin[0], tree.middle[0], tree.end[0] = 0, rows.n_negative, n_rows
    split_by_side = not growth.newton
    first_end = rows.n_negative if split_by_side else n_rows
    second_begin = rows.n_negative if split_by_side else 0
    tree.sums[0, 0] = rows.amounts[0, :first_end].sum()
    tree.sums[0, 1] = rows.amounts[1, second_begin:].sum()
    if not may_split(growth, tree, 0):
        return
    histogram = tree.histograms[0, 0]
    histogram[:] = 0
    n_features = len(rows.offsets) - 1
    f, step = round_of_features(rows, number, 0)
    for _ in range(n_features):
        f = (f + step) % n_features
        bins = histogram[:, rows.offsets[f] : rows.offsets[f + 1]]
        add_all(rows.codes[f], rows.amounts[0], 0, first_end, bins[0])
        add_all(rows.codes[f], rows.amounts[1], second_begin, n_rows, bins[1])
        if growth.min_rows > 1:
            add_all(rows.codes[f], rows.amounts[2], 0, n_rows, bins[2])
        consider(growth, tree, 0, f, bins)


@kernel
def round_of_features(rows: Rows, number: int, node: int) -> tuple[Any, Any]:
    """Where to begin going round the features, and by which step: differs by rows, tree and node.

    The first of equally good features is taken. In a small node many features are: were the order always the
    same, all trees would look at the same corner of an image, where scikit-learn's, which go through the
    features in random order, look everywhere. Here the order is scrambled by how many different values the
    rows have, so that nothing is random.
    """
    n_features = len(rows.offsets) - 1
    mixed: Any = np.uint64(0)
    for part in (rows.offsets[n_features], rows.offsets[n_features // 2], number, node):
        mixed = scramble(mixed + np.uint64(part))
    first = np.int64(mixed % np.uint64(n_features))
    step = np.int64((mixed >> np.uint64(32)) % np.uint64(n_features))
    while not have_no_common_divisor(step, n_features):
        step += 1
    return first, step


@kernel
def scramble(x: Any) -> Any:
    """Mix 64 bits (the finaliser of SplitMix64: Steele, Lea & Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def have_no_common_divisor(a: Any, b: Any) -> bool:
    """Whether steps of `a` visit all of `b` places (Euclid)."""
    while b:
        a, b = b, a % b
    return bool(a == 1)


@kernel
def may_split(growth: Growth, tree: Tree, node: int) -> bool:
    """Whether to look for a cut; if so, set what it has to beat."""
    n_rows = tree.end[node] - tree.begin[node]
    a, b = float(tree.sums[node, 0]), float(tree.sums[node, 1])
    tree.top[node], tree.bottom[node] = -1.0, 1.0
    if growth.newton:
        a, b = growth.unit * a, growth.unit * b
        if node > 0:
            tree.top[node], tree.bottom[node] = a * a, b + growth.l2_regularization + LEAST_HESSIAN
        else:  # the root's value is 0, whatever its gradient
            tree.top[node] = 0.0
    elif 2.0 * a * b <= PURE * (a + b) * (a + b):
        return False
    return bool(n_rows >= 2 * growth.min_rows)


@kernel
def consider(growth: Growth, tree: Tree, node: int, feature: int, bins: IntArray) -> None:
    """Cut the node by this feature if that is better than what was found before."""
    best = (tree.top[node], tree.bottom[node], -1, -1)
    first, second = tree.sums[node]
    n_rows = tree.end[node] - tree.begin[node]
    counts = bins[len(bins) - 1]
    if growth.newton:
        found = newton_cut(
            bins[0],
            bins[1],
            counts,
            first,
            second,
            n_rows,
            growth.min_rows,
            growth.unit,
            growth.l2_regularization,
            growth.min_hessian,
            best,
        )
    else:
        found = gini_cut(bins[0], bins[1], counts, first, second, n_rows, growth.min_rows, best)
    if found[2] >= 0:
        tree.top[node], tree.bottom[node], tree.last_bin[node], tree.next_bin[node] = found
        tree.feature[node] = feature


@kernel
def divide(rows: Rows, tree: Tree, node: int, histogram: IntArray) -> None:
    """Hand the rows of a node to its children, each side in its order."""
    left, right = 2 * node + 1, 2 * node + 2
    feature, last = tree.feature[node], tree.last_bin[node]
    codes, order = rows.codes[feature], tree.order
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
    order[kept : kept + moved] = tree.aside[:moved]
    if tree.middle[node] == tree.end[node]:
        tree.middle[left], tree.middle[right] = kept, moved
    tree.middle[right] += kept
    tree.begin[left], tree.end[left] = tree.begin[node], kept
    tree.begin[right], tree.end[right] = kept, tree.end[node]
    begin = rows.offsets[feature]
    for channel in range(2):
        tree.sums[left, channel] = histogram[channel, begin : begin + last + 1].sum()
        tree.sums[right, channel] = tree.sums[node, channel] - tree.sums[left, channel]


@kernel
def search_children(
    rows: Rows, growth: Growth, number: int, tree: Tree, node: int, parent: IntArray, children: IntArray
) -> None:
    """Find the cuts of both children of a node, and write their histograms."""
    left, right = 2 * node + 1, 2 * node + 2
    search_left, search_right = may_split(growth, tree, left), may_split(growth, tree, right)
    if not (search_left or search_right):
        return
    left_is_small = tree.end[left] - tree.begin[left] <= tree.end[right] - tree.begin[right]
    small, large = (left, right) if left_is_small else (right, left)
    search_small = search_left if left_is_small else search_right
    search_large = search_right if left_is_small else search_left
    of_small, of_large = children[0 if left_is_small else 1], children[1 if left_is_small else 0]
    begin, end = tree.begin[small], tree.end[small]
    first_end = end if growth.newton else tree.middle[small]
    second_begin = begin if growth.newton else tree.middle[small]
    n_channels = parent.shape[0]
    n_features = len(rows.offsets) - 1
    f, step = round_of_features(rows, number, node)
    for _ in range(n_features):
        f = (f + step) % n_features
        a, b = rows.offsets[f], rows.offsets[f + 1]
        bins = of_small[:, a:b]
        bins[:] = 0
        add_some(rows.codes[f], rows.amounts[0], tree.order, begin, first_end, bins[0])
        add_some(rows.codes[f], rows.amounts[1], tree.order, second_begin, end, bins[1])
        if growth.min_rows > 1:
            add_some(rows.codes[f], rows.amounts[2], tree.order, begin, end, bins[2])
        if search_small:
            consider(growth, tree, small, f, bins)
        if search_large:
            for channel in range(n_channels):
                for k in range(a, b):
                    of_large[channel, k] = parent[channel, k] - of_small[channel, k]
            consider(growth, tree, large, f, of_large[:, a:b])
