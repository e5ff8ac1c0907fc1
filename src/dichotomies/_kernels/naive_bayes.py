"""Scores of Gaussian naive Bayes: at every node a quadratic function of each feature."""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies._kernels.compile import kernel, vector_kernel
from dichotomies._kernels.elementary import copy


class Quadratic(NamedTuple):
    """Scores of nodes, or of one node, as quadratic functions of each feature.

    A feature `x` adds ``(square * y + linear) * y`` with ``y = x - center``.

    Attributes
    ----------
    center, square, linear : (n_nodes, n_features)
    """

    center: FloatArray
    square: FloatArray
    linear: FloatArray


@kernel
def row_of(scores: Quadratic, k: int) -> Quadratic:
    """Return the terms of one node."""
    return Quadratic(scores.center[k], scores.square[k], scores.linear[k])


@vector_kernel
def score_one(x: Matrix, node: Quadratic) -> float:
    """Score a row at a node, without the constant."""
    center, square, linear = node
    total = 0.0
    for j in range(len(center)):
        y = x[j] - center[j]
        total += (square[j] * y + linear[j]) * y
    return total


@score_one.plainly
def _score_one(x: Matrix, node: Quadratic) -> float:
    y = x - node.center
    return float(((node.square * y + node.linear) * y).sum())


@kernel
def score_pairs(
    X: Matrix, rows: IntArray, nodes: IntArray, scores: Quadratic, constant: FloatArray, out: FloatArray
) -> None:
    """Score row ``rows[i]`` at node ``nodes[i]``."""
    for i in range(len(rows)):
        k = nodes[i]
        out[i] = constant[k] + score_one(X[rows[i]], row_of(scores, k))


@kernel
def add_steep(X: Matrix, offsets: IntArray, node: IntArray, steep: Quadratic, out: FloatArray) -> None:
    """Add terms of some nodes, stored feature by feature, to the scores (n_rows, n_nodes)."""
    center, square, linear = steep
    for i in range(len(X)):
        row = out[i]
        for j in range(X.shape[1]):
            x = X[i, j]
            for place in range(offsets[j], offsets[j + 1]):
                y = x - center[place]
                row[node[place]] += (square[place] * y + linear[place]) * y


MULTINOMIAL = 0  # also ComplementNB: the complement of one side is the other side
NORMALISED = 1  # ComplementNB(norm=True)
BERNOULLI = 2

ROUNDING = 1e-9  # relative rounding error by which a count may exceed its number of rows

LEAVES = -2  # a visit that pushes a range of leaves
MERGED = -1  # a visit to a node that is merged and not trained


class Counts(NamedTuple):
    """Active features of each group of rows, ``leaf * n_folds + fold``, and their sums over its rows."""

    n_folds: int
    offsets: IntArray
    feature: Any
    total: FloatArray


class Visits(NamedTuple):
    """Leaves and nodes in post-order: the node to be trained, `MERGED` or `LEAVES`; its range of leaves."""

    node: IntArray
    start: IntArray
    stop: IntArray


class Models(NamedTuple):
    """Models of each node, one for each fold that is left out.

    Attributes
    ----------
    rule, alpha : int, (n_features,)
    left_out : (n_models,)
        The fold that each model leaves out: ascending numbers, and after them perhaps -1 for none.
    of_side : (n_models, n_nodes, 2)
        Totals of the sides that the rule needs, see `make_weights`.
    intercept, background : (n_models, n_nodes)
        Parameters if no feature were active; updated.
    is_trained : (n_models, n_nodes)
        Where False, scores are NaN.
    """

    rule: int
    alpha: FloatArray
    left_out: IntArray
    of_side: FloatArray
    intercept: FloatArray
    background: FloatArray
    is_trained: BoolArray


class SparseRows(NamedTuple):
    """CSR rows sorted by leaf, with their folds and sums, and the start of each node's scores."""

    data: FloatArray
    indices: IntArray
    indptr: IntArray
    leaf_offset: IntArray
    folds: IntArray
    total: FloatArray
    pair_offset: IntArray


class KeptWeights(NamedTuple):
    """Active features of the last model of each node, and their number; empty if not wanted."""

    sizes: IntArray
    feature: Any
    value: FloatArray


