"""Answers as deep as the evidence: nodes of the tree in place of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray, LabelArray
from dichotomies.tree import ClassTree

#: Characters that separate the levels of hierarchical labels.
_SEPARATORS = "/>|.:"


@dataclass(frozen=True, eq=False)
class GroupAnswers:
    """Base class: one or several groups of classes for each row, as ranges of leaf positions of a tree."""

    tree: ClassTree
    start: IntArray
    stop: IntArray
    proba: FloatArray

    def __len__(self) -> int:
        return len(self.start)

    def _leaf_of(self, y: LabelArray) -> IntArray:
        """Leaf position of each label; -1 for labels that are no classes of the tree."""
        code = np.minimum(np.searchsorted(self.tree.classes, y), self.tree.n_classes - 1)
        return np.where(self.tree.classes[code] == y, self.tree.leaf_position[code], -1)


class TreeAnswers(GroupAnswers):
    """A group of classes for each row: those below a node of the tree, or one class.

    Attributes
    ----------
    tree : ClassTree
    start, stop : ndarray of shape (n_rows,)
        Range of leaf positions of the group.
    proba : ndarray of shape (n_rows,)
        Probability of the group.
    """

    @property
    def size(self) -> IntArray:
        """Number of classes in each answer."""
        return self.stop - self.start

    @property
    def depth(self) -> IntArray:
        """Depth of each answer in the tree; 0 is the root."""
        bounds = list(zip(self.tree.start.tolist(), self.tree.stop.tolist(), strict=True))
        depth = dict(zip(bounds, self.tree.depth.tolist(), strict=True))
        leaf = self.tree.leaf_depth.tolist()
        ranges = zip(self.start.tolist(), self.stop.tolist(), strict=True)
        return np.array([leaf[a] if b == a + 1 else depth[a, b] for a, b in ranges], dtype=np.intp)

    def labels(self, row: int) -> LabelArray:
        """The classes of a row's answer, from left to right."""
        labels: LabelArray = self.tree.leaf_labels[self.start[row] : self.stop[row]]
        return labels

    @property
    def names(self) -> list[str]:
        """A name for each answer, see `group_name`."""
        known: dict[tuple[int, int], str] = {}
        labels = self.tree.leaf_labels
        ranges = list(zip(self.start.tolist(), self.stop.tolist(), strict=True))
        for a, b in set(ranges):
            known[a, b] = group_name(labels[a:b].tolist())
        return [known[each] for each in ranges]

    def holds(self, y: LabelArray) -> BoolArray:
        """Mask of the rows whose label is in the answer."""
        leaf = self._leaf_of(y)
        return np.asarray((self.start <= leaf) & (leaf < self.stop))


def group_name(labels: Sequence[object]) -> str:
    """Name of a group of classes: its label, what hierarchical labels have in common, or its size.

    Examples
    --------
    >>> from dichotomies.inference.tree_answers import group_name
    >>> group_name(["bird/duck"]), group_name(["bird/duck/teal", "bird/duck/mallard", "bird/duck/eider"])
    ('bird/duck', 'bird/duck')
    >>> group_name(["ant", "bee", "cat", "dog"])
    '4 classes: ant, bee, …, dog'
    """
    texts = [str(label) for label in labels]
    if len(texts) == 1:
        return texts[0]
    common = _common_levels(texts)
    if common:
        return common
    shown = texts if len(texts) <= 3 else [*texts[:2], "…", texts[-1]]
    return f"{len(texts)} classes: {', '.join(shown)}"


def _common_levels(texts: Sequence[str]) -> str:
    """Whole levels that hierarchical labels begin with; empty if there are none."""
    first, last = min(texts), max(texts)
    n = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    cut = max((first.rfind(separator, 0, n) for separator in _SEPARATORS), default=-1)
    return first[:cut].rstrip() if cut > 0 else ""


def node_masses(tree: ClassTree, proba: FloatArray) -> FloatArray:
    """Sums (n_rows, n_classes + 1) of class probabilities (n_rows, n_classes) over leaf positions, from 0."""
    sums = np.zeros((len(proba), tree.n_classes + 1))
    np.cumsum(proba[:, tree.leaf_order], axis=1, out=sums[:, 1:])
    return sums


def descend(tree: ClassTree, sums: FloatArray, least: FloatArray | float) -> tuple[IntArray, IntArray]:
    """Ranges of the deepest groups with probability `least` on the way down the likelier sides."""
    start, stop, _ = _descend(tree, sums, lambda a, b: _mass(sums, a, b) >= least)
    return start, stop


def first_without(tree: ClassTree, sums: FloatArray, leaf: IntArray) -> FloatArray:
    """Probability of the first group without a leaf, on the way down the likelier sides; 0 if all hold it."""
    start, stop, node = _descend(tree, sums, lambda a, b: (a <= leaf) & (leaf < b))
    split = tree.split[np.maximum(node, 0)]
    return np.where(node < 0, 0.0, np.maximum(_mass(sums, start, split), _mass(sums, split, stop)))


def _descend(
    tree: ClassTree, sums: FloatArray, goes_on: Callable[[IntArray, IntArray], BoolArray]
) -> tuple[IntArray, IntArray, IntArray]:
    """Go to the likelier child while the test of its range holds; return range and node, -1 at a leaf."""
    n_rows = len(sums)
    node = np.zeros(n_rows, dtype=np.intp)
    start, stop = np.zeros(n_rows, dtype=np.intp), np.full(n_rows, tree.n_classes)
    while True:
        at = np.maximum(node, 0)
        split = tree.split[at]
        is_left = _mass(sums, start, split) >= _mass(sums, split, stop)
        a, b = np.where(is_left, start, split), np.where(is_left, split, stop)
        moves = (node >= 0) & goes_on(a, b)
        if not moves.any():
            return start, stop, node
        start, stop = np.where(moves, a, start), np.where(moves, b, stop)
        child = np.maximum(np.where(is_left, tree.left[at], tree.right[at]), -1)
        node = np.where(moves, child, node)


def _mass(sums: FloatArray, start: IntArray, stop: IntArray) -> FloatArray:
    rows = np.arange(len(sums))
    mass: FloatArray = sums[rows, stop] - sums[rows, start]
    return mass
