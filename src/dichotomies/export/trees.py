"""Boosted trees as the tree ensemble operator of ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._kernels.boosting.boosting import CATEGORICAL, MISSING_LEFT
from dichotomies.export.graph import Graph
from dichotomies.learners.boosting.trees import BoostedTrees


def boosted_log_odds(trees: BoostedTrees, graph: Graph, X: str) -> str:
    """Add one operator that sums the trees of all nodes, and scale its sums."""
    if (trees.kind == CATEGORICAL).any():
        raise TypeError("Boosted trees with categorical features cannot be exported; encode them as numbers.")
    nodes, leaves = _nodes(trees), _leaves(trees)
    tensor = graph.tensor
    sums = graph.apply(
        "TreeEnsembleRegressor",
        X,
        n_targets=len(trees.base),
        post_transform="NONE",
        aggregate_function="SUM",
        nodes_values_as_tensor=tensor(nodes.pop("values")),
        target_weights_as_tensor=tensor(leaves.pop("weights")),
        **{f"nodes_{name}": values for name, values in nodes.items()},
        **{f"target_{name}": values for name, values in leaves.items()},
    )
    sums = graph.apply("Cast", sums, to=graph.type_of(np.float64))  # the operator's sums are single precision
    return graph.affine(sums, trees.scale, trees.base)


def _nodes(trees: BoostedTrees) -> dict[str, Any]:
    """Splits and leaves of all trees; in a tree, splits are numbered first."""
    n_splits = np.diff(trees.split_offsets)
    tree = np.repeat(np.arange(len(n_splits)), 2 * n_splits + 1)
    first = np.concatenate([[0], np.cumsum(2 * n_splits + 1)])[:-1]
    number = np.arange(len(tree)) - first[tree]
    is_split = number < n_splits[tree]
    children = _children(trees)
    edge = trees.edge_offsets[trees.column] + trees.limit
    has_edge = edge < trees.edge_offsets[trees.column + 1]
    threshold = np.where(has_edge, trees.edges[np.minimum(edge, len(trees.edges) - 1)], np.inf)

    def of_splits(values: Any) -> Any:
        placed = np.zeros(len(tree), dtype=np.asarray(values).dtype)
        placed[is_split] = values
        return placed

    return {
        "treeids": tree.tolist(),
        "nodeids": number.tolist(),
        "featureids": of_splits(trees.features[trees.column]).tolist(),
        "values": of_splits(threshold),
        "modes": np.where(is_split, "BRANCH_LEQ", "LEAF").tolist(),
        "truenodeids": of_splits(children[0]).tolist(),
        "falsenodeids": of_splits(children[1]).tolist(),
        "missing_value_tracks_true": of_splits((trees.kind == MISSING_LEFT).astype(np.int64)).tolist(),
    }


def _children(trees: BoostedTrees) -> Any:
    """Numbers of the left and the right child of every split: later splits of the same leaf, or leaves."""
    children = np.empty((2, len(trees.leaf)), dtype=np.int64)
    for begin, end in zip(trees.split_offsets[:-1].tolist(), trees.split_offsets[1:].tolist(), strict=True):
        n = end - begin
        node_of_leaf = np.arange(n, 2 * n + 1)
        for s in range(n - 1, -1, -1):
            leaf = trees.leaf[begin + s]
            children[:, begin + s] = node_of_leaf[leaf], node_of_leaf[s + 1]
            node_of_leaf[leaf] = s
    return children


def _leaves(trees: BoostedTrees) -> dict[str, Any]:
    """The value of each leaf, and the node of the nested dichotomy that it counts for."""
    n_splits = np.diff(trees.split_offsets)
    tree = np.repeat(np.arange(len(n_splits)), n_splits + 1)
    first = trees.split_offsets[:-1] + np.arange(len(n_splits))
    target = np.repeat(np.arange(len(trees.base)), np.diff(trees.tree_offsets))
    number = n_splits[tree] + np.arange(len(tree)) - first[tree]
    return {
        "treeids": tree.tolist(),
        "nodeids": number.tolist(),
        "ids": target[tree].tolist(),
        "weights": trees.value,
    }
