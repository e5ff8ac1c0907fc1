"""Gaussian naive Bayes: moments of each class, combined up the tree, and scores by matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.best_of import gather
from dichotomies._common.parallel import Context
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies._kernels.composition import levels
from dichotomies._kernels.naive_bayes import Quadratic, add_steep, score_pairs
from dichotomies._kernels.node_scores import QuadraticNodes
from dichotomies.learners.base import Unsupported
from dichotomies.learners.naive_bayes.class_statistics import ClassStatistics, Moments
from dichotomies.learners.naive_bayes.smoothing import NodeTrainer, Prior
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array
from dichotomies.rows import NodeTask
from dichotomies.tree import ClassTree

#: Largest term of an expanded square: a squared distance of mean and origin, in half variances. Beyond it,
#: cancellation would lose too many digits.
_STEEPEST = 3e4

#: Number of rows from which the medians are computed that features are shifted by.
_MEDIAN_ROWS = 500

#: Nodes, and terms of rows, up to which matrix products at all nodes do: no kernel is compiled.
_FEW_NODES, _FEW_TERMS = 32, 2**22

#: Terms of nodes, or of leaves, that are computed at once.
_BLOCK = 2**15


@savable(
    "gaussian-nodes",
    center=Array("float", "n_nodes", "n_features"),
    square=Array("float", "n_nodes", "n_features"),
    linear=Array("float", "n_nodes", "n_features"),
    constant=Array("float", "n_nodes"),
    is_trained=Array("boolean", "n_nodes"),
    shift=Array("float", "n_features"),
)
@dataclass(frozen=True)
class GaussianNodes:
    """Nodes with a Gaussian for each side and feature.

    Attributes
    ----------
    center, square, linear : (n_nodes, n_features)
        Quadratic terms of the log-odds, see `Quadratic`.
    constant : (n_nodes,)
        The constant term.
    is_trained : (n_nodes,)
    shift : (n_features,)
        A typical row, subtracted from features before matrix products.
    """

    center: FloatArray
    square: FloatArray
    linear: FloatArray
    constant: FloatArray
    is_trained: BoolArray
    shift: FloatArray

    @classmethod
    def gathered(cls, parts: Sequence[GaussianNodes], nodes: IntArray) -> GaussianNodes:
        """Take nodes of several parts, which are numbered one after the other."""
        names = "center", "square", "linear", "constant", "is_trained"
        taken = {name: gather([getattr(part, name) for part in parts], nodes) for name in names}
        return cls(**taken, shift=parts[0].shift)

    @property
    def scores(self) -> Quadratic:
        """The quadratic terms in the form kernels take."""
        return Quadratic(self.center, self.square, self.linear)

    @cached_property
    def expanded(self) -> Expanded:
        """The scores as quadratic functions, for matrix products."""
        away, q, p = self.center - self.shift, self.square, self.linear
        # where the center is many standard deviations away, terms would cancel to rounding errors
        is_steep = np.maximum(np.abs(q * away), np.abs(p)) * np.abs(away) > _STEEPEST
        terms = q, p - 2.0 * q * away, (q * away - p) * away
        square, linear, constant = (np.where(is_steep, 0.0, term) for term in terms)
        # C order: how BLAS sums a row of the product then depends less on how many rows there are
        coefficients = np.ascontiguousarray(np.concatenate([square.T, linear.T]))
        offsets = np.concatenate([[0], np.cumsum(is_steep.sum(axis=0))])
        feature, node = np.nonzero(is_steep.T)
        steep = Quadratic(*(each[node, feature] for each in self.scores))
        return Expanded(coefficients, self.constant + constant.sum(axis=1), offsets, node, steep)

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node: one matrix product of squares and features."""
        n_features = len(self.shift)
        powers = np.empty((len(X), 2 * n_features))
        np.subtract(X, self.shift, out=powers[:, n_features:])
        np.square(powers[:, n_features:], out=powers[:, :n_features])
        out: FloatArray = powers @ self.expanded.coefficients
        out += self.expanded.constant
        offsets, node, steep = self.expanded[2:]
        if len(X) * len(node) > _FEW_TERMS:  # half of the time of what follows, on images of 1,623 characters
            add_steep(X, offsets, node, steep, out)
            return out
        for j in np.flatnonzero(np.diff(offsets)):
            own = slice(offsets[j], offsets[j + 1])
            y = X[:, j, None] - steep.center[own]
            out[:, node[own]] += (steep.square[own] * y + steep.linear[own]) * y
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        if len(self.constant) <= _FEW_NODES and len(rows) * len(self.shift) <= _FEW_TERMS:
            distinct, place = np.unique(rows, return_inverse=True)
            return self.log_odds(X[distinct])[place, nodes]
        out = np.empty(len(rows))
        score_pairs(X, rows, nodes, self.scores, self.constant, out)
        return out

    def search_nodes(self, tree: ClassTree) -> QuadraticNodes:  # noqa: ARG002 - as `SparseWeights`
        """The nodes in the form that searching takes."""
        return QuadraticNodes(self.constant, self.scores)

    def search_rows(self, X: Matrix) -> tuple[Any, ...]:
        """Rows in the form that searching takes."""
        return (X,)


