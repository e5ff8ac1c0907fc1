"""Growing one decision tree on binned rows, the most promising leaf first.

The rows of a leaf are one segment of `order`. Of two siblings, only the smaller one's histogram is summed
over rows; the other's is the parent's histogram minus it, in its place. Amounts are integers, so that sums do
not depend on the order of the rows, and such differences are exact.
"""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies._kernels.boosting.encoding import Codes
from dichotomies._kernels.boosting.node_rows import NodeRows, add_histograms, write_bins
from dichotomies._kernels.boosting.splits import Growth, Scan, may_split, try_feature
from dichotomies._kernels.compile import kernel

#: Distinguishes the features drawn for a tree from the order in which they are tried.
OF_TREES = 2**40

#: Largest number of bins of a feature, missing values included.
MAX_BINS = 256

#: A node of a tree while the tree is grown. Its split: local feature, -1 for none; last nonempty local bin on
#: the left, next one on the right; whether missing values go left; set of categories that go left. Its
#: `score`, and the `least` that it had to beat. Rows: ``order[begin:end]``, from `middle` on the positive
#: ones (Gini) or those not drawn (Newton). The first two amounts, summed over all of them (`first`, `second`)
#: and over those left of the split. `depth`; number as a `leaf` (the left child of a split keeps it, the
#: right one of split s has s + 1); `slot` of the histogram, -1 for none; left `child`, which the right one
#: follows; -1 for none. `key`: number in a heap, for the order of features. `is_open`: it may be split.
NODE = np.dtype(
    [
        *((name, "i8") for name in ("feature", "last_bin", "next_bin")),
        *((name, "?") for name in ("missing_left", "is_open")),
        ("bits", "u8", (4,)),
        *((name, "f8") for name in ("score", "least")),
        *((name, "i8") for name in ("begin", "middle", "end")),
        *((name, "i8") for name in ("first", "second", "first_left", "second_left")),
        *((name, "i8") for name in ("depth", "leaf", "slot", "child", "key")),
    ],
    align=True,
)


class Tree(NamedTuple):
    """A tree, in memory that is large enough for the tree of any node of the class tree.

    Attributes
    ----------
    nodes : (n_nodes,) of NODE
        Numbered as they are made.
    splits : (max_leaves,)
        The nodes that are split, in that order.
    order, spare : (n_rows,)
        Row numbers by node, and scratch for partitioning them.
    goes_left : (n_rows,)
        Scratch likewise: local bins of rows, then 1 for those that go left.
    active, tried : (n_features,)
        The local features that the tree may use; the same in the order in which a split tries them.
    histograms : (n_slots, n_channels, n_bins)
    free : (n_slots + 1,)
        The number of unused slots, and those slots.
    scan : Scan
    """

    nodes: Any
    splits: IntArray
    order: IntArray
    spare: IntArray
    goes_left: Codes
    active: IntArray
    tried: IntArray
    histograms: IntArray
    free: IntArray
    scan: Scan


def allocate_tree(
    n_rows: int, max_leaves: int, max_depth: int, n_channels: int, n_features: int, n_bins: int
) -> Tree:
    """Allocate a tree, whose memory is reused for all trees of all nodes."""
    stored = max_leaves if max_depth > 9 else min(max_leaves, 2 ** max(max_depth - 2, 0))
    scores = np.empty((2, MAX_BINS + 1))
    return Tree(
        nodes=np.empty(2 * max_leaves + 2, dtype=NODE),
        splits=np.empty(max_leaves, dtype=np.intp),
        order=np.empty(n_rows + 1, dtype=np.uint32),
        spare=np.empty(n_rows + 1, dtype=np.uint32),
        goes_left=np.empty(n_rows, dtype=np.uint8),
        active=np.empty(n_features, dtype=np.intp),
        tried=np.empty(n_features, dtype=np.intp),
        histograms=np.empty((stored + 2, n_channels, n_bins), dtype=np.int64),
        free=np.empty(stored + 3, dtype=np.intp),
        scan=Scan(np.empty((2, MAX_BINS), dtype=np.int64), scores, scores.view(np.int64)),
    )


