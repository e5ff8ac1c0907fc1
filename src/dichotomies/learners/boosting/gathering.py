"""Boosted trees that were trained apart, on different bins, as the trees of one model."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._common.best_of import take_segments
from dichotomies._kernels.boosting.boosting import CATEGORICAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray, IntArray

#: Edges of a column, so that codes are bytes and the last one is free for missing values.
_MOST_EDGES = 254
_OF_BINS = ("features", "edges", "edge_offsets", "is_categorical")


def concatenated(parts: Sequence[Any]) -> dict[str, npt.NDArray[Any]]:
    """Arrays of all parts one after the other, without those of the bins."""
    names = [each.name for each in fields(parts[0]) if each.name not in _OF_BINS]
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    for name in ("split_offsets", "tree_offsets"):
        sizes = np.concatenate([np.diff(getattr(part, name)) for part in parts])
        arrays[name] = np.concatenate([[0], np.cumsum(sizes)])
    return arrays


def taken_nodes(every: dict[str, npt.NDArray[Any]], nodes: IntArray) -> dict[str, npt.NDArray[Any]]:
    """Arrays of some of the nodes, in this order; see `BoostedTrees`."""
    tree_offsets, trees = take_segments(every["tree_offsets"], nodes)
    _, values = take_segments(every["split_offsets"] + np.arange(len(every["split_offsets"])), trees)
    split_offsets, splits = take_segments(every["split_offsets"], trees)
    sets = (np.cumsum(every["kind"] == CATEGORICAL) - 1)[splits]
    return {
        **{name: every[name][nodes] for name in ("base", "scale", "is_trained")},
        **{name: every[name][splits] for name in ("leaf", "kind", "limit", "column")},
        "categories": every["categories"][sets[every["kind"][splits] == CATEGORICAL]],
        "value": every["value"][values],
        "split_offsets": split_offsets,
        "tree_offsets": tree_offsets,
    }


def rebinned(
    parts: Sequence[Any], column: IntArray, limit: IntArray, kind: IntArray
) -> dict[str, npt.NDArray[Any]]:
    """Bins of all parts in one, and the splits in terms of them.

    Parts that were trained on the same bins keep them. Otherwise the edges of a feature are the thresholds of
    its splits, in several columns if there are more than a byte can number, and a categorical feature has a
    column for every different list of categories.

    Parameters
    ----------
    column, limit, kind : (n_splits,)
        Columns are numbered part after part.
    """
    n_edges = np.concatenate([np.diff(part.edge_offsets) for part in parts])
    begin, edges = np.cumsum(n_edges) - n_edges, np.concatenate([part.edges for part in parts])
    feature = np.concatenate([part.features for part in parts])
    columns, number = _Columns(), np.zeros(len(feature), dtype=np.int32)
    is_categorical = np.concatenate([part.is_categorical for part in parts])
    for c in np.flatnonzero(np.bincount(column, minlength=len(feature))).tolist():
        own = edges[begin[c] : begin[c] + n_edges[c]]
        number[c] = columns.add(int(feature[c]), own, is_categorical=bool(is_categorical[c]))
    if columns.are_of_different_features and limit.dtype == np.uint8:
        return columns.arrays() | {"column": number[column], "limit": limit}
    is_set, columns = kind == CATEGORICAL, _Columns()
    new_column, new_limit = np.empty(len(column), dtype=np.int32), limit.astype(np.uint8)
    for c in np.unique(column[is_set]).tolist():
        categories = edges[begin[c] : begin[c] + n_edges[c]]
        new_column[is_set & (column == c)] = columns.add(int(feature[c]), categories, is_categorical=True)
    by_feature = np.where(is_set, -1, feature[column])
    order = np.argsort(by_feature, kind="stable")
    used, first = np.unique(by_feature[order], return_index=True)
    for f, own in zip(used.tolist(), np.split(order, first[1:]), strict=True):
        if f < 0:
            continue
        bounded = own[limit[own] < n_edges[column[own]]]  # others send only missing values to the right
        thresholds, place = np.unique(edges[begin[column[bounded]] + limit[bounded]], return_inverse=True)
        cuts = range(_MOST_EDGES, len(thresholds), _MOST_EDGES)
        numbers = [columns.add(f, part) for part in np.split(thresholds, cuts)]
        new_column[own], new_limit[own] = numbers[0], min(len(thresholds), _MOST_EDGES)
        new_column[bounded] = np.array(numbers)[place // _MOST_EDGES]
        new_limit[bounded] = place % _MOST_EDGES
    return columns.arrays() | {"column": new_column, "limit": new_limit}


class _Columns:
    """Columns of bins, collected one by one."""

    def __init__(self) -> None:
        self._features: list[int] = []
        self._edges: list[FloatArray] = []
        self._is_categorical: list[bool] = []
        self._known: dict[tuple[int, bool, bytes], int] = {}

    def add(self, feature: int, edges: FloatArray, *, is_categorical: bool = False) -> int:
        """Add a column, unless the same is there; return its number."""
        key = feature, is_categorical, edges.tobytes()
        if key not in self._known:
            self._known[key] = len(self._features)
            self._features.append(feature)
            self._edges.append(edges)
            self._is_categorical.append(is_categorical)
        return self._known[key]

    @property
    def are_of_different_features(self) -> bool:
        """True if no feature has two columns."""
        return len(set(self._features)) == len(self._features)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The bins as arrays, see `BoostedTrees`."""
        sizes = [len(each) for each in self._edges]
        return {
            "features": np.array(self._features, dtype=np.intp),
            "edges": np.concatenate([*self._edges, np.empty(0)]),
            "edge_offsets": np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)]),
            "is_categorical": np.array(self._is_categorical, dtype=bool),
        }
