"""Counts of either side of every node, from the leaves up: sparse counts are merged child by child.

Nodes are visited in post-order, so that the subtrees below a node are the last that were merged. Much of what
two subtrees have seen is the same, so there is less to merge than if every node were to add up its leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import copy

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray


class Counts(NamedTuple):
    """Counts of each group of rows; group ``leaf * n_folds + fold``.

    Attributes
    ----------
    offsets : (n_groups + 1,)
        Where each group's features begin, and the end.
    feature, total : (n_active,)
        A feature, and its sum over the rows of the group.
    """

    n_folds: int
    offsets: IntArray
    feature: Any
    total: FloatArray


class Place(NamedTuple):
    """A node's leaves, and whether its sides are pending subtrees; else they are added up leaf by leaf."""

    start: int
    split: int
    stop: int
    left_is_pending: bool
    right_is_pending: bool


class Subtrees(NamedTuple):
    """Counts of some subtrees, for each model in the folds that it learns from.

    Attributes
    ----------
    offsets : (n_subtrees + 1,)
        Where the features of each subtree begin, and the end.
    feature, total : (n_active,), (n_models, n_active)
        A feature, and its sums.
    """

    offsets: IntArray
    feature: Any
    total: FloatArray

    @classmethod
    def room(cls, n_models: int, n_subtrees: int, n_active: int) -> Subtrees:
        """Room for subtrees; what is never needed is never touched."""
        offsets = np.zeros(n_subtrees + 1, dtype=np.intp)
        return cls(offsets, np.empty(n_active, dtype=np.int32), np.empty((n_models, n_active)))

    def first(self, n: int) -> Subtrees:
        """A copy of the first ones."""
        end = self.offsets[n]
        return Subtrees(self.offsets[: n + 1].copy(), self.feature[:end].copy(), self.total[:, :end].copy())


class Workspace(NamedTuple):
    """Scratch memory that one node after another uses.

    Attributes
    ----------
    cursor : (2,)
        How many subtrees are pending, and how many features were met, at all nodes together.
    place : (n_features,)
        How many features had been met when each was met last.
    met, at : (n_features + 1,)
        The features met at a node, in that order; where some of them stand in it.
    left, right : (n_models, n_features)
        The sums over each side of the features met; 0 between nodes.
    weights : (n_models, n_features)
        The weights of the features met.
    table : (n_models, n_features)
        The weights again, each at its feature.
    pending : Subtrees
        Those whose parents are yet to be visited.
    """

    cursor: IntArray
    place: IntArray
    met: Any
    at: Any
    left: FloatArray
    right: FloatArray
    weights: FloatArray
    table: FloatArray
    pending: Subtrees

    @classmethod
    def blank(cls, n_features: int, n_models: int) -> Workspace:
        """Before the first visit; there is no room yet for pending subtrees."""
        shape = n_models, n_features
        return cls(
            np.zeros(2, dtype=np.intp),
            np.full(n_features, -1),
            np.empty(n_features + 1, dtype=np.int32),
            np.empty(n_features + 1, dtype=np.int32),
            np.zeros(shape),
            np.zeros(shape),
            np.empty(shape),
            np.zeros(shape),
            Subtrees.room(n_models, 0, 0),
        )


@kernel
def meet(features: Any, begun: int, end: int, space: Workspace) -> int:
    """Find where features stand among those met at a node, new ones at the end; return the new end.

    Parameters
    ----------
    begun, end : int
        How many features had been met before this node, and until now.
    """
    place, met, at = space.place, space.met, space.at
    for i in range(len(features)):
        j = np.uintp(features[i])  # unsigned, it is never taken to be counted from the end
        is_new = place[j] < begun
        met[np.uintp(end - begun)] = j  # overwritten by the next, unless new: a branch would be guessed wrong
        place[j] = end if is_new else place[j]
        at[i] = place[j] - begun
        end += is_new
    return end


@kernel
def add_at(at: Any, values: FloatArray, out: FloatArray) -> None:
    """Add values to the places where they belong."""
    for i in range(len(values)):
        out[np.uintp(at[i])] += values[i]


@kernel
def add_leaves(
    first: int,
    last: int,
    counts: Counts,
    left_out: IntArray,
    begun: int,
    end: int,
    space: Workspace,
    sums: FloatArray,
) -> int:
    """Add some leaves to the sums of each model, but for the fold that the model leaves out; see `meet`."""
    for group in range(first * counts.n_folds, last * counts.n_folds):
        fold = group % counts.n_folds
        if len(left_out) == 1 and left_out[0] == fold:
            continue
        own = slice(counts.offsets[group], counts.offsets[group + 1])
        end = meet(counts.feature[own], begun, end, space)
        for model in range(len(sums)):
            if left_out[model] != fold:
                add_at(space.at, counts.total[own], sums[model])
    return end


@kernel
def add_pending(which: int, begun: int, end: int, space: Workspace, sums: FloatArray) -> int:
    """Add a pending subtree to the sums of each model; see `meet`."""
    offsets, feature, total = space.pending
    own = slice(offsets[which], offsets[which + 1])
    end = meet(feature[own], begun, end, space)
    for model in range(len(sums)):
        add_at(space.at, total[model, own], sums[model])
    return end


@kernel
def add_sides(place: Place, counts: Counts, left_out: IntArray, space: Workspace) -> int:
    """Add up the sides of a node, whose subtrees are pending no longer; return how many features were met."""
    begun = space.cursor[1]
    pending = space.cursor[0] - place.left_is_pending - place.right_is_pending
    if place.left_is_pending:
        end = add_pending(pending, begun, begun, space, space.left)
    else:
        end = add_leaves(place.start, place.split, counts, left_out, begun, begun, space, space.left)
    if place.right_is_pending:
        end = add_pending(pending + place.left_is_pending, begun, end, space, space.right)
    else:
        end = add_leaves(place.split, place.stop, counts, left_out, begun, end, space, space.right)
    space.cursor[0], space.cursor[1] = pending, end
    return int(end - begun)


@kernel
def merge_sides(n: int, space: Workspace) -> None:
    """Make a pending subtree of the sides of a node, where `n` features were met."""
    offsets, feature, total = space.pending
    begin = offsets[space.cursor[0]]
    copy(space.met[:n], feature[begin:])
    for model in range(len(total)):
        left, right, both = space.left[model], space.right[model], total[model, begin:]
        for s in range(n):
            both[s] = left[s] + right[s]
            left[s] = right[s] = 0.0
    space.cursor[0] += 1
    offsets[space.cursor[0]] = begin + n


@kernel
def put_off(which: int, given: Subtrees, space: Workspace) -> None:
    """Make a pending subtree of one that was merged before."""
    offsets, feature, total = space.pending
    begin, own = offsets[space.cursor[0]], slice(given.offsets[which], given.offsets[which + 1])
    copy(given.feature[own], feature[begin:])
    for model in range(len(total)):
        copy(given.total[model, own], total[model, begin:])
    space.cursor[0] += 1
    offsets[space.cursor[0]] = begin + len(given.feature[own])