@kernel
def grow_tree(rows: NodeRows, growth: Growth, number: int, tree: Tree) -> int:
    """Grow a tree on all rows: split the leaf with the largest gain until there are enough leaves.

    Parameters
    ----------
    number : int
        Number of the tree, which breaks ties between features, see `first_and_step`.

    Returns
    -------
    int
        Number of splits.
    """
    nodes = tree.nodes
    n_active = choose_features(rows, growth, number, tree.active)
    begin_root(rows, growth, tree)
    if n_active == 0 or not nodes[0]["is_open"]:
        return 0
    n_slots = len(tree.histograms)
    for i in range(n_slots):
        tree.free[i + 1] = n_slots - 1 - i
    tree.free[0] = n_slots - 1  # the last one is the root's
    nodes[0]["slot"] = 0
    n_splits, max_leaves, parent, small, own = 0, min(growth.max_leaves, rows.n_rows), 0, 0, 0
    while True:
        if small >= 0:
            find_splits(rows, growth, number, n_active, tree, parent, small, own)
        if small > 0:
            keep_histograms(tree, parent, small, own, growth.max_depth)
        parent, left = most_promising(nodes, 2 * n_splits + 1), 2 * n_splits + 1
        if parent < 0 or n_splits + 1 >= max_leaves:
            return n_splits
        add_children(rows, tree, parent, left, n_splits)
        n_splits, small = n_splits + 1, -1
        if nodes[left]["depth"] < growth.max_depth and n_splits + 1 < max_leaves:
            nodes[left]["is_open"] = may_split(growth, nodes[left])
            nodes[left + 1]["is_open"] = may_split(growth, nodes[left + 1])
            if nodes[left]["is_open"] or nodes[left + 1]["is_open"]:
                small = left if n_rows_of(nodes[left]) <= n_rows_of(nodes[left + 1]) else left + 1
                own = tree.free[tree.free[0]]
                tree.free[0] -= 1
        if small < 0 and nodes[parent]["slot"] >= 0:
            release(tree.free, nodes[parent]["slot"])


@kernel(inline=True)
def n_rows_of(node: Any) -> Any:
    return node["end"] - node["begin"]


@kernel(inline=True)
def release(free: IntArray, slot: int) -> None:
    """Make a slot available."""
    free[0] += 1
    free[free[0]] = slot


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
def choose_features(rows: NodeRows, growth: Growth, number: int, active: IntArray) -> int:
    """Write the features that this tree may use; return their number."""
    n_features = rows.n_features
    n_active = n_features
    if growth.tree_features < 1.0 and n_features > 0:
        n_active = max(1, int(np.ceil(growth.tree_features * n_features)))
    f, step = 0, 1
    if n_active < n_features:
        f, step = first_and_step(rows.features, n_features, number + OF_TREES, growth.seed)
    for j in range(n_active):
        active[j] = f
        f = (f + step) % n_features
    return n_active


@kernel(inline=True)
def begin_root(rows: NodeRows, growth: Growth, tree: Tree) -> None:
    """Begin with one leaf: rows that are drawn come first (Newton), or the negative ones (Gini)."""
    root, order, spare, n_rows = tree.nodes[0], tree.order, tree.spare, rows.n_rows
    first, second, middle, n_others = np.int64(0), np.int64(0), rows.n_negative, 0
    if growth.is_gini:
        for i in range(n_rows):
            order[i] = i
        for i in range(middle):
            first += rows.amounts[i]
        for i in range(middle, n_rows):
            second += rows.amounts[i]
    else:
        middle = 0
        for i in range(n_rows):
            is_drawn = rows.drawn[i]
            order[middle] = spare[n_others] = i
            first += is_drawn * rows.amounts[i]
            middle += is_drawn
            n_others += 1 - is_drawn
        for i in range(n_others):
            order[middle + i] = spare[i]
    init_node(root, 0, middle, n_rows)
    root["first"], root["second"] = first, second
    root["depth"] = root["leaf"] = root["key"] = 0
    root["is_open"] = may_split(growth, root)


@kernel
def init_node(node: Any, begin: int, middle: int, end: int) -> None:
    """Initialise a leaf that has these rows."""
    node["feature"] = node["child"] = node["slot"] = -1
    node["begin"], node["middle"], node["end"] = begin, middle, end


@kernel(inline=True)
def add_children(rows: NodeRows, tree: Tree, parent: int, left: int, n_splits: int) -> None:
    """Split a node: partition its rows between two new nodes, keeping their order."""
    node, order, spare = tree.nodes[parent], tree.order, tree.spare
    begin, middle, end = node["begin"], node["middle"], node["end"]
    goes_left = tree.goes_left[begin:end]
    write_bins(rows, node["feature"], order[begin:end], goes_left)
    mark_left(rows.features[node["feature"]], node, goes_left)
    left_middle, right_middle = partition(order, spare, tree.goes_left, begin, middle, begin, 0)
    kept, moved = partition(order, spare, tree.goes_left, middle, end, left_middle, right_middle)
    for i in range(moved):
        order[kept + i] = spare[i]
    first, second = tree.nodes[left], tree.nodes[left + 1]
    init_node(first, begin, left_middle, kept)
    init_node(second, kept, kept + right_middle, end)
    first["first"], second["first"] = node["first_left"], node["first"] - node["first_left"]
    first["second"], second["second"] = node["second_left"], node["second"] - node["second_left"]
    first["depth"] = second["depth"] = node["depth"] + 1
    first["key"], second["key"] = 2 * node["key"] + 1, 2 * node["key"] + 2
    first["leaf"], second["leaf"] = node["leaf"], n_splits + 1
    node["child"] = left
    tree.splits[n_splits] = parent


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
def keep_histograms(tree: Tree, parent: int, small: int, own: int, max_depth: int) -> None:
    """Keep the histograms of a node's children where grandchildren may be split; release the others."""
    nodes, left = tree.nodes, tree.nodes[parent]["child"]
    is_last = nodes[left]["depth"] + 1 == max_depth
    for child, slot in ((small, own), (2 * left + 1 - small, nodes[parent]["slot"])):
        if is_last or nodes[child]["feature"] < 0:
            release(tree.free, slot)
        else:
            nodes[child]["slot"] = slot