class Expanded(NamedTuple):
    """Scores of nodes as expanded quadratic functions of shifted features, with steep terms kept apart.

    Attributes
    ----------
    coefficients : (2 * n_features, n_nodes)
        Of the squares, then of the features themselves.
    constant : (n_nodes,)
    steep_offsets : (n_features + 1,)
        Start of each feature's steep terms, and the end.
    steep_node : (n_steep,)
        The node of each steep term.
    steep : Quadratic
        The terms; their features are not shifted.
    """

    coefficients: FloatArray
    constant: FloatArray
    steep_offsets: IntArray
    steep_node: IntArray
    steep: Quadratic


@dataclass(frozen=True)
class GaussianRule:
    """Parameters of GaussianNB."""

    prior: Prior
    var_smoothing: float

    @classmethod
    def of(cls, estimator: Any) -> GaussianRule:
        """Read a scikit-learn estimator."""
        if estimator.priors is not None:
            priors = np.asarray(estimator.priors, dtype=np.float64)
            if len(priors) == 2 and not np.isclose(priors.sum(), 1.0):
                raise ValueError("The sum of the priors should be 1.")
            if (priors < 0).any():
                raise ValueError("Priors must be non-negative.")
        if estimator.var_smoothing == 0:
            raise Unsupported("var_smoothing=0 leaves features that are constant on a side without variance")
        return cls(Prior.of(estimator.priors), float(estimator.var_smoothing))


