"""Groups of classes: the tree cut at a depth as a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dichotomies._common.chunks import for_each_chunk
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies._kernels.composition import class_log_proba
from dichotomies.diagnostics.evaluated_model import tree_classifier
from dichotomies.tree import ClassTree
from dichotomies.tree.class_tree import Cut


class Branches:
    """All subtrees of a tree, those of inner nodes and then the leaves: depth, classes, probability."""

    def __init__(self, tree: ClassTree) -> None:
        self.tree = tree
        leaves = np.arange(tree.n_classes)
        self.depth: IntArray = np.concatenate([tree.depth, tree.leaf_depth])
        self.start: IntArray = np.concatenate([tree.start, leaves])
        self.stop: IntArray = np.concatenate([tree.stop, leaves + 1])
        self._children = [np.where(side < 0, tree.n_nodes + ~side, side) for side in (tree.left, tree.right)]
        self.first_code: IntArray = np.concatenate([np.zeros(tree.n_nodes, dtype=np.intp), tree.leaf_order])
        self._combine_bottom_up(self.first_code, np.minimum)

    def masses(self, proba: FloatArray) -> FloatArray:
        """Probability of each branch, shape (n_branches, n_rows), from rows of class probabilities."""
        masses = np.empty((len(self.depth), len(proba)))
        np.take(proba.T, self.tree.leaf_order, axis=0, out=masses[self.tree.n_nodes :])
        self._combine_bottom_up(masses, np.add)
        return masses

    def contain(self, leaf_of_row: IntArray) -> BoolArray:
        """Membership of each row's class in each branch, shape (n_branches, n_rows)."""
        contained: BoolArray = (self.start[:, None] <= leaf_of_row) & (leaf_of_row < self.stop[:, None])
        return contained

    def _combine_bottom_up(self, values: Any, combine: np.ufunc) -> None:
        """Set the value of every node to the combination of its children's, level by level."""
        edges = np.searchsorted(self.tree.depth, np.arange(self.tree.max_depth + 1))
        for depth in range(self.tree.max_depth - 1, -1, -1):
            level = slice(edges[depth], edges[depth + 1])
            left, right = (child[level] for child in self._children)
            values[level] = combine(values[left], values[right])


@dataclass(frozen=True)
class GroupPredictions:
    """The most probable group of classes of each row, at one cut; made by `predict_groups`.

    Attributes
    ----------
    cut : Cut
        The groups; their classes are ``tree.leaf_labels[cut.start[g]:cut.stop[g]]``.
    group : ndarray of shape (n_rows,)
        The most probable group, as an index into the cut.
    probability : ndarray of shape (n_rows,)
        Its probability.
    """

    cut: Cut
    group: IntArray
    probability: FloatArray


def predict_groups(clf: Any, X: Matrix, depth: int, *, external: bool = True) -> GroupPredictions:
    """Predict groups of classes, those that are not separated above a depth.

    Parameters
    ----------
    clf : fitted NestedDichotomyClassifier, or a pipeline that ends in one
    X : array, CSR matrix or data frame of shape (n_rows, n_features)
    depth : int
        Depth of the cut: 1 leaves the root's two groups, the depth of the tree all classes.
    external : bool
        Apply external calibration to class probabilities before they are summed.

    Returns
    -------
    GroupPredictions

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.diagnostics import predict_groups
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(structure=[0, [1, 2]], random_state=0).fit(X, y)
    >>> predict_groups(clf, X[[0, 60, 120]], depth=1).group  # 0, or one of 1 and 2
    array([0, 1, 1])
    """
    clf, X = tree_classifier(clf, X)
    model = clf.model_
    tree, calibrator = model.tree, model.external if external else None
    cut = tree.cut(depth)
    group, probability = np.empty(X.shape[0], dtype=np.intp), np.empty(X.shape[0])

    def keep(rows: slice, log_odds: FloatArray) -> None:
        log_proba = class_log_proba(tree, log_odds)
        if calibrator is not None:
            calibrator.predict_log_proba(log_proba, out=log_proba)
        groups = np.add.reduceat(np.exp(log_proba)[:, tree.leaf_order], cut.start, axis=1)
        group[rows], probability[rows] = groups.argmax(axis=1), groups.max(axis=1)

    for_each_chunk(tree.n_nodes, model.node_scorer, X, keep, clf.n_jobs)
    return GroupPredictions(cut, group, probability)