class Workspace(NamedTuple):
    """A stack of subtrees whose parents are yet to be visited, and scratch memory.

    Attributes
    ----------
    cursor : (2,)
        Number of pending subtrees, and of slots that were assigned so far.
    offsets, feature, total : (n_pending + 1,), (n_active,), (n_models, n_active)
        Active features of the pending subtrees, with their sums over the training folds of each model.
    place : (n_features,)
        Value of ``cursor[1]`` when a feature was last assigned a slot. Minus the value when the present node
        was begun this is its slot; if negative, it has none yet.
    slots : (n_features,)
        The slots of the features that are being added.
    right : (n_models, n_features)
        Sums over the right side, by slot.
    weights, table : (n_features,), (n_models, n_features)
        Weights of a model by slot, and of each model by feature (0 between nodes).
    """

    cursor: IntArray
    offsets: IntArray
    feature: Any
    total: FloatArray
    place: IntArray
    slots: Any
    right: FloatArray
    weights: FloatArray
    table: FloatArray

    @classmethod
    def blank(cls, n_models: int, n_features: int, n_pending: int, n_active: int) -> "Workspace":
        """Allocate memory for so many pending subtrees with so many active features."""
        return cls(
            np.zeros(2, dtype=np.intp),
            np.zeros(n_pending + 1, dtype=np.intp),
            np.empty(n_active, dtype=np.int32),
            np.empty((n_models, n_active)),
            np.full(n_features, -1),
            np.empty(n_features, dtype=np.int32),
            np.empty((n_models, n_features)),
            np.empty(n_features),
            np.zeros((n_models, n_features)),
        )


@kernel
def add_slots(features: Any, begin: int, base: int, end: int, space: Workspace) -> int:
    """Find the slots of features, and append new ones to the subtree at `begin`; return the end."""
    for i in range(len(features)):
        j = np.uintp(features[i])  # unsigned indices need no test for negative ones
        if space.place[j] < base:
            space.place[j] = end
            space.feature[begin + end - base] = j
            end += 1
        space.slots[i] = space.place[j] - base
    return end


@kernel
def push_leaves(first: int, last: int, counts: Counts, left_out: IntArray, space: Workspace) -> None:
    """Push the sums of a range of leaves, for each model without the fold that it leaves out."""
    base, begin = space.cursor[1], space.offsets[space.cursor[0]]
    end = base
    for group in range(first * counts.n_folds, last * counts.n_folds):
        own, n = slice(counts.offsets[group], counts.offsets[group + 1]), end - base
        end = add_slots(counts.feature[own], begin, base, end, space)
        values, slots = counts.total[own], space.slots
        for model in range(len(left_out)):
            sums = space.total[model, begin:]
            for s in range(n, end - base):
                sums[s] = 0.0
            if left_out[model] != group % counts.n_folds:
                for i in range(len(values)):
                    sums[np.uintp(slots[i])] += values[i]
    space.cursor[0], space.cursor[1] = space.cursor[0] + 1, end
    space.offsets[space.cursor[0]] = begin + end - base


@kernel
def join_sides(space: Workspace) -> int:
    """Join the two last subtrees to the node above them; return its number of active features.

    The sums over the left side stay where they are, those over the right side move to `space.right`.
    """
    space.cursor[0] -= 1
    top, base = space.cursor[0], space.cursor[1]
    begin, middle, stop = space.offsets[top - 1], space.offsets[top], space.offsets[top + 1]
    n_left = middle - begin
    for s in range(n_left):
        space.place[np.uintp(space.feature[begin + s])] = base + s
    end = add_slots(space.feature[middle:stop], begin, base, base + n_left, space)
    n, slots = end - base, space.slots
    for model in range(len(space.total)):
        left, right = space.total[model, begin:], space.right[model]
        for s in range(n):
            right[s] = 0.0
        for i in range(stop - middle):
            right[np.uintp(slots[i])] = left[n_left + i]
        for s in range(n_left, n):
            left[s] = 0.0
    space.offsets[top], space.cursor[1] = begin + n, end
    return int(n)


@kernel
def absent(count: float, rows: float) -> float:
    """Weight of the rows without the feature; a negative rounding error is raised to 0."""
    rest = rows - count
    return 0.0 if -ROUNDING * rows < rest < 0.0 else rest


