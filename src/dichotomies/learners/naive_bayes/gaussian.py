"""Gaussian features: moments of each class, combined up the tree, and scores by matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._kernels.naive_bayes import gaussian as kernels
from dichotomies._parallel import even_batches, run
from dichotomies.learners.base import Unsupported
from dichotomies.learners.naive_bayes.priors import Prior
from dichotomies.persistence import savable
from dichotomies.persistence.checks import expect_array

if TYPE_CHECKING:
    from dichotomies._typing import BoolArray, FloatArray, IntArray, Matrix
    from dichotomies.learners.base import Effort, NodeTask
    from dichotomies.learners.naive_bayes.groups import Groups, Sides

#: Squared distance, in half variances, of a mean from the origin beyond which a square is not expanded: the
#: products would lose as many digits.
_STEEPEST = 3e4

#: Rows among which the medians are sought that the features are shifted by.
_MEDIAN_ROWS = 2_000


class Moments(NamedTuple):
    """Weight, means and centred second moments, one row per group of rows.

    Attributes
    ----------
    total : (n_groups,)
    mean, moment : (n_groups, n_features)
    """

    total: FloatArray
    mean: FloatArray
    moment: FloatArray

    @classmethod
    def zero(cls, n_groups: int, n_features: int) -> Moments:
        """No rows at all."""
        return cls(np.zeros(n_groups), np.zeros((n_groups, n_features)), np.zeros((n_groups, n_features)))

    @classmethod
    def of(cls, groups: Groups, weight: FloatArray, X: Matrix, n_jobs: int | None) -> Moments:
        """Of the rows of each group, which are looked at twice in a row."""
        moments = cls.zero(len(groups.size), X.shape[1])

        def add(batch: range) -> None:
            rows = groups.rows, weight, groups.offsets
            kernels.group_moments(X, *rows, batch.start, batch.stop, *moments)

        batches = [(batch,) for batch in even_batches(groups.size, n_jobs)]
        run(add, batches, n_jobs=n_jobs, shared_memory=True)
        return moments

    def leaves(self, groups: Groups, fold: int | None) -> Moments:
        """Of each leaf, without a fold."""
        if groups.n_folds == 1:
            return self
        leaves = Moments.zero(groups.tree.n_classes, self.mean.shape[1])
        kernels.leaf_moments(groups.n_folds, -1 if fold is None else fold, *self, *leaves)
        return leaves

    def nodes(self, groups: Groups) -> Moments:
        """Of each node, where these are of its leaves."""
        nodes = Moments.zero(groups.tree.n_nodes, self.mean.shape[1])
        kernels.node_moments(groups.tree.left, groups.tree.right, *self, *nodes)
        return nodes


@savable("gaussian-nodes")
@dataclass(frozen=True)
class GaussianNodes:
    """Nodes with a Gaussian for each side and feature.

    Attributes
    ----------
    mean, half_precision : (n_nodes, 2, n_features)
        Of the left and right side; half the inverse of the variance.
    constant : (n_nodes,)
        The log-odds at both means at once, that is, all that does not depend on the features.
    is_trained : (n_nodes,)
    shift : (n_features,)
        A typical row, which features are taken relative to.
    """

    mean: FloatArray
    half_precision: FloatArray
    constant: FloatArray
    is_trained: BoolArray
    shift: FloatArray

    @cached_property
    def expanded(self) -> Expanded:
        """The scores as quadratic functions, for matrix products."""
        n_nodes, _, n_features = self.mean.shape
        coefficients = np.empty((2 * n_features, n_nodes))
        constant, n_steep = self.constant.copy(), np.empty(n_features, dtype=np.int64)
        given = self.mean, self.half_precision, self.shift, _STEEPEST
        kernels.expand(*given, coefficients[:n_features], coefficients[n_features:], constant, n_steep)
        offsets = np.concatenate([[0], np.cumsum(n_steep)])
        node, center, slope = (
            np.empty(offsets[-1], dtype=np.int32),
            np.empty(offsets[-1]),
            np.empty(offsets[-1]),
        )
        kernels.list_steep(*given, offsets, node, center, slope)
        return Expanded(coefficients, constant, offsets, node, center, slope)

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node: one matrix product of squares and features."""
        n_features = len(self.shift)
        powers = np.empty((len(X), 2 * n_features))
        np.subtract(X, self.shift, out=powers[:, n_features:])
        np.square(powers[:, n_features:], out=powers[:, :n_features])
        out: FloatArray = powers @ self.expanded.coefficients
        out += self.expanded.constant
        if len(self.expanded.steep_node):
            kernels.add_steep(X, *self.expanded[2:], out)
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        out = np.empty(len(rows))
        kernels.score_pairs(X, rows, nodes, self.mean, self.half_precision, self.constant, out)
        return out

    def check_fits(self, n_nodes: int, n_features: int) -> None:
        """Refuse arrays of other shapes; see `NodeScorer`."""
        for name in ("mean", "half_precision"):
            expect_array(getattr(self, name), "float", (n_nodes, 2, n_features), name)
        expect_array(self.constant, "float", (n_nodes,), "constant")
        expect_array(self.is_trained, "boolean", (n_nodes,), "is_trained")
        expect_array(self.shift, "float", (n_features,), "shift")


