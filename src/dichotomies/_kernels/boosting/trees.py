"""Growing one decision tree on binned rows, the most promising leaf first.

The rows of a leaf are one segment of `order`. Of two siblings, only the smaller one's histogram is summed
over rows; the other's is the parent's histogram minus it, in its place.
"""

from typing import Any

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies._kernels.boosting.encoding import Codes
from dichotomies._kernels.boosting.feature_order import first_and_step
from dichotomies._kernels.boosting.gini import Gini, gini_histograms, gini_is_open, gini_of_root, gini_split
from dichotomies._kernels.boosting.histograms import add_up, clear, subtract
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
from dichotomies._kernels.boosting.team import Team, agree, meet, share, sums
from dichotomies._kernels.boosting.tree_memory import FEATURE_BLOCK, MAX_BINS, Growth, Search, Tree
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
def grow_tree(criterion: Any, rows: Any, growth: Growth, number: int, tree: Tree, memory: Search) -> int:
    """Grow a tree on all rows: split the leaf with the largest gain until there are enough leaves.

    Parameters
    ----------
    criterion : Gini, Newton or CategoricalNewton
    rows : LocalRows or SparseRows
    number : int
        Number of the tree, which breaks ties between features, see `feature_order`.

    Returns
    -------
    int
        Number of splits.
    """
    nodes, order, n_rows, team = tree.nodes, tree.order, rows.n_rows, memory.team
    n_active = choose_features(rows.features, rows.n_features, growth, number)
    root = nodes[0]
    middle = sum_root(criterion, rows.amounts, n_rows, rows.n_negative, order, tree.spare, root)
    init_node(root, 0, middle, n_rows)
    root["n_rows"] = rows.n_all
    root["first"], root["second"] = sums(team, root["first"], root["second"])
    root["depth"] = root["leaf"] = root["key"] = 0
    root["is_open"] = is_open(criterion, growth, root)
    n_free = len(memory.histograms) - team.size - 1  # the last one is the root's
    for i in range(n_free):
        nodes[i]["free"] = i
    if n_active == 0 or not root["is_open"]:
        return 0
    root["slot"] = n_free
    search(criterion, rows, growth, number, n_active, nodes, order, memory, 0, 0, 0, n_free)
    n_splits, max_leaves = 0, min(growth.max_leaves, rows.n_all)
    while n_splits + 1 < max_leaves:
        parent = most_promising(nodes, 2 * n_splits + 1)
        if parent < 0:
            break
        left = 2 * n_splits + 1
        add_children(criterion, team, rows, tree, parent, left, n_splits)
        n_splits += 1
        if nodes[left]["depth"] < growth.max_depth and n_splits + 1 < max_leaves:
            n_free = search_children(
                criterion, rows, growth, number, n_active, nodes, order, memory, parent, n_free
            )
        elif nodes[parent]["slot"] >= 0:
            nodes[n_free]["free"] = nodes[parent]["slot"]
            n_free += 1
    return n_splits


@kernel(inline=True)
def most_promising(nodes: Any, n_nodes: int) -> int:
    """Return the leaf whose split gains most; -1 if none can be split."""
    best, found = -1.0, -1
    for number in range(n_nodes):
        node = nodes[number]
        if node["child"] < 0 and node["feature"] >= 0:
            gain = node["score"] - node["least"]
            if gain > best:
                best, found = gain, number
    return found


@kernel
def choose_features(features: Any, n_features: int, growth: Growth, number: int) -> int:
    """Write the features that this tree may use; return their number."""
    n_active = n_features
    if growth.tree_features < 1.0 and n_features > 0:
        n_active = max(1, int(np.ceil(growth.tree_features * n_features)))
    f, step = 0, 1
    if n_active < n_features:
        f, step = first_and_step(features, n_features, number + OF_TREES, growth.seed)
    for j in range(n_active):
        features[j]["active"] = f
        f = (f + step) % n_features
    return n_active


@kernel
def init_node(node: Any, begin: int, middle: int, end: int) -> None:
    """Initialise a leaf that has these rows."""
    node["feature"] = node["child"] = node["slot"] = -1
    node["begin"], node["middle"], node["end"] = begin, middle, end


@kernel(inline=True)
def add_children(
    criterion: Any, team: Team, rows: Any, tree: Tree, parent: int, left: int, n_splits: int
) -> None:
    """Split a node: partition its rows between two new nodes, keeping their order."""
    node, order = tree.nodes[parent], tree.order
    begin, middle, end = node["begin"], node["middle"], node["end"]
    goes_left = tree.goes_left[begin:end]
    write_bins(rows, node["feature"], order[begin:end], goes_left)
    mark_left(criterion, rows.features[node["feature"]], node, goes_left)
    left_middle, right_middle = partition(order, tree.spare, tree.goes_left, begin, middle, begin, 0)
    kept, moved = partition(order, tree.spare, tree.goes_left, middle, end, left_middle, right_middle)
    for i in range(moved):
        order[kept + i] = tree.spare[i]
    init_node(tree.nodes[left], begin, left_middle, kept)
    init_node(tree.nodes[left + 1], kept, kept + right_middle, end)
    n_left, _ = sums(team, kept - begin, 0)
    tree.nodes[left]["n_rows"], tree.nodes[left + 1]["n_rows"] = n_left, node["n_rows"] - n_left
    link_children(tree.nodes, parent, left, n_splits)


