"""Boosted trees read in the plainest way: one row and one split at a time."""

import numpy as np


def split_at(trees, t, leaf, first=0):
    """The first split of tree t, from this one on, that divides a leaf: its number; None if there is none."""
    begin, end = trees.split_offsets[t : t + 2]
    found = [s for s in range(begin + first, end) if trees.leaf[s] == leaf]
    return None if not found else found[0] - begin


def feature_and_threshold(trees, t, s):
    split = trees.split_offsets[t] + s
    column = trees.column[split]
    edges = trees.edges[trees.edge_offsets[column] : trees.edge_offsets[column + 1]]
    limit = int(trees.limit[split])
    return trees.features[column], edges[limit] if limit < len(edges) else np.inf


def goes_right(trees, t, s, x):
    """Decide where a row goes at split s of tree t."""
    split = trees.split_offsets[t] + s
    feature, threshold = feature_and_threshold(trees, t, s)
    if trees.kind[split] == 2:
        column = trees.column[split]
        known = trees.edges[trees.edge_offsets[column] : trees.edge_offsets[column + 1]].tolist()
        code = known.index(x[feature]) if x[feature] in known else 255
        bits = trees.categories[np.count_nonzero(trees.kind[:split] == 2)]
        return not (bits[code // 8] >> (code % 8)) & 1
    if np.isnan(x[feature]):
        return trees.kind[split] == 0
    return x[feature] > threshold


def value(trees, t, X):
    """Value of tree t for each row."""
    out = np.empty(len(X))
    begin = trees.split_offsets[t]
    for i, x in enumerate(X):
        leaf = 0
        for s in range(trees.split_offsets[t + 1] - begin):
            if trees.leaf[begin + s] == leaf and goes_right(trees, t, s, x):
                leaf = s + 1
        out[i] = trees.value[begin + t + leaf]
    return out
