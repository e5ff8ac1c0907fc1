"""The binned rows of one training set, and the memory in which a tree is grown on them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.histograms import Codes
from dichotomies._kernels.boosting.splits import MAX_BINS, Limits, SplitWorkspace, allocate_workspace
from dichotomies._kernels.compile import kernel

#: Number of features whose histograms are summed together.
FEATURE_BLOCK = 4


class BinnedRows(NamedTuple):
    """The binned rows of one training set, and the amounts summed in histograms.

    Attributes
    ----------
    codes : (n_features, n_rows)
        Local bins, those of the negative rows first.
    offsets : (n_features + 1,)
        Start of each feature's bins in a histogram, and the end.
    has_missing : (n_features,)
        True where the last bin is that of missing values.
    is_categorical : (n_features,)
    n_negative : int
        Number of negative rows.
    amounts : (3, n_rows)
        In fixed point. For Gini impurity the weight, twice (once for either class); for a Newton step the
        gradient and the Hessian in one, see `splits`. Last, 1 for each row.
    """

    codes: Codes
    offsets: IntArray
    has_missing: BoolArray
    is_categorical: BoolArray
    n_negative: int
    amounts: IntArray


class Growth(NamedTuple):
    """Parameters of growing a tree.

    Attributes
    ----------
    max_depth, max_leaves : int
    newton : bool
        Score splits by the gain of a Newton step; otherwise by Gini impurity.
    tree_features, split_features : float
        Share of the features that a tree may use, and of these, that are tried at a split.
    seed : int
        Of drawing the features of a tree.
    limits : Limits
    """

    max_depth: int
    max_leaves: int
    newton: bool
    tree_features: float
    split_features: float
    seed: int
    limits: Limits


class Tree(NamedTuple):
    """A tree, and the memory it is grown in; nodes are numbered as they are made.

    Attributes
    ----------
    feature, last_bin, next_bin : (n_nodes,)
        Local feature of each node's split, -1 for none; the last nonempty local bin on its left, and the next
        on its right.
    missing_left : (n_nodes,)
        True where missing values go left.
    bits : (n_nodes, 4)
        Categories that go left.
    score, least : (n_nodes,)
        Score of the split, and what it had to beat.
    begin, middle, end : (n_nodes,)
        The node's rows are ``order[begin:end]``; the positive ones begin at ``middle``.
    sums, sums_left : (n_nodes, 2)
        The first two amounts, summed over the node's rows and over those left of its split.
    depth, leaf, slot, child : (n_nodes,)
        Depth; number as a leaf (the left child of a split keeps it, the right one of split s has s + 1);
        place of its histogram; its left child, which its right one follows; -1 for none.
    key : (n_nodes,)
        Number in a heap, which the order of features depends on.
    splits : (max_leaves,)
        The nodes that are split, in that order.
    n_splits : (1,)
    order, spare : (n_rows,)
        Row numbers by node, and scratch for partitioning them.
    histograms : (n_slots, n_channels, n_bins)
    free : (n_slots,)
        Unused places of histograms.
    last_level : (2, n_channels, FEATURE_BLOCK * MAX_BINS)
        Histograms of two siblings whose children are not split, of one block of features at a time.
    active : (n_features,)
        Features that the tree may use.
    workspace : SplitWorkspace
    """

    feature: IntArray
    last_bin: IntArray
    next_bin: IntArray
    missing_left: BoolArray
    bits: npt.NDArray[np.uint64]
    score: FloatArray
    least: FloatArray
    begin: IntArray
    middle: IntArray
    end: IntArray
    sums: IntArray
    sums_left: IntArray
    depth: IntArray
    leaf: IntArray
    slot: IntArray
    child: IntArray
    key: IntArray
    splits: IntArray
    n_splits: IntArray
    order: IntArray
    spare: IntArray
    histograms: IntArray
    free: IntArray
    last_level: IntArray
    active: IntArray
    workspace: SplitWorkspace


@kernel
def allocate_tree(growth: Growth, n_rows: int, n_features: int, n_bins: int) -> Tree:
    """Allocate a tree, whose memory is reused for all trees of a node."""
    max_leaves = min(growth.max_leaves, n_rows)
    n = 2 * max_leaves
    stored = max_leaves if growth.max_depth > 9 else min(max_leaves, 2 ** max(growth.max_depth - 2, 0))
    n_channels = (1 if growth.newton else 2) + (0 if growth.limits.min_rows == 1 else 1)
    return Tree(
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.bool_),
        np.empty((n, 4), dtype=np.uint64),
        np.empty(n),
        np.empty(n),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty((n, 2), dtype=np.int64),
        np.empty((n, 2), dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(max_leaves, dtype=np.int64),
        np.empty(1, dtype=np.int64),
        np.empty(n_rows, dtype=np.int64),
        np.empty(n_rows, dtype=np.int64),
        np.empty((stored + 2, n_channels, n_bins), dtype=np.int64),
        np.empty(stored + 2, dtype=np.int64),
        np.empty((2, n_channels, FEATURE_BLOCK * MAX_BINS), dtype=np.int64),
        np.empty(n_features, dtype=np.int64),
        allocate_workspace(),
    )