@kernel
def find_splits(
    rows: NodeRows, growth: Growth, number: int, n_active: int, tree: Tree, parent: int, small: int, own: int
) -> None:
    """Find the splits of a node, whose histogram is summed, and of its sibling, by subtraction.

    Parameters
    ----------
    parent, small : int
        The parent of the node, and the node; twice the root.
    own : int
        Slot for the histogram of the node; that of its parent becomes its sibling's.
    """
    nodes, features, tried = tree.nodes, rows.features, tree.tried
    at, step = first_and_step(features, n_active, number, nodes[parent]["key"])
    for j in range(n_active):
        at = (at + step) % n_active
        tried[j] = tree.active[at]
    histograms, slot = tree.histograms, nodes[parent]["slot"]
    sum_histograms(rows, growth, nodes[small], tree, tried[:n_active], histograms[own])
    n_tried = max(1, int(np.ceil(growth.split_features * n_active)))
    large = 2 * nodes[parent]["child"] + 1 - small
    for j in range(n_active):
        f = tried[j]
        for child, of_child in ((small, own), (large, slot)):
            if child == large:
                for channel in range(histograms.shape[1]):
                    for b in range(features[f]["begin"], features[f]["end"]):
                        histograms[slot, channel, b] -= histograms[own, channel, b]
            if nodes[child]["is_open"] and j < n_tried:
                try_feature(growth, features[f], nodes[child], f, histograms[of_child], tree.scan)
            if small == parent:
                break


@kernel(inline=True)
def sum_histograms(
    rows: NodeRows, growth: Growth, node: Any, tree: Tree, features: IntArray, out: IntArray
) -> None:
    """Sum the histograms of a node's rows in some features: of Newton splits, of the rows that are drawn."""
    for channel in range(len(out)):
        for f in features:
            out[channel, rows.features[f]["begin"] : rows.features[f]["end"]] = 0
    begin, middle, end = node["begin"], node["middle"], node["end"]
    has_counts = growth.min_rows > 1
    if growth.is_gini:
        add_histograms(rows, rows.amounts, tree.order[begin:middle], features, out[0])
        add_histograms(rows, rows.amounts, tree.order[middle:end], features, out[1])
        if has_counts:
            add_histograms(rows, rows.drawn, tree.order[begin:end], features, out[2])
    else:
        add_histograms(rows, rows.amounts, tree.order[begin:middle], features, out[0])
        if has_counts:
            add_histograms(rows, rows.drawn, tree.order[begin:middle], features, out[1])


@kernel
def first_and_step(features: Any, n_features: int, number: int, node: int) -> tuple[Any, Any]:
    """Return the first feature to try and the (cyclic) step to the next one: a pseudo-random permutation.

    Among equally good features the first one tried is taken, and in small nodes many are equally good. With a
    fixed order, all trees would use the same corner of an image, whereas scikit-learn tries features in
    random order. Here the order is derived from the number of bins, the tree and the node.

    Parameters
    ----------
    features : (n_features or more,) of FEATURE
    number : int
        Number of the tree.
    node : int
        The root, or the parent of the two nodes to be split.
    """
    mixed: Any = np.uint64(0)
    half = n_features // 2
    begin = features[half - 1]["merged_end"] if half > 0 else 0
    for part in (features[n_features - 1]["merged_end"], begin, number, node):
        mixed = mix_bits(mixed + np.uint64(part))
    first = np.int64(mixed % np.uint64(n_features))
    step = np.int64((mixed >> np.uint64(32)) % np.uint64(n_features))
    while not are_coprime(step, n_features):
        step += 1
    return first, step


@kernel
def mix_bits(x: Any) -> Any:
    """Mix 64 bits (the finaliser of SplitMix64: Steele, Lea & Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel(inline=True)
def are_coprime(a: Any, b: Any) -> bool:
    """Return True if steps of `a` visit all of `b` places (Euclid's algorithm)."""
    while b:
        a, b = b, a % b
    return bool(a == 1)
