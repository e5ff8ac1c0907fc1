"""Growing one decision tree on binned rows, the most promising leaf first.

The rows of a leaf are one segment of `order`. Of two siblings, only the smaller one's histogram is summed
over rows; the other's is the parent's histogram minus it, in its place.
"""

from typing import Any

import numpy as np

from dichotomies._kernels.boosting.encoding import Codes
from dichotomies._kernels.boosting.feature_order import first_and_step
from dichotomies._kernels.boosting.gini import Gini, gini_histograms, gini_is_open, gini_of_root, gini_split
from dichotomies._kernels.boosting.histograms import clear, subtract
from dichotomies._kernels.boosting.local_rows import LocalRows
from dichotomies._kernels.boosting.newton import (
    CategoricalNewton,
    Newton,
    categorical_newton_split,
    newton_histograms,
    newton_is_open,
    newton_of_root,
    newton_split,
)
from dichotomies._kernels.boosting.rows import write_bins
from dichotomies._kernels.boosting.tree_memory import FEATURE_BLOCK, MAX_BINS, Growth, Tree
from dichotomies._kernels.compile import by_type, kernel

#: Distinguishes the features drawn for a tree from the order in which they are tried.
OF_TREES = 2**40

sum_root = by_type({Gini: gini_of_root, Newton: newton_of_root, CategoricalNewton: newton_of_root})
is_open = by_type({Gini: gini_is_open, Newton: newton_is_open, CategoricalNewton: newton_is_open})
add_histograms = by_type(
    {Gini: gini_histograms, Newton: newton_histograms, CategoricalNewton: newton_histograms}
)
try_feature = by_type({Gini: gini_split, Newton: newton_split, CategoricalNewton: categorical_newton_split})


@kernel
def grow_tree(criterion: Any, rows: LocalRows, growth: Growth, number: int, tree: Tree) -> int:
    """Grow a tree on all rows: split the leaf with the largest gain until there are enough leaves.

    Parameters
    ----------
    criterion : Gini, Newton or CategoricalNewton
    number : int
        Number of the tree, which breaks ties between features, see `feature_order`.

    Returns
    -------
    int
        Number of splits.
    """
    n_active = choose_features(rows, growth, number, tree)
    init_root(criterion, growth, rows, tree)
    n_free = len(tree.free) - 1  # the last one is the root's
    for i in range(n_free):
        tree.free[i] = i
    root = tree.nodes[0]
    if n_active == 0 or not root["is_open"]:
        return 0
    root["slot"] = n_free
    search(criterion, rows, growth, number, n_active, tree, 0, 0, 0, n_free)
    n_splits, max_leaves = 0, min(growth.max_leaves, rows.n_rows)
    while n_splits + 1 < max_leaves:
        parent = most_promising(tree, 2 * n_splits + 1)
        if parent < 0:
            break
        left = 2 * n_splits + 1
        add_children(rows, tree, parent, left, n_splits)
        n_splits += 1
        if tree.nodes[left]["depth"] < growth.max_depth and n_splits + 1 < max_leaves:
            n_free = search_children(criterion, rows, growth, number, n_active, tree, parent, n_free)
        elif tree.nodes[parent]["slot"] >= 0:
            tree.free[n_free] = tree.nodes[parent]["slot"]
            n_free += 1
    return n_splits


@kernel(inline=True)
def most_promising(tree: Tree, n_nodes: int) -> int:
    """Return the leaf whose split gains most; -1 if none can be split."""
    best, found = -1.0, -1
    for number in range(n_nodes):
        node = tree.nodes[number]
        if node["child"] < 0 and node["feature"] >= 0:
            gain = node["score"] - node["least"]
            if gain > best:
                best, found = gain, number
    return found


@kernel
def choose_features(rows: LocalRows, growth: Growth, number: int, tree: Tree) -> int:
    """Write the features that this tree may use; return their number."""
    n_features = rows.n_features
    n_active = n_features
    if growth.tree_features < 1.0 and n_features > 0:
        n_active = max(1, int(np.ceil(growth.tree_features * n_features)))
    f, step = 0, 1
    if n_active < n_features:
        f, step = first_and_step(rows.features, n_features, number + OF_TREES, growth.seed)
    for j in range(n_active):
        tree.active[j] = f
        f = (f + step) % n_features
    return n_active


@kernel
def init_root(criterion: Any, growth: Growth, rows: LocalRows, tree: Tree) -> None:
    """Initialise the root of an empty tree."""
    init_node(tree, 0, 0, sum_root(criterion, rows, tree), rows.n_rows)
    root = tree.nodes[0]
    root["depth"] = root["leaf"] = root["key"] = 0
    root["is_open"] = is_open(criterion, growth, tree, 0)


@kernel
def init_node(tree: Tree, number: int, begin: int, middle: int, end: int) -> None:
    """Initialise a leaf that has these rows."""
    node = tree.nodes[number]
    node["feature"] = node["child"] = node["slot"] = -1
    node["begin"], node["middle"], node["end"] = begin, middle, end


@kernel
def add_children(rows: LocalRows, tree: Tree, parent: int, left: int, n_splits: int) -> None:
    """Split a node: partition its rows between two new nodes, keeping their order."""
    node, order = tree.nodes[parent], tree.order
    begin, middle, end = node["begin"], node["middle"], node["end"]
    goes_left = tree.goes_left[begin:end]
    write_bins(rows, node["feature"], order[begin:end], goes_left)
    mark_left(rows.features[node["feature"]], node, goes_left)
    left_middle, right_middle = partition(tree, begin, middle, begin, 0)
    kept, moved = partition(tree, middle, end, left_middle, right_middle)
    for i in range(moved):
        order[kept + i] = tree.spare[i]
    init_node(tree, left, begin, left_middle, kept)
    init_node(tree, left + 1, kept, kept + right_middle, end)
    link_children(tree, parent, left, n_splits)