@dataclass(frozen=True)
class GaussianTrainer(NodeTrainer):
    """Nodes from the moments of their leaves.

    Attributes
    ----------
    shift : (n_features,)
        See `GaussianNodes`.
    """

    rule: GaussianRule
    shift: FloatArray

    @classmethod
    def of(cls, task: NodeTask, known: ClassStatistics, rule: GaussianRule, X: Matrix) -> GaussianTrainer:
        """Shift features by their medians over some of the rows."""
        typical = np.median(X[:: max(1, len(X) // _MEDIAN_ROWS)], axis=0)
        return cls(task, known, rule, typical.astype(np.float64))

    def weights(self, fold: int | None, context: Context) -> GaussianNodes:  # noqa: ARG002 - as of the others
        """Train the nodes on all rows, or on all but those of a fold."""
        task, tree, sides = self.task, self.task.tree, self.sides(fold)
        weighted, unweighted = self.known.moments(0), self.known.moments(1)
        moments = self._combined(unweighted, fold)
        floor = self._floor(moments)
        if weighted.mean is not unweighted.mean:
            moments = self._combined(weighted, fold)
        terms, constant = Quadratic(*np.empty((3, task.n_nodes, len(self.shift)))), np.empty(task.n_nodes)
        left, right = (task.of_nodes(_place(child, tree.n_classes)) for child in (tree.left, tree.right))
        for own in _blocks(task.n_nodes, len(self.shift)):
            one, two = (Moments(*(each[side[own]] for each in moments)) for side in (left, right))
            some = Quadratic(*(each[own] for each in terms))
            with np.errstate(all="ignore"):  # of nodes with rows on one side only
                constant[own] = _quadratic(one, two, floor[own, None], some)
            for each in some:
                each[~sides.is_trained[own]] = 0.0
        constant += self.rule.prior.log_odds(task.left_is_positive, sides)
        constant = np.where(sides.is_trained, constant, sides.constant)
        return GaussianNodes(*terms, constant, sides.is_trained, self.shift)

    def _combined(self, groups: Moments, fold: int | None) -> Moments:
        """Moments of the leaves and then of the nodes of the tree, leaving out a fold."""
        tree, n_folds, n_leaves = self.task.tree, self.known.n_folds, self.task.tree.n_classes
        shape = n_leaves + tree.n_nodes, len(self.shift)
        out = Moments(np.empty(shape[0]), np.empty(shape), np.empty(shape))
        is_kept, position = (np.arange(n_folds) != fold).astype(np.float64), tree.leaf_position
        for own in _blocks(n_leaves, n_folds * len(self.shift)):
            parts = Moments(*(each.reshape(n_leaves, n_folds, *each.shape[1:])[own] for each in groups))
            for table, values in zip(out, _joined(parts, is_kept), strict=True):
                table[position[own]] = values
        left, right = _place(tree.left, n_leaves), _place(tree.right, n_leaves)
        for level in reversed(levels(tree.left, tree.right)):
            one, two = (Moments(*(each[side[level]] for each in out)) for side in (left, right))
            for table, values in zip(out, one.plus(two), strict=True):
                table[n_leaves + level.start : n_leaves + level.stop] = values
        return out

    def _floor(self, moments: Moments) -> FloatArray:
        """Compute the smoothing added to variances: `var_smoothing` times the node's largest, unweighted.

        If all rows of a node are equal, any positive variance gives the prior, because both means are equal.
        """
        first = self.task.tree.n_classes
        largest = moments.moment[first:].max(axis=1) / np.maximum(moments.total[first:], 1.0)
        floor: FloatArray = self.task.of_nodes(self.rule.var_smoothing * largest)
        return np.where(floor > 0, floor, 1.0)


def _place(child: IntArray, n_leaves: int) -> IntArray:
    """Place of each child among leaves and nodes; a child that is a leaf is ``~position``."""
    return np.where(child < 0, ~child, n_leaves + child)


def _blocks(n: int, size: int) -> list[slice]:
    """Slices of `n` things with `size` numbers each that stay in the caches."""
    step = max(1, _BLOCK // size)
    return [slice(i, min(n, i + step)) for i in range(0, n, step)]


def _joined(folds: Moments, is_kept: FloatArray) -> Moments:
    """Moments of the unions of some folds: (n_classes, n_folds, ...) to (n_classes, ...)."""
    total = folds.total * is_kept
    both = total.sum(axis=1)
    share = total / np.where(both > 0, both, 1.0)[:, None]
    center = np.einsum("kf,kfj->kj", share, folds.mean)
    apart = folds.mean - center[:, None]
    apart *= apart
    within = np.einsum("f,kfj->kj", is_kept, folds.moment)
    within += np.einsum("kf,kfj->kj", total, apart)
    return Moments(both, center, within)


def _quadratic(left: Moments, right: Moments, floor: FloatArray, out: Quadratic) -> FloatArray:
    """Write the terms of nodes, given the moments of both sides; return the constant without the prior.

    ``other_half * (x - other_mean)**2 - half * (x - mean)**2`` as a function of ``x - center``. The center is
    the mean of the steeper square, which then has no linear or constant term. No term exceeds a few times the
    larger of the two squares, for any `x`, so rounding errors are no larger than those of the squares.
    """
    half, other_half = (side.moment / side.total[:, None] for side in (left, right))
    for each in (half, other_half):
        each += floor
        np.divide(0.5, each, out=each)
    is_steeper, distance = half >= other_half, right.mean - left.mean
    slope = np.minimum(half, other_half) * distance
    out.center[:] = np.where(is_steeper, left.mean, right.mean)
    np.subtract(other_half, half, out=out.square)
    np.multiply(slope, -2.0, out=out.linear)
    slope *= distance
    half /= other_half
    np.negative(slope, out=slope, where=~is_steeper)
    constant: FloatArray = 0.5 * np.log(half, out=half).sum(axis=1) + slope.sum(axis=1)
    return constant
