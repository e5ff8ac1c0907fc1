"""Priors of nodes, and rules from counts to weights: MultinomialNB, ComplementNB and BernoulliNB."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from sklearn.naive_bayes import BernoulliNB, ComplementNB
from sklearn.utils.validation import check_non_negative

from dichotomies._common.parallel import Context, even_batches, run
from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies._kernels.composition import levels
from dichotomies._kernels.naive_bayes import BERNOULLI, MULTINOMIAL, NORMALISED
from dichotomies.learners.base import NodeScorer, Unsupported
from dichotomies.learners.naive_bayes.class_statistics import ClassStatistics
from dichotomies.persistence import savable
from dichotomies.rows import NodeTask


@dataclass(frozen=True)
class NodeTrainer:
    """The nodes of a task, trained from the statistics of the classes."""

    task: NodeTask
    known: ClassStatistics

    def weights(self, fold: int | None, context: Context) -> NodeScorer:
        """Train the nodes on all rows, or on all but those of a fold."""
        raise NotImplementedError

    def out_of_fold(
        self, X: Any, context: Context, *, with_full: bool
    ) -> tuple[FloatArray, NodeScorer | None]:
        """Out-of-fold scores of `task.own_pairs()` and, if `with_full`, the nodes trained on all rows."""
        pairs, folds = self.task.own_pairs(), self.task.rows.fold
        assert folds is not None
        node = np.repeat(np.arange(self.task.n_nodes), np.diff(pairs.offsets))
        fold_of_pair, out = folds[pairs.rows], np.full(len(node), np.nan)
        n_folds, title = self.known.n_folds, f"scoring out of fold at {self.task.n_nodes} nodes"
        for fold in range(n_folds):
            member = self.weights(fold, context)
            chosen = np.flatnonzero((fold_of_pair == fold) & member.is_trained[node])

            def score(batch: range, member: NodeScorer = member, chosen: IntArray = chosen) -> None:
                own = chosen[batch.start : batch.stop]
                out[own] = member.pair_log_odds(X, pairs.rows[own], node[own])

            batches = [(batch,) for batch in even_batches(np.ones_like(chosen), context.n_jobs, 1)]
            progress = context.progress(f"{title}, fold {fold + 1} of {n_folds}", fold, n_folds)
            run(score, batches, n_jobs=context.n_jobs, progress=progress, shared_memory=True)
        return out, self.weights(None, context) if with_full else None

    def without(self, values: FloatArray, fold: int | None) -> FloatArray:
        """Sum values by class and fold over all folds but one, giving values by leaf.

        The other folds are added: subtracting one from the total would leave rounding errors in place of
        exact zeros.
        """
        by_fold = values.reshape(-1, self.known.n_folds, *values.shape[1:])
        first, *others = (f for f in range(by_fold.shape[1]) if f != fold)
        total: FloatArray = by_fold[:, first].copy() if others else by_fold[:, first]
        for f in others:
            total += by_fold[:, f]
        return total[self.task.tree.leaf_order]

    def side_sums(self, leaves: FloatArray) -> FloatArray:
        """Add up values of leaves over the sides of each node: (n_leaves, n) to (n_nodes, 2, n).

        Nothing is subtracted, so that small sums are not lost in large ones.
        """
        tree, n_values = self.task.tree, leaves.shape[1]
        out = np.empty((tree.n_nodes, 2, n_values))
        for level in reversed(levels(tree.left, tree.right)):
            for side, child in enumerate((tree.left[level], tree.right[level])):
                of_side, is_leaf = out[level, side], child < 0
                of_side[is_leaf] = leaves[~child[is_leaf]]
                of_side[~is_leaf] = out[child[~is_leaf]].sum(axis=1)
        return self.task.of_nodes(out)

    def sides(self, fold: int | None) -> Sides:
        """Size and weight of each node's sides, without the rows of a fold."""
        leaves = np.stack([self.known.size.astype(np.float64), self.known.weight], axis=1)
        sums = self.side_sums(self.without(leaves, fold))
        return Sides(sums[:, :, 0], sums[:, :, 1])


@dataclass(frozen=True)
class Sides:
    """Number of rows, and their weight, of the left and right side of every node: (n_nodes, 2)."""

    size: FloatArray
    weight: FloatArray

    @cached_property
    def is_trained(self) -> BoolArray:
        """True where a node has rows on both sides."""
        return (self.size[:, 0] > 0) & (self.size[:, 1] > 0)

    @property
    def constant(self) -> FloatArray:
        """Log-odds of a node with rows on one side only, by Laplace's rule of succession."""
        return np.log((self.weight[:, 0] + 1) / (self.weight[:, 1] + 1))


#: Lower limit that scikit-learn puts on alpha, unless force_alpha is set.
_SMALLEST_ALPHA = 1e-10


@savable("prior")
@dataclass(frozen=True)
class Prior:
    """Source of a node's prior log-odds.

    Attributes
    ----------
    learned : bool
        Take them from the weights of the sides; otherwise they are 0. Ignored if `given`.
    given : float or None
        The user's log-odds of the side that contains the highest class code.
    """

    learned: bool = True
    given: float | None = None

    @classmethod
    def of(cls, given: Any, learned: bool = True) -> Prior:
        """Read scikit-learn's `class_prior` or `priors`."""
        if given is None:
            return cls(learned)
        if len(given) != 2:
            raise ValueError("Number of priors must match number of classes.")
        other, highest = np.asarray(given, dtype=np.float64)
        if not (other > 0 and highest > 0):
            raise Unsupported("a prior of zero leaves a side without probability")
        return cls(learned, float(np.log(highest) - np.log(other)))

    def log_odds(self, left_is_positive: BoolArray, sides: Sides) -> FloatArray:
        """Prior log-odds of going left, for each node; meaningless where a side is empty.

        Parameters
        ----------
        left_is_positive : (n_nodes,)
            True where the left side contains the highest class code.
        """
        if self.given is not None:
            return np.where(left_is_positive, self.given, -self.given)
        if not self.learned:
            return np.zeros(len(left_is_positive))
        weight = np.where(sides.size > 0, sides.weight, 1.0)
        return np.log(weight[:, 0]) - np.log(weight[:, 1])