class Expanded(NamedTuple):
    """Scores of nodes as quadratic functions of shifted features, but for squares too steep for it.

    Attributes
    ----------
    coefficients : (2 * n_features, n_nodes)
        Of the squares, then of the features themselves.
    constant : (n_nodes,)
    steep_offsets : (n_features + 1,)
        Where the steep squares of each feature begin, and the end.
    steep_node, steep_center, steep_slope : (n_steep,)
        Each adds ``slope * (x - center)**2`` to the score at its node, `x` not shifted.
    """

    coefficients: FloatArray
    constant: FloatArray
    steep_offsets: IntArray
    steep_node: IntArray
    steep_center: FloatArray
    steep_slope: FloatArray


@dataclass(frozen=True)
class GaussianRule:
    """What GaussianNB is told."""

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
class GaussianMoments:
    """Moments of each group.

    Attributes
    ----------
    weighted, unweighted : Moments
        The same where there are no sample weights.
    """

    rule: GaussianRule
    groups: Groups
    weighted: Moments
    unweighted: Moments
    shift: FloatArray

    @classmethod
    def of(cls, rule: GaussianRule, groups: Groups, X: Matrix, effort: Effort) -> GaussianMoments:
        """Look at every row."""
        weighted = unweighted = Moments.of(groups, groups.weight, X, effort.n_jobs)
        if not (groups.weight == 1).all():
            unweighted = Moments.of(groups, np.ones(len(groups.rows)), X, effort.n_jobs)
        some = X[:: max(1, len(X) // _MEDIAN_ROWS)]
        return cls(rule, groups, weighted, unweighted, np.median(some, axis=0).astype(np.float64))

    def weights(
        self,
        fold: int | None = None,
        effort: Effort | None = None,  # noqa: ARG002 - as of counts
        title: str = "",  # noqa: ARG002
    ) -> GaussianNodes:
        """The nodes, learned from all rows or from all but those of a fold."""
        sides = self.groups.sides(fold)
        leaves = self.weighted.leaves(self.groups, fold)
        nodes = leaves.nodes(self.groups)
        floor = self._floor(nodes, fold)
        shape = len(floor), 2, leaves.mean.shape[1]
        mean, half_precision = np.empty(shape), np.empty(shape)
        log_density = np.empty((2, len(floor)))
        tree = self.groups.tree
        for side, child in enumerate((tree.left, tree.right)):
            out = mean[:, side], half_precision[:, side], log_density[side]
            kernels.side_parameters(child, *leaves, *nodes, floor, sides.is_trained, *out)
        return self._nodes(sides, mean, half_precision, log_density[0] - log_density[1])

    def _nodes(
        self, sides: Sides, mean: FloatArray, half_precision: FloatArray, log_density_ratio: FloatArray
    ) -> GaussianNodes:
        prior = self.rule.prior.log_odds(self.groups.tree, sides)
        constant = np.where(sides.is_trained, prior + log_density_ratio, sides.constant)
        return GaussianNodes(mean, half_precision, constant, sides.is_trained, self.shift)

    def _floor(self, nodes: Moments, fold: int | None) -> FloatArray:
        """What is added to variances: a part of the node's largest, by rows, not by their weight.

        Where all rows of a node are the same, any variance will do, because both sides have the same mean:
        the answer is the prior.
        """
        if self.unweighted is not self.weighted:
            nodes = self.unweighted.leaves(self.groups, fold).nodes(self.groups)
        largest = np.empty(len(nodes.total))
        kernels.largest_variances(nodes.total, nodes.moment, largest)
        floor: FloatArray = self.rule.var_smoothing * largest
        return np.where(floor > 0, floor, 1.0)

    def out_of_fold(self, task: NodeTask, X: Matrix, folds: IntArray, effort: Effort) -> FloatArray:
        """Scores of `task.own_pairs()` by models that have not seen the row's fold."""
        pairs = np.concatenate([[0], np.cumsum(task.node_size)])
        out = np.full(pairs[-1], np.nan)
        first = task.leaf_offset[task.tree.start]
        batches = [(batch,) for batch in even_batches(task.node_size, effort.n_jobs)]
        for fold in range(self.groups.n_folds):
            member = self.weights(fold)

            def score(batch: range, fold: int = fold, member: GaussianNodes = member) -> None:
                mean, half_precision, constant = member.mean, member.half_precision, member.constant
                given = fold, mean, half_precision, constant, member.is_trained, batch.start, batch.stop
                kernels.score_own_rows(X, task.row_order, folds, *given, first, pairs, out)

            progress = effort.progress(f"scoring fold {fold + 1} of {self.groups.n_folds}")
            run(score, batches, n_jobs=effort.n_jobs, progress=progress, shared_memory=True)
        return out
