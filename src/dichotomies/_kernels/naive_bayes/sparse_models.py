"""Models of sparse rows at every node: one per left-out fold, used for out-of-fold scores; one is kept."""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import copy
from dichotomies._kernels.naive_bayes.sparse_nodes import make_weights
from dichotomies._kernels.naive_bayes.sparse_sides import (
    Counts,
    NodeRange,
    Subtrees,
    Workspace,
    add_sides,
    merge_sides,
    push_subtree,
)


class Visits(NamedTuple):
    """Nodes in post-order.

    Attributes
    ----------
    node : (n_visits,)
        Index among the nodes to be trained, or -1 if its sides are only merged.
    given : (n_visits,)
        Index among the subtrees that were merged before, or -1.
    start, split, stop, left_is_pending, right_is_pending : (n_visits,)
        See `NodeRange`.
    """

    node: IntArray
    given: IntArray
    start: IntArray
    split: IntArray
    stop: IntArray
    left_is_pending: BoolArray
    right_is_pending: BoolArray


class Models(NamedTuple):
    """Parameters of each node's models that do not depend on active features.

    Attributes
    ----------
    left_out : (n_models,)
        The fold that each model leaves out, or -1.
    of_side : (n_nodes, n_models, 2)
        See `above_background`; for the normalised complement, the sums if no feature were active.
    intercept, background : (n_nodes, n_models)
        The background is the weight of inactive features. Both are updated, if the rule requires it.
    is_trained : (n_nodes, n_models)
        Where False, scores are NaN.
    """

    left_out: IntArray
    of_side: FloatArray
    intercept: FloatArray
    background: FloatArray
    is_trained: BoolArray


class KeptWeights(NamedTuple):
    """The active features of the last model of each node.

    Attributes
    ----------
    sizes : (n_nodes,)
        Number of active features.
    feature, value : (capacity,)
        A feature, and its weight minus the background.
    """

    sizes: IntArray
    feature: Any
    value: FloatArray


class SparseRows(NamedTuple):
    """CSR rows sorted by leaf, so that the rows of a node are contiguous.

    Attributes
    ----------
    leaf_offset : (n_leaves + 1,)
        Start of each leaf's rows, and the end.
    folds, total : (n_rows,)
        The fold of each row, and the sum of its features.
    pair_offset : (n_nodes + 1,)
        Start of the scores of each node's rows, and the end.
    all_counted : bool
        True if all rows have positive weight, so that all features of a node's rows are active there.
    """

    data: FloatArray
    indices: IntArray
    indptr: IntArray
    leaf_offset: IntArray
    folds: IntArray
    total: FloatArray
    pair_offset: IntArray
    all_counted: bool


@kernel
def scatter(active: Any, weights: FloatArray, left_out: IntArray, table: FloatArray) -> None:
    """Scatter the weights of active features into `table`, for models that leave out a fold."""
    for model in range(len(left_out)):
        if left_out[model] >= 0:
            own, out = weights[model], table[model]
            for s in range(len(active)):
                out[np.uintp(active[s])] = own[s]


@kernel
def product(entry: int, data: FloatArray, indices: Any, table: FloatArray, model: int) -> float:
    """Multiply a feature of a row by its weight; unsigned indices need no test for negative ones."""
    place = np.uintp(entry)
    return float(data[place] * table[np.uintp(model), np.uintp(indices[place])])


