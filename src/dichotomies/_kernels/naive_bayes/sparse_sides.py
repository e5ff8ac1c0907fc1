"""Sparse counts of the sides of every node, merged child by child from the leaves up.

Nodes are visited in post-order, so that the subtrees below a node are on top of the stack of pending ones.
Subtrees share many active features, so merging them is cheaper than summing the leaves of every node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import copy


class Counts(NamedTuple):
    """Active features of each group of rows; group ``leaf * n_folds + fold``.

    Attributes
    ----------
    offsets : (n_groups + 1,)
        Start of each group's features, and the end.
    feature, total : (n_active,)
        A feature, and its sum over the rows of the group.
    """

    n_folds: int
    offsets: IntArray
    feature: Any
    total: FloatArray


class NodeRange(NamedTuple):
    """A node's leaf range; a side that is not a pending subtree is summed leaf by leaf."""

    start: int
    split: int
    stop: int
    left_is_pending: bool
    right_is_pending: bool


class Subtrees(NamedTuple):
    """Active features of subtrees, with their sums over the training folds of each model.

    Attributes
    ----------
    offsets : (n_subtrees + 1,)
        Start of each subtree's features, and the end.
    feature, total : (n_active,), (n_models, n_active)
        A feature, and its sums.
    """

    offsets: IntArray
    feature: Any
    total: FloatArray

    @classmethod
    def allocate(cls, n_models: int, n_subtrees: int, n_active: int) -> Subtrees:
        """Allocate memory for subtrees without touching it."""
        offsets = np.zeros(n_subtrees + 1, dtype=np.intp)
        return cls(offsets, np.empty(n_active, dtype=np.int32), np.empty((n_models, n_active)))

    def first(self, n: int) -> Subtrees:
        """Copy the first `n` subtrees."""
        end = self.offsets[n]
        return Subtrees(self.offsets[: n + 1].copy(), self.feature[:end].copy(), self.total[:, :end].copy())


class Workspace(NamedTuple):
    """Scratch memory of one worker.

    The active features of a node have slots 0, 1, ... in the order in which they are first encountered.

    Attributes
    ----------
    cursor : (2,)
        Number of pending subtrees, and of slots assigned so far, over all nodes.
    place : (n_features,)
        Value of ``cursor[1]`` when the feature was last assigned a slot. Minus the value at the start of the
        node this is its slot; if negative, it has none yet.
    active, slots : (n_features + 1,)
        The feature in each slot; the slots of the features that are being added.
    left, right : (n_models, n_features)
        Sums over each side, by slot; 0 between nodes.
    weights : (n_models, n_features)
        Weights, by slot.
    table : (n_models, n_features)
        Weights, by feature.
    pending : Subtrees
        Stack of subtrees whose parents are yet to be visited.
    """

    cursor: IntArray
    place: IntArray
    active: Any
    slots: Any
    left: FloatArray
    right: FloatArray
    weights: FloatArray
    table: FloatArray
    pending: Subtrees

    @classmethod
    def blank(cls, n_features: int, n_models: int) -> Workspace:
        """Allocate a workspace, without memory for pending subtrees."""
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
            Subtrees.allocate(n_models, 0, 0),
        )


@kernel
def assign_slots(features: Any, base: int, end: int, space: Workspace) -> int:
    """Find the slots of features, assigning new ones to features that have none; return the new end.

    Parameters
    ----------
    base, end : int
        Number of slots assigned before this node, and so far.
    """
    place, active, slots = space.place, space.active, space.slots
    for i in range(len(features)):
        j = np.uintp(features[i])  # unsigned indices need no test for negative ones
        is_new = place[j] < base
        active[np.uintp(end - base)] = j  # overwritten by the next unless new: a branch would be mispredicted
        place[j] = end if is_new else place[j]
        slots[i] = place[j] - base
        end += is_new
    return end


@kernel
def add_at(slots: Any, values: FloatArray, out: FloatArray) -> None:
    """Add values at their slots."""
    for i in range(len(values)):
        out[np.uintp(slots[i])] += values[i]


@kernel
def add_leaves(
    first: int,
    last: int,
    counts: Counts,
    left_out: IntArray,
    base: int,
    end: int,
    space: Workspace,
    sums: FloatArray,
) -> int:
    """Add leaves to the sums of each model, except the fold that the model leaves out."""
    for group in range(first * counts.n_folds, last * counts.n_folds):
        fold = group % counts.n_folds
        if len(left_out) == 1 and left_out[0] == fold:
            continue
        own = slice(counts.offsets[group], counts.offsets[group + 1])
        end = assign_slots(counts.feature[own], base, end, space)
        for model in range(len(sums)):
            if left_out[model] != fold:
                add_at(space.slots, counts.total[own], sums[model])
    return end


@kernel
def add_pending(which: int, base: int, end: int, space: Workspace, sums: FloatArray) -> int:
    """Add a pending subtree to the sums of each model."""
    offsets, feature, total = space.pending
    own = slice(offsets[which], offsets[which + 1])
    end = assign_slots(feature[own], base, end, space)
    for model in range(len(sums)):
        add_at(space.slots, total[model, own], sums[model])
    return end


@kernel
def add_sides(node: NodeRange, counts: Counts, left_out: IntArray, space: Workspace) -> int:
    """Sum the sides of a node, popping its pending subtrees; return its number of active features."""
    base = space.cursor[1]
    pending = space.cursor[0] - node.left_is_pending - node.right_is_pending
    if node.left_is_pending:
        end = add_pending(pending, base, base, space, space.left)
    else:
        end = add_leaves(node.start, node.split, counts, left_out, base, base, space, space.left)
    if node.right_is_pending:
        end = add_pending(pending + node.left_is_pending, base, end, space, space.right)
    else:
        end = add_leaves(node.split, node.stop, counts, left_out, base, end, space, space.right)
    space.cursor[0], space.cursor[1] = pending, end
    return int(end - base)


@kernel
def merge_sides(n: int, space: Workspace) -> None:
    """Push the merged sides of a node, which has `n` active features, as a pending subtree."""
    offsets, feature, total = space.pending
    begin = offsets[space.cursor[0]]
    copy(space.active[:n], feature[begin:])
    for model in range(len(total)):
        left, right, both = space.left[model], space.right[model], total[model, begin:]
        for s in range(n):
            both[s] = left[s] + right[s]
            left[s] = right[s] = 0.0
    space.cursor[0] += 1
    offsets[space.cursor[0]] = begin + n


@kernel
def push_subtree(which: int, given: Subtrees, space: Workspace) -> None:
    """Push a subtree that was merged before."""
    offsets, feature, total = space.pending
    begin, own = offsets[space.cursor[0]], slice(given.offsets[which], given.offsets[which + 1])
    copy(given.feature[own], feature[begin:])
    for model in range(len(total)):
        copy(given.total[model, own], total[model, begin:])
    space.cursor[0] += 1
    offsets[space.cursor[0]] = begin + len(given.feature[own])
