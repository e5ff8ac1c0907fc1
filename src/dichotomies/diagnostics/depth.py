"""The tree cut at each depth: confidence and accuracy before and after external calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dichotomies._common.chunks import for_each_chunk
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies._kernels.composition import class_log_proba
from dichotomies.diagnostics.evaluated_model import DiagnosticTable, EvaluatedModel, tree_classifier
from dichotomies.diagnostics.reliability import Reliability
from dichotomies.metrics.binning import bin_of, bin_sums, equal_width_edges
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


#: Number of parts of the rows for the jackknife.
_PARTS = 20

#: Default limit on the number of depths.
_MOST_DEPTHS = 64


@dataclass(frozen=True)
class CutStage:
    """The cut tree before or after external calibration; arrays of shape (n_depths,).

    Attributes
    ----------
    top_label : Reliability
        Curves, (n_depths, n_bins), of the most probable group of each row.
    pooled : Reliability
        Curves of all groups: every row counts once per group, with the group's probability as score and
        membership of its class as outcome.
    ece_top_label, ece_pooled : ndarray
        The expected calibration error of these curves.
    ece_top_label_error, ece_pooled_error, accuracy_error : ndarray
        Standard errors, by the jackknife over 20 parts of the rows; NaN if there are too few.
    """

    top_label: Reliability
    pooled: Reliability
    ece_top_label_error: FloatArray
    ece_pooled_error: FloatArray
    accuracy_error: FloatArray

    @property
    def accuracy(self) -> FloatArray:
        """Fraction of rows whose most probable group is the true one."""
        return self.top_label.accuracy

    @property
    def confidence(self) -> FloatArray:
        """Mean probability of the most probable group."""
        return self.top_label.confidence

    @property
    def ece_top_label(self) -> FloatArray:
        """Expected calibration error of the most probable group."""
        return self.top_label.ece

    @property
    def ece_pooled(self) -> FloatArray:
        """Expected calibration error over all groups of all rows."""
        return self.pooled.ece


@dataclass(frozen=True)
class DepthCuts:
    """The tree cut at each depth; made by `depth_cuts`.

    Attributes
    ----------
    depths : ndarray of shape (n_depths,)
        Depths of the cuts.
    n_groups : ndarray of shape (n_depths,)
        Number of groups of classes at each cut.
    before : CutStage
        Before external calibration.
    after : CutStage or None
        After external calibration: the probability of a group is the sum over its classes. None for a
        classifier without external calibration.
    """

    depths: IntArray
    n_groups: IntArray
    before: CutStage
    after: CutStage | None

    def to_table(self) -> DiagnosticTable:
        """Return a table with one row per depth."""
        columns: dict[str, Any] = {"depth": self.depths, "n_groups": self.n_groups}
        for name, stage in (("before", self.before), ("after", self.after)):
            if stage is not None:
                columns |= {
                    f"accuracy_{name}": stage.accuracy,
                    f"confidence_{name}": stage.confidence,
                    f"ece_top_label_{name}": stage.ece_top_label,
                    f"ece_pooled_{name}": stage.ece_pooled,
                }
        return DiagnosticTable(columns)


def depth_cuts(
    clf: Any,
    X: Matrix,
    y: npt.ArrayLike,
    *,
    depths: Sequence[int] | None = None,
    n_bins: int = 20,
    sample_weight: npt.ArrayLike | None = None,
) -> DepthCuts:
    """Cut the tree at each depth and evaluate it as a classifier of groups of classes.

    Parameters
    ----------
    clf : fitted NestedDichotomyClassifier, or a pipeline that ends in one
    X : array, CSR matrix or data frame of shape (n_rows, n_features)
        Held-out rows.
    y : array of shape (n_rows,)
        Their labels, all of them known to the classifier.
    depths : sequence of int, optional
        Depths of the cuts, in increasing order. By default all from 1, the root's two groups, to the depth of
        the tree, where every class is a group; 64 of them if the tree is deeper than that.
    n_bins : int
        Number of equal-width bins, for the curves and for the ECE.
    sample_weight : array of shape (n_rows,), optional
        Weight of each row.

    Returns
    -------
    DepthCuts

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.diagnostics import depth_cuts
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(structure="class-balanced", random_state=0)
    >>> clf = clf.fit(X[:1000] / 16, y[:1000])
    >>> depth_cuts(clf, X[1000:] / 16, y[1000:]).n_groups
    array([ 2,  4,  8, 10])
    """
    evaluated = EvaluatedModel.of(clf, X, y, sample_weight)
    tree = evaluated.tree
    at = _checked_depths(depths, tree)
    counter = _BinCounter(evaluated, at, equal_width_edges(n_bins))
    before, after = evaluated.sum_chunks(counter.count)
    return DepthCuts(
        depths=at,
        n_groups=np.array([len(tree.cut(depth)) for depth in at]),
        before=_stage(before),
        after=None if evaluated.external is None else _stage(after),
    )


def _checked_depths(depths: Sequence[int] | None, tree: ClassTree) -> IntArray:
    if depths is None:
        deepest = tree.max_depth
        steps = (
            np.geomspace(1, deepest, _MOST_DEPTHS) if deepest > _MOST_DEPTHS else np.arange(1, deepest + 1)
        )
        return np.unique(np.rint(steps).astype(np.intp))
    given = np.asarray(depths)
    at = given.astype(np.intp)
    if at.ndim != 1 or len(at) == 0 or (at != given).any() or (np.diff(at, prepend=-1) < 1).any():
        raise ValueError(f"depths must be different whole numbers in increasing order, got {depths}.")
    return at


class _BinCounter:
    """Bin counts of chunks of rows, by part of the rows and depth of the cut."""

    def __init__(self, evaluated: EvaluatedModel, depths: IntArray, edges: FloatArray) -> None:
        self._evaluated = evaluated
        self._leaf_of_row = evaluated.leaf_of_row
        self._branches = Branches(evaluated.tree)
        self._edges = edges
        self._shape = (_PARTS, len(depths), len(edges) - 1)
        n_nodes = evaluated.tree.n_nodes
        # a leaf is a group at all cuts from its depth on, a node only at the cut of its own depth
        self._slot = np.searchsorted(depths, self._branches.depth)
        is_leaf = np.arange(len(self._slot)) >= n_nodes
        on_cut = self._slot < len(depths)
        on_cut[on_cut] &= is_leaf[on_cut] | (depths[self._slot[on_cut]] == self._branches.depth[on_cut])
        self._nodes, self._leaves = np.flatnonzero(on_cut & ~is_leaf), np.flatnonzero(on_cut & is_leaf)

    def count(self, rows: slice, log_odds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return counts of shape (2, 3, n_parts, n_depths, n_bins) before and after external calibration."""
        before, after = self._evaluated.probabilities(log_odds)
        contained = self._branches.contain(self._leaf_of_row[rows])
        counts = self._stage(rows, before, contained)
        return counts, counts if after is None else self._stage(rows, after, contained)

    def _stage(self, rows: slice, proba: FloatArray, contained: Any) -> FloatArray:
        masses = self._branches.masses(proba)
        return np.stack([self._top_label(rows, masses, contained), self._pooled(rows, masses, contained)])

    def _pooled(self, rows: slice, masses: FloatArray, contained: Any) -> FloatArray:
        """Count all branches, each at the cuts where it is a group."""
        nodes, leaves = (
            self._binned(rows, self._slot[some, None], masses[some], contained[some])
            for some in (self._nodes, self._leaves)
        )
        return nodes + np.cumsum(leaves, axis=2)

    def _top_label(self, rows: slice, masses: FloatArray, contained: Any) -> FloatArray:
        """Count the most probable group of each row at each cut; ties go to the smaller first class code."""
        n_rows = masses.shape[1]
        leaf = _TopGroups(np.full(n_rows, -1.0), np.full(n_rows, len(masses)), np.zeros(n_rows, dtype=bool))
        tops = []
        for slot in range(self._shape[1]):
            leaf = leaf.maximum(self._best(self._leaves, slot, masses, contained))
            tops.append(leaf.maximum(self._best(self._nodes, slot, masses, contained)))
        slots = np.arange(len(tops))[:, None]
        return self._binned(rows, slots, np.stack([t.mass for t in tops]), np.stack([t.right for t in tops]))

    def _best(self, among: IntArray, slot: int, masses: FloatArray, contained: Any) -> _TopGroups | None:
        some = among[self._slot[among] == slot]
        if not len(some):
            return None
        some = some[np.argsort(self._branches.first_code[some])]
        best = some[masses[some].argmax(axis=0)]
        row = np.arange(masses.shape[1])
        return _TopGroups(masses[best, row], self._branches.first_code[best], contained[best, row])

    def _binned(self, rows: slice, slots: IntArray, score: FloatArray, hit: Any) -> FloatArray:
        """Put scores (m, n_rows) into the bins of the row's part and of the slot (m, 1)."""
        _, n_slots, n_bins = self._shape
        part = np.arange(rows.start, rows.stop) % _PARTS
        index = (part * n_slots + slots) * n_bins + bin_of(score, self._edges)
        weight = np.broadcast_to(self._evaluated.weight[rows], score.shape)
        sums = bin_sums(index.ravel(), score.ravel(), hit.ravel(), weight.ravel(), int(np.prod(self._shape)))
        return sums.reshape(3, *self._shape)