@savable("smoothing", threshold=Real)  # saved only as part of Binarised, which has a threshold
@dataclass(frozen=True)
class Smoothing:
    """Rule by which an estimator turns counts into weights.

    Attributes
    ----------
    rule : int
        The formula, one of those in `_kernels.naive_bayes.sparse`.
    alpha : (1,) or (n_features,)
        Added to every count.
    prior : Prior
    threshold : float or None
        Features are binarised by it.
    """

    rule: int
    alpha: FloatArray
    prior: Prior
    threshold: float | None = None

    @classmethod
    def of(cls, estimator: Any) -> Smoothing:
        """Read a scikit-learn estimator."""
        alpha = _alpha_of(estimator)
        prior = Prior.of(estimator.class_prior, estimator.fit_prior)
        if isinstance(estimator, BernoulliNB):
            if len(alpha) > 1:
                raise Unsupported("BernoulliNB does not broadcast an array of alphas")
            return cls(BERNOULLI, alpha, prior, estimator.binarize)
        if isinstance(estimator, ComplementNB):
            if estimator.norm and len(alpha) > 1:
                raise Unsupported("norm=True with an array of alphas weighs every unseen feature differently")
            return cls(NORMALISED if estimator.norm else MULTINOMIAL, alpha, Prior(learned=False))
        return cls(MULTINOMIAL, alpha, prior)

    def alphas(self, n_features: int) -> FloatArray:
        """The alpha of each feature."""
        if len(self.alpha) not in (1, n_features):
            raise ValueError(
                f"When alpha is an array, it must have one value per feature: X has {n_features} features, "
                f"alpha {len(self.alpha)} values."
            )
        if self.rule == NORMALISED and n_features == 1:
            raise ValueError("ComplementNB(norm=True) cannot weigh a single feature: its weights are 0 / 0.")
        return np.broadcast_to(self.alpha, n_features).copy()

    def background(
        self, left_is_positive: BoolArray, sides: Sides, counts: FloatArray, alpha: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute the parameters of nodes that do not depend on which features are active.

        Parameters
        ----------
        left_is_positive : (n_nodes,)
            See `Prior.log_odds`.
        counts : (n_nodes, 2)
            Sum of all features over each side.

        Returns
        -------
        intercept, weight : (n_nodes,)
            The intercept if no feature were active, and the weight of every inactive feature.
        of_side : (n_nodes, 2)
            Totals of the sides that the rule needs, see `_kernels.naive_bayes.sparse.make_weights`.
        """
        prior = self.prior.log_odds(left_is_positive, sides)
        if self.rule == BERNOULLI:
            without = np.log(sides.weight + alpha[0])
            never = len(alpha) * (without - np.log(sides.weight + 2 * alpha[0]))
            return prior + never[:, 0] - never[:, 1], without[:, 1] - without[:, 0], sides.weight
        total = np.log(counts + alpha.sum())
        if self.rule == NORMALISED:
            of_side = len(alpha) * (np.log(alpha[0]) - total)
            return prior, np.zeros(len(prior)), of_side
        return prior, total[:, 1] - total[:, 0], counts

    def check(self, X: Matrix, name: str) -> None:
        """Raise if `X` holds values that the estimator of this name does not accept."""
        if self.rule != BERNOULLI:
            check_non_negative(X, f"{name} (input X)")
        elif self.threshold is None:
            values = X if isinstance(X, np.ndarray) else X.data
            if values.size and not 0 <= values.min() <= values.max() <= 1:
                raise ValueError(
                    f"{name}(binarize=None) needs features of 0 and 1, but X has values from {values.min()} "
                    f"to {values.max()}; set binarize to a threshold."
                )

    def binarised(self, X: Matrix, dtype: type = np.uint8) -> Matrix:
        """Binarise `X` if there is a threshold."""
        if self.threshold is None:
            return X
        if isinstance(X, np.ndarray):
            return (self.threshold < X).astype(dtype)
        if not X.has_canonical_format:  # duplicates must be summed before the comparison
            X = X.copy()
            X.sum_duplicates()
        data = (X.data > self.threshold).astype(dtype)
        return type(X)((data, X.indices, X.indptr), shape=X.shape)


def _alpha_of(estimator: Any) -> FloatArray:
    """Read and check alpha; raise it to the lower limit as scikit-learn does."""
    alpha: FloatArray = np.atleast_1d(np.asarray(estimator.alpha, dtype=np.float64))
    if alpha.ndim > 1:
        raise ValueError(f"alpha must be a number or one number per feature, got shape {alpha.shape}.")
    if not (alpha >= 0).all():
        raise ValueError("All values in alpha must be greater than 0.")
    if alpha.min() < _SMALLEST_ALPHA and not estimator.force_alpha:
        warnings.warn(
            "alpha too small will result in numeric errors, setting alpha = "
            f"{_SMALLEST_ALPHA:.1e}. Use `force_alpha=True` to keep alpha unchanged.",
            stacklevel=2,
        )
        alpha = np.maximum(alpha, _SMALLEST_ALPHA)
    if not alpha.all():
        raise Unsupported("alpha=0 leaves features that one side has not seen without probability")
    return alpha
