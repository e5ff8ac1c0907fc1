"""Gaussian naive Bayes: moments of each class, combined up the tree, and scores by matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dichotomies._common.gathering import gather
from dichotomies._common.parallel import Context, even_batches, run
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies._kernels.compile import is_small
from dichotomies._kernels.naive_bayes import gaussian as kernels
from dichotomies._kernels.naive_bayes.class_counts import GroupedRows
from dichotomies._kernels.naive_bayes.gaussian import Quadratic
from dichotomies._kernels.naive_bayes.moments import Moments, group_moments, leaf_moments, node_moments
from dichotomies._kernels.search.node_scores import QuadraticNodes
from dichotomies.learners.base import Unsupported
from dichotomies.learners.naive_bayes.class_statistics import ClassStatistics
from dichotomies.learners.naive_bayes.groups import Groups
from dichotomies.learners.naive_bayes.smoothing import Prior
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array
from dichotomies.rows import NodeTask
from dichotomies.tree import ClassTree

#: Largest term of an expanded square: a squared distance of mean and origin, in half variances. Beyond it,
#: cancellation would lose too many digits.
_STEEPEST = 3e4

#: Number of rows from which the medians are computed that features are shifted by.
_MEDIAN_ROWS = 500


def _moments_of(rows: GroupedRows, X: Matrix, n_jobs: int | None) -> Moments:
    """Compute the moments of each group in two passes over its rows."""
    size = np.diff(rows.offsets)
    shape = len(size), X.shape[1]
    moments = Moments(np.zeros(len(size)), np.zeros(shape), np.zeros(shape))

    add_moments = group_moments.when(is_small(len(X), 3e-8 * X.size + 3e-5 * len(size)))

    def add(batch: range) -> None:
        add_moments(X, rows, batch.start, batch.stop, moments)

    batches = [(batch,) for batch in even_batches(size, n_jobs)]
    run(add, batches, n_jobs=n_jobs, shared_memory=True)
    return moments


def _typical(X: Matrix) -> FloatArray:
    """Median of each feature over some of the rows."""
    typical: FloatArray = np.median(X[:: max(1, len(X) // _MEDIAN_ROWS)], axis=0).astype(np.float64)
    return typical


def _allocate(n_groups: int, n_features: int) -> Moments:
    """Allocate moments without initialising them."""
    return Moments(np.empty(n_groups), *np.empty((2, n_groups, n_features)))


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
        is_steep = kernels.are_steep(self.scores, self.shift, _STEEPEST)
        coefficients, constant = kernels.expand(self.scores, self.shift, is_steep)
        offsets = np.concatenate([[0], np.cumsum(is_steep.sum(axis=0))])
        feature, node = np.nonzero(is_steep.T)
        steep = Quadratic(*(each[node, feature] for each in self.scores))
        return Expanded(coefficients, self.constant + constant, offsets, node.astype(np.int32), steep)

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node: one matrix product of squares and features."""
        n_features = len(self.shift)
        powers = np.empty((len(X), 2 * n_features))
        np.subtract(X, self.shift, out=powers[:, n_features:])
        np.square(powers[:, n_features:], out=powers[:, :n_features])
        out: FloatArray = powers @ self.expanded.coefficients
        out += self.expanded.constant
        if len(self.expanded.steep_node):
            seconds = 2e-8 * len(X) * len(self.expanded.steep_node) + 1e-5 * n_features
            small = is_small(len(X), seconds, is_answer=True)
            kernels.add_steep.when(small)(X, *self.expanded[2:], out)
        return out

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        out = np.empty(len(rows))
        small = is_small(len(rows), 4e-8 * len(rows) * len(self.shift))
        kernels.score_pairs.when(small)(X, rows, nodes, self.scores, self.constant, out)
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
    def of(
        cls, rule: GaussianRule, groups: Groups, rows: GroupedRows, X: Matrix, context: Context
    ) -> GaussianMoments:
        """Compute the moments of the rows."""
        weighted = unweighted = _moments_of(rows, X, context.n_jobs)
        if not (rows.weight == 1).all():
            unweighted = _moments_of(rows._replace(weight=np.ones(len(rows.rows))), X, context.n_jobs)
        return cls(rule, groups, weighted, unweighted, _typical(X))

    @classmethod
    def restored(
        cls, rule: GaussianRule, groups: Groups, known: ClassStatistics, X: Matrix
    ) -> GaussianMoments:
        """Take over statistics in the order of the groups; `X` are some of their rows."""
        return cls(rule, groups, known.moments(0), known.moments(1), _typical(X))

    kind: ClassVar = "moments"

    def tables(self) -> list[Any]:
        """See `ClassStatistics`."""
        return [*self.weighted, *self.unweighted]

    def of_task(self, task: NodeTask) -> GaussianMoments:
        """Reorder the moments to the leaves of another tree."""
        groups, now = self.groups.of_task(task)
        weighted = unweighted = Moments(*(values[now] for values in self.weighted))
        if self.weighted is not self.unweighted:
            unweighted = Moments(*(values[now] for values in self.unweighted))
        return replace(self, groups=groups, weighted=weighted, unweighted=unweighted)

    def weights(self, fold: int | None, context: Context) -> GaussianNodes:  # noqa: ARG002 - as SparseCounts
        """Train the nodes on all rows, or on all but those of a fold."""
        return self._nodes(fold, Quadratic(*np.empty((3, self.groups.task.n_nodes, len(self.shift)))))

    def _nodes(self, fold: int | None, scores: Quadratic) -> GaussianNodes:
        """Train the nodes as `weights` does, writing into `scores`."""
        task, sides = self.groups.task, self.groups.sides(fold)
        leaves, nodes = self._combined(self.unweighted, fold)
        floor = task.of_nodes(self._floor(nodes))
        if self.weighted is not self.unweighted:
            leaves, nodes = self._combined(self.weighted, fold)
        constant = np.empty(len(floor))
        left, right = task.of_nodes(task.tree.left), task.of_nodes(task.tree.right)
        given = leaves, nodes, floor, sides.is_trained
        kernels.node_parameters.when(self._is_small)(left, right, *given, scores, constant)
        constant += self.rule.prior.log_odds(task.left_is_positive, sides)
        constant = np.where(sides.is_trained, constant, sides.constant)
        return GaussianNodes(*scores, constant, sides.is_trained, self.shift)

    @property
    def _is_small(self) -> bool:
        """Return True if plain code is to combine the moments and to make nodes of them."""
        n_groups, task = len(self.groups.size), self.groups.task
        return is_small(len(task.rows), (5e-5 + 2e-8 * len(self.shift)) * (n_groups + task.n_nodes))

    @cached_property
    def _leaves_and_nodes(self) -> tuple[Moments, Moments]:
        """Memory that all folds share, because allocating it costs more than the sums."""
        tree, n_features = self.groups.task.tree, len(self.shift)
        return _allocate(tree.n_classes, n_features), _allocate(tree.n_nodes, n_features)

    def _combined(self, moments: Moments, fold: int | None) -> tuple[Moments, Moments]:
        """Combine the moments of groups into those of leaves and nodes, leaving out a fold."""
        leaves, nodes = self._leaves_and_nodes
        if self.groups.n_folds > 1:
            left_out = -1 if fold is None else fold
            leaf_moments.when(self._is_small)(self.groups.n_folds, left_out, moments, leaves)
        else:
            leaves = moments
        tree = self.groups.task.tree
        node_moments.when(self._is_small)(tree.left, tree.right, leaves, nodes)
        return leaves, nodes

    def _floor(self, nodes: Moments) -> FloatArray:
        """Compute the smoothing added to variances: `var_smoothing` times the node's largest, unweighted.

        If all rows of a node are equal, any positive variance gives the prior, because both means are equal.
        """
        largest = nodes.moment.max(axis=1) / np.maximum(nodes.total, 1.0)
        floor: FloatArray = self.rule.var_smoothing * largest
        return np.where(floor > 0, floor, 1.0)

    def out_of_fold(
        self, task: NodeTask, X: Matrix, context: Context, *, with_full: bool
    ) -> tuple[FloatArray, GaussianNodes | None]:
        """Out-of-fold scores of `task.own_pairs()` and, where `with_full`, the nodes trained on all rows."""
        folds = task.rows.fold
        assert folds is not None
        pairs = np.concatenate([[0], np.cumsum(task.node_size)])
        out = np.full(pairs[-1], np.nan)
        places = *_nodes_above(task), pairs[:-1] - task.leaf_offset[task.start]
        batches = [(batch,) for batch in even_batches(np.diff(task.leaf_offset), context.n_jobs)]
        room = Quadratic(*np.empty((3, task.n_nodes, X.shape[1])))
        seconds = 2e-8 * len(out) * X.shape[1] + 5e-5 * task.n_nodes
        score_rows = kernels.score_own_rows.when(is_small(len(X), seconds))
        for fold in range(self.groups.n_folds):
            member = self._nodes(fold, room)

            def score(batch: range, fold: int = fold, member: GaussianNodes = member) -> None:
                rows = X, task.row_order, folds, fold
                nodes = member.scores, member.constant, member.is_trained
                span = batch.start, batch.stop
                score_rows(*rows, *nodes, task.leaf_offset, *places, *span, out)

            progress = context.progress(
                f"scoring fold {fold + 1} of {self.groups.n_folds}", fold, self.groups.n_folds
            )
            run(score, batches, n_jobs=context.n_jobs, progress=progress, shared_memory=True)
        return out, self.weights(None, context) if with_full else None


def _nodes_above(task: NodeTask) -> tuple[IntArray, IntArray]:
    """Return the nearest trained ancestor of each leaf and of each trained node; -1 if there is none."""
    tree = task.tree
    above_leaf = np.empty(tree.n_classes, dtype=np.intp)
    for children in (tree.left, tree.right):
        nodes = np.flatnonzero(children < 0)
        above_leaf[~children[nodes]] = nodes
    if task.nodes is None:
        return above_leaf, tree.parent
    here = np.full(tree.n_nodes, -1, dtype=np.intp)  # nearest trained node at or above each node
    here[task.nodes] = np.arange(task.n_nodes)
    for node in np.flatnonzero(here < 0).tolist():  # parents come first
        here[node] = here[tree.parent[node]] if node else -1
    above = np.where(task.nodes > 0, here[tree.parent[task.nodes]], -1)
    return here[above_leaf], above