@kernel
def make_weights(
    rule: int,
    alpha: FloatArray,
    left: FloatArray,
    right: FloatArray,
    n_features: int,
    of_side: FloatArray,
    out: FloatArray,
) -> tuple[float, float]:
    """Write the weights of a node's active features minus the background, given their counts.

    Parameters
    ----------
    of_side : (2,)
        For Bernoulli the number of rows of each side, for the normalised complement the sum over all features
        of ``log P(feature)`` if none were active.

    Returns
    -------
    float, float
        Corrections to be added to the intercept and to the background.
    """
    a, b = of_side[0], of_side[1]
    if rule == NORMALISED:
        sum_left = sum_right = 0.0
        for s in range(len(out)):
            sum_left += np.log1p(left[s] / alpha[s])
            sum_right += np.log1p(right[s] / alpha[s])
        sum_left, sum_right = sum_left + a, sum_right + b
        for s in range(len(out)):
            out[s] = np.log1p(right[s] / alpha[s]) / sum_right - np.log1p(left[s] / alpha[s]) / sum_left
        return 0.0, b / n_features / sum_right - a / n_features / sum_left
    intercept = 0.0
    for s in range(len(out)):
        out[s] = (left[s] + alpha[s]) / (right[s] + alpha[s])
    if rule == BERNOULLI:
        for s in range(len(out)):
            never_left = (absent(left[s], a) + alpha[s]) / (a + alpha[s])
            never_right = (absent(right[s], b) + alpha[s]) / (b + alpha[s])
            out[s] *= never_right / never_left
            intercept += np.log(never_left) - np.log(never_right)
    for s in range(len(out)):
        out[s] = np.log(out[s])
    return intercept, 0.0


@kernel
def train_node(k: int, n: int, models: Models, space: Workspace) -> None:
    """Make the models of node `k` from the sums of its `n` active features.

    Afterwards `space.weights` are those of the last model.
    """
    begin = space.offsets[space.cursor[0] - 1]
    active, weights = space.feature[begin : begin + n], space.weights[:n]
    alpha = models.alpha[active]
    for model in range(len(models.left_out)):
        sides = space.total[model, begin : begin + n], space.right[model, :n]
        of_side = models.of_side[model, k]
        more = make_weights(models.rule, alpha, *sides, len(models.alpha), of_side, weights)
        models.intercept[model, k] += more[0]
        models.background[model, k] += more[1]
        if models.left_out[model] >= 0:
            scatter(active, weights, space.table[model])


@kernel
def scatter(active: Any, weights: FloatArray, table: FloatArray) -> None:
    """Write the weights of active features into `table`, by feature."""
    for s in range(len(active)):
        table[np.uintp(active[s])] = weights[s]


@kernel
def score_rows(
    k: int, first: int, last: int, models: Models, rows: SparseRows, table: FloatArray, out: FloatArray
) -> None:
    """Score the rows of node `k`, from `first` to `last`, each by the model that leaves out its fold."""
    for row in range(first, last):
        model = rows.folds[row] - models.left_out[0]
        if model < 0 or model >= len(models.left_out) or models.left_out[model] < 0:
            continue
        total = 0.0
        own = table[model]
        for entry in range(rows.indptr[row], rows.indptr[row + 1]):
            place = np.uintp(entry)
            total += rows.data[place] * own[np.uintp(rows.indices[place])]
        score = models.intercept[model, k] + models.background[model, k] * rows.total[row] + total
        out[row - first] = score if models.is_trained[model, k] else np.nan


@kernel
def visit_nodes(
    visits: Visits,
    counts: Counts,
    models: Models,
    rows: SparseRows,
    space: Workspace,
    kept: KeptWeights,
    out: FloatArray,
) -> int:
    """Train nodes, each after those below it; return the number of weights kept.

    Subtrees share many active features, so merging them is cheaper than summing the leaves of every node.

    Parameters
    ----------
    out : (n_pairs,)
        Written unless it is empty: the scores of all nodes' rows, each by the model without its fold.
    """
    end = 0
    for visit in range(len(visits.node)):
        k, span = visits.node[visit], (visits.start[visit], visits.stop[visit])
        if k == LEAVES:
            push_leaves(span[0], span[1], counts, models.left_out, space)
            continue
        n, begin = join_sides(space), space.offsets[space.cursor[0] - 1]
        if k >= 0:
            train_node(k, n, models, space)
            if len(kept.feature) > 0 and models.is_trained[-1, k]:
                kept.sizes[k] = n
                copy(space.feature[begin : begin + n], kept.feature[end:])
                copy(space.weights[:n], kept.value[end:])
                end += n
            if len(out) > 0:
                first, last = rows.leaf_offset[span[0]], rows.leaf_offset[span[1]]
                own = out[rows.pair_offset[k] : rows.pair_offset[k + 1]]
                score_rows(k, first, last, models, rows, space.table, own)
                space.weights[:n] = 0.0
                for model in range(len(models.left_out)):
                    scatter(space.feature[begin : begin + n], space.weights[:n], space.table[model])
        for model in range(len(space.total)):
            both, right = space.total[model, begin : begin + n], space.right[model]
            for s in range(n):
                both[s] += right[s]
    return end
