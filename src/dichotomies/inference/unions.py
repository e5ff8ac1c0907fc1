"""`UnionAnswers`: the smallest union of a few groups of the tree that is probable enough."""

from __future__ import annotations

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray, LabelArray, Matrix
from dichotomies._kernels.unions import Shape, last_without, smallest_unions
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.tree_answers import GroupAnswers, group_name, node_masses
from dichotomies.tree import ClassTree


class UnionAnswers(GroupAnswers):
    """Some groups of classes for each row, each those below a node of the tree, or one class.

    Attributes
    ----------
    tree : ClassTree
    start, stop : ndarray of shape (n_rows, n_groups)
        Ranges of leaf positions of the groups, from left to right; empty where fewer are needed.
    proba : ndarray of shape (n_rows,)
        Probability of all groups of a row together.
    """

    @property
    def size(self) -> IntArray:
        """Number of classes in each answer."""
        size: IntArray = (self.stop - self.start).sum(axis=1)
        return size

    @property
    def n_groups(self) -> IntArray:
        """Number of groups in each answer."""
        return np.asarray((self.stop > self.start).sum(axis=1))

    def groups(self, row: int) -> list[LabelArray]:
        """The classes of each group of a row's answer."""
        ranges = zip(self.start[row].tolist(), self.stop[row].tolist(), strict=True)
        return [self.tree.leaf_labels[a:b] for a, b in ranges if b > a]

    def labels(self, row: int) -> LabelArray:
        """All classes of a row's answer, from left to right."""
        return np.concatenate(self.groups(row))

    @property
    def names(self) -> list[str]:
        """Names of each answer's groups, see `group_name`, joined by "or"."""
        return [
            " or ".join(group_name(group.tolist()) for group in self.groups(row)) for row in range(len(self))
        ]

    def holds(self, y: LabelArray) -> BoolArray:
        """Mask of the rows whose label is in the answer."""
        leaf = self._leaf_of(y)[:, None]
        return np.asarray(((self.start <= leaf) & (leaf < self.stop)).any(axis=1))


def confident_unions(
    model: FittedForest, X: Matrix, most: int, confidence: float, n_jobs: int | None = None
) -> UnionAnswers:
    """The union of at most `most` groups with the fewest classes that is at least so probable."""
    tree, shape = model.tree, _shape(model.tree, most)
    start, stop = np.zeros((2, X.shape[0], most), dtype=np.intp)
    proba = np.empty(X.shape[0])

    def predict(rows: slice) -> None:
        sums = node_masses(tree, np.exp(model.log_proba(X[rows])))
        stack = np.empty((tree.n_nodes + 2, 3), dtype=np.intp)
        smallest_unions(shape, sums, confidence, *_tables(shape), stack, start[rows], stop[rows])
        masses = np.take_along_axis(sums, stop[rows], axis=1) - np.take_along_axis(sums, start[rows], axis=1)
        proba[rows] = masses.sum(axis=1)

    model.in_chunks(X, predict, n_jobs)
    return UnionAnswers(tree, start, stop, np.clip(proba, 0.0, 1.0))


def wrong_unions(tree: ClassTree, proba: FloatArray, leaf: IntArray, most: int) -> FloatArray:
    """Greatest probability at which the smallest union lacks a leaf, for 1 to `most` groups, per row."""
    shape, out = _shape(tree, most), np.empty((len(proba), most))
    last_without(shape, node_masses(tree, proba), leaf.astype(np.intp), *_tables(shape), out)
    return out


def _shape(tree: ClassTree, most: int) -> Shape:
    sizes = most * (tree.stop - tree.start + 1)
    return Shape(tree.left, tree.right, tree.start, tree.stop, np.concatenate([[0], np.cumsum(sizes)]))


def _tables(shape: Shape) -> tuple[FloatArray, BoolArray]:
    return np.empty(shape.offsets[-1]), np.empty(shape.offsets[-1], dtype=np.bool_)
