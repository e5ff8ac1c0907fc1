"""Boosted trees in files of earlier versions: all of one depth, numbered as a heap, with thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies.persistence.checks import Array, Names, Offsets, check_value, expect

_DECLARED = {
    "feature": Array("integer", "n_trees", "n_splits", within=(-1, 2**31 - 1)),
    "threshold": Array("float", "n_trees", "n_splits"),
    "value": Array("float", "n_trees", (2, "n_splits", 1)),
    "tree_offsets": Offsets("n_nodes", "n_trees"),
}


def upgraded(old: dict[str, Any]) -> dict[str, Any]:
    """Convert the fields of such trees to those of `BoostedTrees`; what is not changed is checked later."""
    if "threshold" not in old:
        return old
    names: Names = {}
    for name, declaration in _DECLARED.items():
        check_value(declaration, old.get(name), name, names)
    expect(names["n_splits"] <= 255, "a tree has at most 255 splits")
    feature, threshold = old["feature"], old["threshold"]
    splits = np.flatnonzero(feature >= 0)
    order = splits[np.lexsort((threshold.ravel()[splits], feature.ravel()[splits]))]
    by_feature, ascending = feature.ravel()[order], threshold.ravel()[order]
    new_feature = np.diff(by_feature, prepend=-1) != 0
    new_edge = new_feature | (np.diff(ascending, prepend=np.nan) != 0)
    begins = np.flatnonzero(new_feature[new_edge])
    column, limit = np.zeros((2, feature.size), dtype=np.int64)
    column[order] = np.cumsum(new_feature) - 1
    limit[order] = np.cumsum(new_edge) - 1 - begins[column[order]]
    # the type must also hold a code above the highest limit, and that of missing values
    small = limit.max(initial=0) + 2 < np.iinfo(np.uint16).max
    trees = _Sequences(feature, old["value"])
    return {
        "features": by_feature[new_feature].astype(np.intp),
        "edges": ascending[new_edge].astype(np.float64),
        "edge_offsets": np.append(begins, np.count_nonzero(new_edge)),
        "is_categorical": np.zeros(len(begins), dtype=np.bool_),
        "column": column[trees.splits].astype(np.int32),
        "leaf": trees.leaf,
        "limit": limit[trees.splits].astype(np.uint16 if small else np.uint32),
        "kind": np.zeros(len(trees.splits), dtype=np.uint8),
        "categories": np.empty((0, 32), dtype=np.uint8),
        "split_offsets": np.concatenate([[0], np.cumsum(trees.sizes)]),
        "value": trees.value,
        **{name: old.get(name) for name in ("tree_offsets", "base", "scale", "is_trained")},
    }


class _Sequences:
    """Heaps as sequences of splits: places of the splits, the leaves they divide, values of the leaves.

    A split whose parent is a leaf does not count.
    """

    def __init__(self, feature: Any, value: Any) -> None:
        n_trees, n_splits = feature.shape
        splits: list[int] = []
        leaves: list[int] = []
        values: list[float] = []
        self.sizes = np.zeros(n_trees, dtype=np.intp)
        for t in range(n_trees):
            leaf_of, places = {0: 0}, [0]
            for node in range(n_splits):
                if node in leaf_of and feature[t, node] >= 0:
                    leaf = leaf_of.pop(node)
                    splits.append(t * n_splits + node)
                    leaves.append(leaf)
                    self.sizes[t] += 1
                    leaf_of[2 * node + 1], leaf_of[2 * node + 2] = leaf, int(self.sizes[t])
                    places[leaf : leaf + 1] = [2 * node + 1]
                    places.append(2 * node + 2)
            values += value[t, places].tolist()
        self.splits = np.array(splits, dtype=np.intp)
        self.leaf = np.array(leaves, dtype=np.uint8)
        self.value = np.array(values, dtype=np.float64)
