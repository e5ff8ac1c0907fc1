"""Gradient boosting of small trees with Newton steps, for the rows of one node."""

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.boosting.ensembles import (
    FIXED_POINT_ONE,
    Boosting,
    Ensembles,
    LocalToGlobal,
    write_splits,
)
from dichotomies._kernels.boosting.splits import HESSIAN_EPSILON
from dichotomies._kernels.boosting.trees import BinnedRows, Growth, Tree, grow_tree
from dichotomies._kernels.compile import kernel


@kernel
def fit_gradient_boosting(
    rows: BinnedRows,
    to_global: LocalToGlobal,
    weight: FloatArray,
    boosting: Boosting,
    tree: Tree,
    k: int,
    out: Ensembles,
) -> None:
    """Fit gradient boosting of the logistic loss: every tree is a Newton step.

    Gradients are rounded to single precision, as in scikit-learn.
    """
    n_rows, n_negative = len(weight), rows.n_negative
    scale = FIXED_POINT_ONE / (n_rows * weight.max())
    sums = np.zeros(2, dtype=np.int64)
    for i in range(n_rows):
        sums[1 if i >= n_negative else 0] += np.int64(weight[i] * scale + 0.5)
    mean = sums[1] / (sums[0] + sums[1])
    out.base[k] = np.log(mean / (1.0 - mean))
    score = np.full(n_rows, out.base[k])
    growth = Growth(
        boosting.max_depth,
        boosting.min_rows,
        True,
        1.0 / scale,
        boosting.l2_regularization,
        boosting.min_hessian,
    )
    for t in range(boosting.n_estimators):
        for i in range(n_rows):
            tail = np.exp(-abs(score[i]))
            likelier = 1.0 / (1.0 + tail)
            p = likelier if score[i] >= 0.0 else tail * likelier
            q = tail * likelier if score[i] >= 0.0 else likelier
            gradient = -q if i >= n_negative else p
            rows.amounts[0, i] = np.int64(np.rint(np.float32(weight[i] * gradient) * scale))
            rows.amounts[1, i] = np.int64(np.rint(np.float32(weight[i] * p * q) * scale))
        grow_tree(rows, growth, t, tree)
        if tree.feature[0] < 0:
            break  # no later tree would find a split either
        write_splits(tree, to_global, k, t, out)
        step_leaves(tree, growth, boosting.learning_rate, out.value[k, t], score)
        out.n_trees[k] = t + 1


@kernel
def step_leaves(
    tree: Tree, growth: Growth, learning_rate: float, value: FloatArray, score: FloatArray
) -> None:
    """Write the Newton step of every leaf, and add it to the scores of its rows."""
    for leaf in range(len(value)):
        value[leaf] = 0.0
        if tree.feature[leaf] < 0 and tree.end[leaf] > tree.begin[leaf]:
            gradient, hessian = growth.unit * tree.sums[leaf, 0], growth.unit * tree.sums[leaf, 1]
            step = -gradient / (hessian + growth.l2_regularization + HESSIAN_EPSILON)
            value[leaf] = learning_rate * step
            for place in range(tree.begin[leaf], tree.end[leaf]):
                score[tree.order[place]] += value[leaf]