@kernel
def score_rows(
    first: int,
    last: int,
    rows: SparseRows,
    table: FloatArray,
    intercept: FloatArray,
    background: FloatArray,
    is_trained: BoolArray,
    out: FloatArray,
) -> None:
    """Score the rows from `first` to `last`, each by the model that leaves out its fold.

    Products are added in four independent sums. Compiler vectorisation, which would gather weights, and a
    function per row are both slower.
    """
    data, indices = rows.data, rows.indices
    for row in range(first, last):
        f = rows.folds[row]
        if not is_trained[f]:
            out[row - first] = np.nan
            continue
        a = b = c = d = 0.0
        begin, end = rows.indptr[row], rows.indptr[row + 1]
        rest = end - (end - begin) % 4
        for e in range(begin, rest, 4):
            a += product(e, data, indices, table, f)
            b += product(e + 1, data, indices, table, f)
            c += product(e + 2, data, indices, table, f)
            d += product(e + 3, data, indices, table, f)
        for e in range(rest, end):
            a += product(e, data, indices, table, f)
        out[row - first] = intercept[f] + background[f] * rows.total[row] + ((a + b) + (c + d))


@kernel
def keep_weights(k: int, n: int, end: int, models: Models, space: Workspace, kept: KeptWeights) -> int:
    """Append the last model of node `k` at position `end`; return the new end."""
    kept.sizes[k] = 0
    if len(kept.feature) == 0 or not models.is_trained[k, -1]:
        return end
    kept.sizes[k] = n
    copy(space.active[:n], kept.feature[end:])
    copy(space.weights[-1, :n], kept.value[end:])
    return end + n


@kernel
def make_models(rule: int, alpha: FloatArray, k: int, n: int, models: Models, space: Workspace) -> None:
    """Make the models of node `k` from the sums of its `n` active features."""
    own_alpha = alpha[space.active[:n]]
    for model in range(len(models.left_out)):
        sides = space.left[model, :n], space.right[model, :n]
        of_side, weights = models.of_side[k, model], space.weights[model, :n]
        more = make_weights(rule, own_alpha, *sides, len(alpha), of_side, weights)
        models.intercept[k, model] += more[0]
        models.background[k, model] += more[1]


@kernel
def score_node(
    k: int, n: int, node: NodeRange, models: Models, rows: SparseRows, space: Workspace, out: FloatArray
) -> None:
    """Compute the out-of-fold scores of the rows of node `k`, which has `n` active features."""
    first, last = rows.leaf_offset[node.start], rows.leaf_offset[node.stop]
    scatter(space.active[:n], space.weights, models.left_out, space.table)
    own = models.intercept[k], models.background[k], models.is_trained[k]
    score_rows(first, last, rows, space.table, *own, out)
    if not rows.all_counted:
        space.weights[:, :n] = 0.0
        scatter(space.active[:n], space.weights, models.left_out, space.table)


@kernel
def visit_nodes(
    rule: int,
    alpha: FloatArray,
    counts: Counts,
    visits: Visits,
    subtrees: Subtrees,
    models: Models,
    rows: SparseRows,
    begin: int,
    first: int,
    last: int,
    space: Workspace,
    kept: KeptWeights,
    out: FloatArray,
) -> int:
    """Train the nodes visited from `first` to `last`; return the number of weights kept.

    Parameters
    ----------
    alpha : (n_features,)
    subtrees : Subtrees
        Subtrees that were merged before.
    begin : int
        First visit at which subtrees are merged, so that those below the nodes to train are pending.
    kept, out : KeptWeights, (n_pairs,)
        Written, unless they are empty: the active features of each node's last model, and the scores of
        all nodes' rows.
    """
    space.cursor[0] = end = 0
    for visit in range(begin, last):
        if visits.given[visit] >= 0:
            push_subtree(visits.given[visit], subtrees, space)
            continue
        sides = visits.left_is_pending[visit], visits.right_is_pending[visit]
        node = NodeRange(visits.start[visit], visits.split[visit], visits.stop[visit], *sides)
        n, k = add_sides(node, counts, models.left_out, space), visits.node[visit]
        if visit >= first and k >= 0:
            make_models(rule, alpha, k, n, models, space)
            end = keep_weights(k, n, end, models, space, kept)
            if len(out) > 0:
                own_pairs = out[rows.pair_offset[k] : rows.pair_offset[k + 1]]
                score_node(k, n, node, models, rows, space, own_pairs)
        merge_sides(n, space)
    return end