@kernel(inline=True)
def mark_left(at: Any, node: Any, codes: Codes) -> None:
    """Write 1 in place of the local bins that go left, 0 in place of the others."""
    if at["is_categorical"]:
        bits = node["bits"]
        for i in range(len(codes)):
            codes[i] = (bits[codes[i] >> 6] >> np.uint64(codes[i] & 63)) & np.uint64(1)
        return
    last = np.uint8(node["last_bin"])
    stays = np.uint8(at["end"] - at["begin"] - 1) if node["missing_left"] else last
    for i in range(len(codes)):
        codes[i] = (codes[i] <= last) | (codes[i] == stays)


@kernel(inline=True)
def partition(tree: Tree, begin: int, end: int, kept: Any, moved: Any) -> tuple[Any, Any]:
    """Move the rows that go left to `kept` of the order, the others to `moved` of the scratch memory."""
    order, spare = tree.order, tree.spare
    for k in range(begin, end):
        # without a branch, which would be mispredicted half of the time
        row, goes_left = order[k], np.int64(tree.goes_left[k])
        order[kept] = spare[moved] = row
        kept += goes_left
        moved += 1 - goes_left
    return kept, moved


@kernel(inline=True)
def link_children(tree: Tree, parent: int, left: int, n_splits: int) -> None:
    """Tell two new nodes what they have from their parent."""
    node, first, second = tree.nodes[parent], tree.nodes[left], tree.nodes[left + 1]
    first["first"], second["first"] = node["first_left"], node["first"] - node["first_left"]
    first["second"], second["second"] = node["second_left"], node["second"] - node["second_left"]
    first["depth"] = second["depth"] = node["depth"] + 1
    first["key"], second["key"] = 2 * node["key"] + 1, 2 * node["key"] + 2
    first["leaf"], second["leaf"] = node["leaf"], n_splits + 1
    node["child"] = left
    tree.splits[n_splits] = parent


@kernel(inline=True)
def search_children(
    criterion: Any,
    rows: LocalRows,
    growth: Growth,
    number: int,
    n_active: int,
    tree: Tree,
    parent: int,
    n_free: int,
) -> int:
    """Find the splits of both children of a node, and write their histograms.

    Returns
    -------
    int
        Number of free slots of histograms afterwards.
    """
    node, first = tree.nodes[parent], tree.nodes[parent]["child"]
    left, right = tree.nodes[first], tree.nodes[first + 1]
    left["is_open"], right["is_open"] = (
        is_open(criterion, growth, tree, first),
        is_open(criterion, growth, tree, first + 1),
    )
    if left["is_open"] or right["is_open"]:
        left_is_small = left["end"] - left["begin"] <= right["end"] - right["begin"]
        small = first if left_is_small else first + 1
        large = 2 * first + 1 - small
        own = tree.free[n_free - 1]
        search(criterion, rows, growth, number, n_active, tree, parent, small, large, own)
        is_last = left["depth"] + 1 == growth.max_depth
        if not is_last and tree.nodes[small]["feature"] >= 0:
            tree.nodes[small]["slot"] = own
            n_free -= 1
        if not is_last and tree.nodes[large]["feature"] >= 0:
            tree.nodes[large]["slot"] = node["slot"]
            return n_free
    tree.free[n_free] = node["slot"]
    return n_free + 1


@kernel
def search(
    criterion: Any,
    rows: LocalRows,
    growth: Growth,
    number: int,
    n_active: int,
    tree: Tree,
    parent: int,
    small: int,
    large: int,
    own: int,
) -> None:
    """Find the splits of a node, whose histogram is summed, and of its sibling, by subtraction.

    Parameters
    ----------
    parent, small, large : int
        The parent of the node, the node, and its sibling; three times the root.
    own : int
        Slot for the histogram of the node; that of its parent becomes its sibling's. Where their children are
        not split, both are written one block of features at a time, outside the slots.
    """
    is_root, n_block = small == large, tree.block.shape[1]
    is_last = not is_root and tree.nodes[small]["depth"] + 1 == growth.max_depth and n_block == FEATURE_BLOCK
    of_parent = tree.histograms[tree.nodes[parent]["slot"]]
    of_small = tree.last_level[0] if is_last else tree.histograms[own]
    of_large = tree.last_level[1] if is_last else of_parent
    n_tried = max(1, int(np.ceil(growth.split_features * n_active)))
    n_summed = n_tried if is_last else n_active
    at, step = first_and_step(rows.features, n_active, number, tree.nodes[parent]["key"])
    for done in range(0, n_summed, n_block):
        n = min(n_block, n_summed - done)
        for j in range(n):
            at = (at + step) % n_active
            f = tree.active[at]
            begin, end = rows.features[f]["begin"], rows.features[f]["end"]
            place = j * MAX_BINS if is_last else begin
            tree.block[0, j], tree.block[1, j] = f, place
            clear(of_small, place, place + end - begin)
        add_histograms(criterion, growth, rows, tree, small, n, of_small)
        for j in range(n):
            f, place, is_tried = tree.block[0, j], tree.block[1, j], done + j < n_tried
            feature, first, second = rows.features[f], tree.nodes[small], tree.nodes[large]
            begin, end = feature["begin"], feature["end"]
            if first["is_open"] and is_tried:
                try_feature(criterion, growth, feature, first, f, place, of_small, tree.scan)
            if not is_root and (second["is_open"] or not is_last):
                subtract(of_parent, of_small, place, place + end - begin, begin - place, of_large)
                if second["is_open"] and is_tried:
                    try_feature(criterion, growth, feature, second, f, place, of_large, tree.scan)