@dataclass(frozen=True)
class _TopGroups:
    """The most probable group of each row: its probability, first class code, and correctness."""

    mass: FloatArray
    first_code: IntArray
    right: Any

    def maximum(self, other: _TopGroups | None) -> _TopGroups:
        """Take the more probable of two groups for each row."""
        if other is None:
            return self
        better = other.mass > self.mass
        better |= (other.mass == self.mass) & (other.first_code < self.first_code)
        return _TopGroups(
            np.where(better, other.mass, self.mass),
            np.where(better, other.first_code, self.first_code),
            np.where(better, other.right, self.right),
        )


def _stage(counts: FloatArray) -> CutStage:
    """Compute curves and standard errors from counts of shape (2, 3, n_parts, n_depths, n_bins)."""
    top_label, pooled = (Reliability(*reading.sum(axis=1)) for reading in counts)
    without_one = [Reliability(*(reading.sum(axis=1, keepdims=True) - reading)) for reading in counts]
    return CutStage(
        top_label=top_label,
        pooled=pooled,
        ece_top_label_error=_jackknife(counts[0], without_one[0].ece),
        ece_pooled_error=_jackknife(counts[1], without_one[1].ece),
        accuracy_error=_jackknife(counts[0], without_one[0].accuracy),
    )


def _jackknife(counts: FloatArray, without_one: FloatArray) -> FloatArray:
    """Compute standard errors (n_depths,) from values (n_parts, n_depths) with one part left out in turn."""
    if (counts[0].sum(axis=-1) <= 0).any():  # a part without rows: fewer rows than parts
        return np.full(without_one.shape[1], np.nan)
    spread = ((without_one - without_one.mean(axis=0)) ** 2).sum(axis=0)
    error: FloatArray = np.sqrt((_PARTS - 1) / _PARTS * spread)
    return error
