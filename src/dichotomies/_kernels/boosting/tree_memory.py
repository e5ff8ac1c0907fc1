"""The memory in which a tree is grown."""

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import IntArray
from dichotomies._kernels.boosting.encoding import Codes
from dichotomies._kernels.boosting.node import NODE
from dichotomies._kernels.boosting.scan import Scan, allocate_scan
from dichotomies._kernels.boosting.team import Team

#: Number of features whose histograms are summed together.
FEATURE_BLOCK = 4

#: Largest number of bins of a feature, missing values included.
MAX_BINS = 256


class Growth(NamedTuple):
    """Parameters of growing a tree.

    Attributes
    ----------
    max_depth, max_leaves : int
    min_rows : int
        Minimum number of rows in a leaf.
    min_hessian : int
        Minimum Hessian of a leaf, in fixed point.
    unit : float
        Value of the integer 1 in amounts, which are in fixed point.
    tree_features, split_features : float
        Share of the features that a tree may use, and of these, that are tried at a split.
    seed : int
        Of drawing the features of a tree.
    """

    max_depth: int
    max_leaves: int
    min_rows: int
    min_hessian: int
    unit: float
    tree_features: float
    split_features: float
    seed: int


class Tree(NamedTuple):
    """A tree, in memory that has room for the tree of any node of the class tree.

    Attributes
    ----------
    nodes : (n_nodes,) of NODE
        Numbered as they are made.
    order, spare : (n_rows,)
        Row numbers by node, and scratch for partitioning them.
    goes_left : (n_rows,)
        Scratch likewise: local bins of rows, then 1 for those that go left.
    """

    nodes: IntArray
    order: IntArray
    spare: IntArray
    goes_left: Codes


class Search(NamedTuple):
    """The memory in which splits are searched for.

    Attributes
    ----------
    histograms : (n_slots, n_channels, n_bins)
        The last ones are those of each member's own rows, unless it is the only one.
    last_level : (2, n_channels, FEATURE_BLOCK * MAX_BINS)
        Histograms of two siblings whose children are not split, of one block of features at a time.
    block : (2, FEATURE_BLOCK or n_features)
        Features of a block, and the places of their bins in a histogram. All features are one block where
        rows are sparse.
    scan : Scan
    team : Team
        The threads that search together, who share histograms and parts.
    """

    histograms: IntArray
    last_level: IntArray
    block: IntArray
    scan: Scan
    team: Team


def allocate_tree(max_leaves: int, n_rows: int) -> Tree:
    """Allocate a tree, whose memory is reused for all trees of all nodes."""
    return Tree(
        nodes=np.empty(2 * max_leaves + 2, dtype=NODE),
        order=np.empty(n_rows + 1, dtype=np.uint32),
        spare=np.empty(n_rows + 1, dtype=np.uint32),
        goes_left=np.empty(n_rows, dtype=np.uint8),
    )


def allocate_search(
    max_leaves: int,
    max_depth: int,
    n_channels: int,
    n_features: int,
    n_bins: int,
    is_sparse: bool,
    team: Team,
) -> Search:
    """Allocate the memory for splits of all trees of all nodes."""
    n_block = max(n_features, FEATURE_BLOCK + 1) if is_sparse else FEATURE_BLOCK
    stored = max_leaves if max_depth > 9 else min(max_leaves, 2 ** max(max_depth - 2, 0))
    return Search(
        histograms=np.empty((stored + 2 + team.size, n_channels, n_bins), dtype=np.int64),
        last_level=np.empty((2, n_channels, FEATURE_BLOCK * MAX_BINS), dtype=np.int64),
        block=np.empty((2, n_block), dtype=np.intp),
        scan=allocate_scan(MAX_BINS),
        team=team,
    )
