"""AdaBoost of small trees, discrete (SAMME) and real (SAMME.R), for the rows of one node."""

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.boosting.ensembles import (
    EPSILON,
    FIXED_POINT_ONE,
    REAL,
    Boosting,
    Ensembles,
    LocalToGlobal,
    write_splits,
)
from dichotomies._kernels.boosting.trees import BinnedRows, Growth, Tree, grow_tree
from dichotomies._kernels.compile import kernel


@kernel
def fit_adaboost(
    rows: BinnedRows,
    to_global: LocalToGlobal,
    weight: FloatArray,
    boosting: Boosting,
    tree: Tree,
    k: int,
    out: Ensembles,
) -> None:
    """Fit AdaBoost: every tree is grown on weights that emphasise the errors of the trees before it.

    SAMME and SAMME.R of Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost* (2009), for two classes.
    """
    growth = Growth(boosting.max_depth, boosting.min_rows, False, 1.0, 0.0, 0.0)
    real = boosting.kind == REAL
    factors = np.empty((len(tree.feature), 2))
    votes = 0.0
    normalise(weight)
    for t in range(boosting.n_estimators):
        for i in range(len(weight)):
            weight[i] = max(weight[i], EPSILON)
            rows.amounts[0, i] = rows.amounts[1, i] = np.int64(weight[i] * FIXED_POINT_ONE + 0.5)
        grow_tree(rows, growth, t, tree)
        wrong, total = error_weight(tree)
        error = wrong / total
        if error >= 0.5 and not real:
            break
        vote = 1.0 if real or error <= 0.0 else boosting.learning_rate * np.log((1.0 - error) / error)
        write_splits(tree, to_global, k, t, out)
        ada_values(tree, vote, real, out.value[k, t])
        votes += vote
        out.n_trees[k] = t + 1
        if error <= 0.0 or t == boosting.n_estimators - 1:
            break
        if not update_weights(rows, tree, out.value[k, t], boosting, factors, weight):
            break
    out.base[k] = 0.0
    out.scale[k] = (1.0 if real else 2.0) / max(votes, EPSILON)


@kernel
def normalise(weight: FloatArray) -> None:
    """Scale the weights to sum to 1, independently of their order."""
    scale = FIXED_POINT_ONE / (len(weight) * weight.max())
    total = np.int64(0)
    for i in range(len(weight)):
        total += np.int64(weight[i] * scale + 0.5)
    for i in range(len(weight)):
        weight[i] = weight[i] * scale / total


@kernel
def error_weight(tree: Tree) -> tuple[float, float]:
    """Weight of the misclassified rows, and of all rows."""
    wrong = np.int64(0)
    for leaf in range(len(tree.feature)):
        if tree.feature[leaf] < 0 and tree.end[leaf] > tree.begin[leaf]:
            wrong += min(tree.sums[leaf, 0], tree.sums[leaf, 1])
    return float(wrong), float(tree.sums[0, 0] + tree.sums[0, 1])


@kernel
def ada_values(tree: Tree, vote: float, real: bool, value: FloatArray) -> None:
    """Write the vote, or the log-odds, of every leaf."""
    for leaf in range(len(value)):
        value[leaf] = 0.0
        if tree.feature[leaf] < 0 and tree.end[leaf] > tree.begin[leaf]:
            negative, positive = float(tree.sums[leaf, 0]), float(tree.sums[leaf, 1])
            if real:
                total = negative + positive
                value[leaf] = np.log(max(positive / total, EPSILON)) - np.log(max(negative / total, EPSILON))
            else:
                value[leaf] = vote if positive > negative else -vote


@kernel
def update_weights(
    rows: BinnedRows,
    tree: Tree,
    value: FloatArray,
    boosting: Boosting,
    factors: FloatArray,
    weight: FloatArray,
) -> bool:
    """Apply the AdaBoost weight update leaf by leaf, and normalise.

    The new sum is taken over leaves rather than rows, so that the order of rows does not matter.

    Returns
    -------
    bool
        False if the weights overflow.
    """
    new_total = 0.0
    for leaf in range(len(value)):
        if tree.feature[leaf] < 0 and tree.end[leaf] > tree.begin[leaf]:
            if boosting.kind == REAL:
                step = 0.5 * boosting.learning_rate * value[leaf]
                factors[leaf, 0], factors[leaf, 1] = np.exp(step), np.exp(-step)
            else:
                factors[leaf, 0] = np.exp(max(value[leaf], 0.0))
                factors[leaf, 1] = np.exp(max(-value[leaf], 0.0))
            new_total += factors[leaf, 0] * tree.sums[leaf, 0] + factors[leaf, 1] * tree.sums[leaf, 1]
    new_total /= FIXED_POINT_ONE
    if not (np.isfinite(new_total) and new_total > 0.0):
        return False
    for leaf in range(len(value)):
        if tree.feature[leaf] < 0:
            for place in range(tree.begin[leaf], tree.end[leaf]):
                row = tree.order[place]
                side = 1 if row >= rows.n_negative else 0
                weight[row] *= factors[leaf, side] / new_total
    return True