@kernel
def mark_numbers(_: Any, at: Any, node: Any, codes: Codes) -> None:
    """Write 1 in place of the local bins that go left, 0 in place of the others."""
    last = np.uint8(node["last_bin"])
    stays = np.uint8(at["end"] - at["begin"] - 1) if node["missing_left"] else last
    for i in range(len(codes)):
        codes[i] = (codes[i] <= last) | (codes[i] == stays)


@kernel
def mark_categories(criterion: CategoricalNewton, at: Any, node: Any, codes: Codes) -> None:
    """Write 1 in place of the local bins that go left, 0 in place of the others."""
    if not at["is_categorical"]:
        mark_numbers(criterion, at, node, codes)
        return
    bits = node["bits"]
    for i in range(len(codes)):
        codes[i] = (bits[codes[i] >> 6] >> np.uint64(codes[i] & 63)) & np.uint64(1)


mark_left = by_type({Gini: mark_numbers, Newton: mark_numbers, CategoricalNewton: mark_categories})


@kernel
def partition(
    order: IntArray, spare: IntArray, goes_left: Codes, begin: int, end: int, kept: Any, moved: Any
) -> tuple[Any, Any]:
    """Move the rows that go left to `kept` of the order, the others to `moved` of the scratch memory."""
    to_left, to_right = np.uint64(kept), np.uint64(moved)
    for k in range(begin, end):
        # without a branch, which would be mispredicted half of the time
        row, is_left = order[k], np.uint64(goes_left[k])
        order[to_left] = spare[to_right] = row
        to_left += is_left
        to_right += np.uint64(1) - is_left
    return np.int64(to_left), np.int64(to_right)


@kernel(inline=True)
def link_children(nodes: Any, parent: int, left: int, n_splits: int) -> None:
    """Tell two new nodes what they have from their parent."""
    node, first, second = nodes[parent], nodes[left], nodes[left + 1]
    first["first"], second["first"] = node["first_left"], node["first"] - node["first_left"]
    first["second"], second["second"] = node["second_left"], node["second"] - node["second_left"]
    first["depth"] = second["depth"] = node["depth"] + 1
    first["key"], second["key"] = 2 * node["key"] + 1, 2 * node["key"] + 2
    first["leaf"], second["leaf"] = node["leaf"], n_splits + 1
    node["child"] = left
    nodes[n_splits]["split"] = parent


@kernel(inline=True)
def search_children(
    criterion: Any,
    rows: Any,
    growth: Growth,
    number: int,
    n_active: int,
    nodes: Any,
    order: IntArray,
    memory: Search,
    parent: int,
    n_free: int,
) -> int:
    """Find the splits of both children of a node, and write their histograms.

    Returns
    -------
    int
        Number of free slots of histograms afterwards.
    """
    node, first = nodes[parent], nodes[parent]["child"]
    left, right = nodes[first], nodes[first + 1]
    left["is_open"], right["is_open"] = is_open(criterion, growth, left), is_open(criterion, growth, right)
    if left["is_open"] or right["is_open"]:
        left_is_small = left["n_rows"] <= right["n_rows"]
        small = first if left_is_small else first + 1
        large = 2 * first + 1 - small
        own = nodes[n_free - 1]["free"]
        search(criterion, rows, growth, number, n_active, nodes, order, memory, parent, small, large, own)
        is_last = left["depth"] + 1 == growth.max_depth
        if not is_last and nodes[small]["feature"] >= 0:
            nodes[small]["slot"] = own
            n_free -= 1
        if not is_last and nodes[large]["feature"] >= 0:
            nodes[large]["slot"] = node["slot"]
            return n_free
    nodes[n_free]["free"] = node["slot"]
    return n_free + 1


