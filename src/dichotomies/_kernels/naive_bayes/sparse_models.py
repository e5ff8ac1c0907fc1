"""Models of sparse rows at every node: all are made, asked about the node's own rows, and one is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import copy
from dichotomies._kernels.naive_bayes.sparse_nodes import make_weights
from dichotomies._kernels.naive_bayes.sparse_sides import Place, add_sides, merge_sides, put_off

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies._kernels.naive_bayes.sparse_sides import Counts, Subtrees, Workspace


class Visits(NamedTuple):
    """Nodes in post-order.

    Attributes
    ----------
    node : (n_visits,)
        Which of the nodes to be trained it is, or -1 if its sides are only merged.
    given : (n_visits,)
        Which of the subtrees that were merged before it is, or -1.
    start, split, stop, left_is_pending, right_is_pending : (n_visits,)
        See `Place`.
    """

    node: IntArray
    given: IntArray
    start: IntArray
    split: IntArray
    stop: IntArray
    left_is_pending: BoolArray
    right_is_pending: BoolArray


class Models(NamedTuple):
    """The models of each node, as far as they do not depend on active features.

    Attributes
    ----------
    left_out : (n_models,)
        The fold that each has not seen, or -1.
    of_side : (n_nodes, n_models, 2)
        See `above_background`; for the normalised complement, the sums if no feature were active.
    intercept, background : (n_nodes, n_models)
        The weight of inactive features is the background. Added to, where the rule asks for it.
    is_trained : (n_nodes, n_models)
        Where not, scores are NaN.
    """

    left_out: IntArray
    of_side: FloatArray
    intercept: FloatArray
    background: FloatArray
    is_trained: BoolArray


class Kept(NamedTuple):
    """The active features of the last model of each node.

    Attributes
    ----------
    sizes : (n_nodes,)
        How many there are.
    feature, value : (room,)
        A feature, and how far its weight is from the background.
    """

    sizes: IntArray
    feature: Any
    value: FloatArray


class Rows(NamedTuple):
    """CSR rows in the order of their leaves, so that a node's are next to one another.

    Attributes
    ----------
    leaf_offset : (n_leaves + 1,)
        Where each leaf's rows begin, and the end.
    folds, total : (n_rows,)
        The fold of each row, and the sum of its features.
    pair_offset : (n_nodes + 1,)
        Where the scores of each node's rows begin, and the end.
    all_counted : bool
        Whether all rows weigh something, so that a node has met all features of its rows.
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
def spread(met: Any, weights: FloatArray, left_out: IntArray, table: FloatArray) -> None:
    """Write the weights of the features met to where these find them, if the model has a fold to score."""
    for model in range(len(left_out)):
        if left_out[model] >= 0:
            own, out = weights[model], table[model]
            for s in range(len(met)):
                out[np.uintp(met[s])] = own[s]


@kernel
def product(entry: int, data: FloatArray, indices: Any, table: FloatArray, model: int) -> float:
    """A feature of a row times its weight; unsigned, places are never taken to be counted from the end."""
    place = np.uintp(entry)
    return float(data[place] * table[np.uintp(model), np.uintp(indices[place])])


@kernel
def score_rows(
    first: int,
    last: int,
    rows: Rows,
    table: FloatArray,
    intercept: FloatArray,
    background: FloatArray,
    is_trained: BoolArray,
    out: FloatArray,
) -> None:
    """Score the rows from `first` to `last`, each by the model that has not seen its fold.

    Products are added in four sums that need not wait for one another. It is not left to the compiler, which
    would fetch weights by vector instructions, nor to a function per row: both take longer.
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
def keep(k: int, n: int, end: int, models: Models, space: Workspace, kept: Kept) -> int:
    """Write the active features of the last model of node `k` from place `end` on; return the new end."""
    kept.sizes[k] = 0
    if len(kept.feature) == 0 or not models.is_trained[k, -1]:
        return end
    kept.sizes[k] = n
    copy(space.met[:n], kept.feature[end:])
    copy(space.weights[-1, :n], kept.value[end:])
    return end + n


@kernel
def make_models(rule: int, alpha: FloatArray, k: int, n: int, models: Models, space: Workspace) -> None:
    """Make the models of node `k` from the sums of the `n` features met there."""
    own_alpha = alpha[space.met[:n]]
    for model in range(len(models.left_out)):
        sides = space.left[model, :n], space.right[model, :n]
        of_side, weights = models.of_side[k, model], space.weights[model, :n]
        more = make_weights(rule, own_alpha, *sides, len(alpha), of_side, weights)
        models.intercept[k, model] += more[0]
        models.background[k, model] += more[1]


@kernel
def score_node(
    k: int, n: int, place: Place, models: Models, rows: Rows, space: Workspace, out: FloatArray
) -> None:
    """Score the rows of node `k`, where `n` features were met, by models that have not seen their fold."""
    first, last = rows.leaf_offset[place.start], rows.leaf_offset[place.stop]
    spread(space.met[:n], space.weights, models.left_out, space.table)
    own = models.intercept[k], models.background[k], models.is_trained[k]
    score_rows(first, last, rows, space.table, *own, out)
    if not rows.all_counted:
        space.weights[:, :n] = 0.0
        spread(space.met[:n], space.weights, models.left_out, space.table)


@kernel
def visit_nodes(
    rule: int,
    alpha: FloatArray,
    counts: Counts,
    visits: Visits,
    subtrees: Subtrees,
    models: Models,
    rows: Rows,
    begin: int,
    first: int,
    last: int,
    space: Workspace,
    kept: Kept,
    out: FloatArray,
) -> int:
    """Train the nodes visited from `first` to `last`; return how many active features are kept.

    Parameters
    ----------
    alpha : (n_features,)
    subtrees : Subtrees
        Those that were merged before.
    begin : int
        The visit from which on subtrees are merged, so that those below the nodes to train are pending.
    kept, out : Kept, (n_pairs,)
        Written, unless there is no room: the active features of each node's last model, and the scores of
        all nodes' rows.
    """
    space.cursor[0] = end = 0
    for visit in range(begin, last):
        if visits.given[visit] >= 0:
            put_off(visits.given[visit], subtrees, space)
            continue
        sides = visits.left_is_pending[visit], visits.right_is_pending[visit]
        place = Place(visits.start[visit], visits.split[visit], visits.stop[visit], *sides)
        n, k = add_sides(place, counts, models.left_out, space), visits.node[visit]
        if visit >= first and k >= 0:
            make_models(rule, alpha, k, n, models, space)
            end = keep(k, n, end, models, space, kept)
            if len(out) > 0:
                own_pairs = out[rows.pair_offset[k] : rows.pair_offset[k + 1]]
                score_node(k, n, place, models, rows, space, own_pairs)
        merge_sides(n, space)
    return end