@kernel
def search(
    criterion: Any,
    rows: Any,
    growth: Growth,
    number: int,
    n_active: int,
    nodes: Any,
    order: IntArray,
    memory: Search,
    parent: int,
    small: int,
    large: int,
    own: int,
) -> None:
    """Find the splits of a node, whose histogram is summed, and of its sibling, by subtraction.

    In a team, each member sums its own rows in all features, and then adds up those of all members in its
    share of the features.

    Parameters
    ----------
    parent, small, large : int
        The parent of the node, the node, and its sibling; three times the root.
    own : int
        Slot for the histogram of the node; that of its parent becomes its sibling's. Where their children are
        not split, both are written one block of features at a time, outside the slots.
    """
    team = memory.team
    at, step = first_and_step(rows.features, n_active, number, nodes[parent]["key"])
    n_tried = max(1, int(np.ceil(growth.split_features * n_active)))
    is_last = small != large and nodes[small]["depth"] + 1 == growth.max_depth
    is_last = is_last and memory.block.shape[1] == FEATURE_BLOCK
    n_summed = n_tried if is_last else n_active
    if team.size > 1:
        sum_own_rows(criterion, rows, nodes[small], order, n_summed, n_active, at, step, memory)
    first, last = share(team, n_summed)
    is_again = False
    while True:
        search_features(
            criterion,
            rows,
            growth,
            nodes,
            order,
            memory,
            parent,
            small,
            large,
            own,
            n_active,
            at,
            step,
            first,
            last,
            n_tried,
            is_last,
            is_again,
        )
        if is_again or not agree(team, nodes, small, large, n_tried):
            break
        for node in (nodes[small], nodes[large]):
            node["feature"], node["score"] = -1, node["least"]
        first, last, is_again = 0, n_tried, True


@kernel
def search_features(
    criterion: Any,
    rows: Any,
    growth: Growth,
    nodes: Any,
    order: IntArray,
    memory: Search,
    parent: int,
    small: int,
    large: int,
    own: int,
    n_active: int,
    at: int,
    step: int,
    first: int,
    last: int,
    n_tried: int,
    is_last: bool,
    is_again: bool,
) -> None:
    """Find the best splits by some features; write their histograms, unless they are there already.

    Parameters
    ----------
    at, step : int
        Order of the features, see `feature_order`.
    first, last : int
        The range of features, in that order; the first `n_tried` of all are tried.
    is_last : bool
        True if the children of both nodes are not split.
    is_again : bool
        True if the histograms are there.
    """
    features, block, n_block, size = rows.features, memory.block, memory.block.shape[1], memory.team.size
    by_block = is_last and size == 1
    of_parent = memory.histograms[nodes[parent]["slot"]]
    of_small = memory.last_level[0] if by_block else memory.histograms[own]
    of_large = memory.last_level[1] if by_block else of_parent
    at = (at + first * step) % n_active
    for done in range(first, last, n_block):
        n = min(n_block, last - done)
        at = fill_block(features, n_active, at, step, n, by_block, block)
        if size == 1:
            sum_block(criterion, rows, nodes[small], order, block, n, of_small)
        elif not is_again:
            for j in range(n):
                add_up(memory.histograms[-size:], block[1, j], features[block[0, j]]["end"], of_small)
        for j in range(n):
            f, place = block[0, j], block[1, j]
            begin, end = features[f]["begin"], features[f]["end"]
            for side in range(1 if small == large else 2):
                node = nodes[small] if side == 0 else nodes[large]
                histogram = of_small if side == 0 else of_large
                if side == 1 and not is_again and (node["is_open"] or not is_last):
                    subtract(of_parent, of_small, place, place + end - begin, begin - place, of_large)
                if node["is_open"] and done + j < n_tried:
                    try_feature(criterion, growth, features[f], node, f, place, histogram, memory.scan)


@kernel(inline=True)
def fill_block(
    features: Any, n_active: int, at: int, step: int, n: int, by_block: bool, block: IntArray
) -> int:
    """Write the next features, and the places of their bins; return where the features after them begin."""
    for j in range(n):
        at = (at + step) % n_active
        f = features[at]["active"]
        block[0, j], block[1, j] = f, j * MAX_BINS if by_block else features[f]["begin"]
    return at


@kernel
def sum_block(
    criterion: Any, rows: Any, node: Any, order: IntArray, block: IntArray, n: int, out: IntArray
) -> None:
    """Sum the histograms of a node's rows in the features of a block."""
    for j in range(n):
        at, place = rows.features[block[0, j]], block[1, j]
        clear(out, place, place + at["end"] - at["begin"])
    add_histograms(criterion, rows, node, order, block, n, out)


@kernel
def sum_own_rows(
    criterion: Any,
    rows: Any,
    node: Any,
    order: IntArray,
    n_summed: int,
    n_active: int,
    at: int,
    step: int,
    memory: Search,
) -> None:
    """Sum the histogram of a member's own rows at a node, for all members to add up; parameters as above."""
    features, block, n_block = rows.features, memory.block, memory.block.shape[1]
    out = memory.histograms[len(memory.histograms) - memory.team.size + memory.team.rank]
    for done in range(0, n_summed, n_block):
        n = min(n_block, n_summed - done)
        at = fill_block(features, n_active, at, step, n, False, block)
        sum_block(criterion, rows, node, order, block, n, out)
    meet(memory.team)
