"""Scores and losses of the rows that were left out of training, tree by tree."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.encoding import MISSING, Codes
from dichotomies._kernels.boosting.ensembles import CATEGORICAL, MISSING_LEFT, Ensembles
from dichotomies._kernels.boosting.leaves import move_above, move_categories, move_known_above
from dichotomies._kernels.boosting.local_rows import Bins
from dichotomies._kernels.boosting.room import Ranges
from dichotomies._kernels.boosting.rows import write_codes
from dichotomies._kernels.boosting.sparse_rows import SparseBins
from dichotomies._kernels.compile import kernel


class HeldRows(NamedTuple):
    """The rows that were held out, and memory for those of one node.

    Attributes
    ----------
    rows : (n_held,)
        Row numbers, ascending.
    begin, end : (n_nodes,)
        The range of each node's rows.
    columns : (most_used, most)
        Codes in the features that the trees of one node use, one after the other.
    used : (most_used,)
        Those features.
    local : (n_features,)
        Their places in `used`, -1 for all others.
    place, score : (most,)
        The leaf of each row in one tree; its log-odds.
    """

    rows: IntArray
    begin: IntArray
    end: IntArray
    columns: Codes
    used: IntArray
    local: IntArray
    place: npt.NDArray[np.uint8]
    score: FloatArray


def find_held_rows(is_held: BoolArray, ranges: Ranges, trees: Ensembles, n_features: int) -> HeldRows:
    """Find the rows of each node that were held out, and allocate memory for those of the largest."""
    rows = np.flatnonzero(is_held)
    begin, end = np.searchsorted(rows, ranges.begin), np.searchsorted(rows, ranges.end)
    most = int((end - begin).max(initial=0))
    last_tree = np.cumsum(trees.n_trees)
    splits = np.concatenate([[0], np.cumsum(trees.n_splits[: last_tree.max(initial=0)])])
    most_used = min(n_features, int((splits[last_tree] - splits[last_tree - trees.n_trees]).max(initial=0)))
    return HeldRows(
        rows,
        begin,
        end,
        columns=np.empty((most_used, most), dtype=np.uint8),
        used=np.empty(most_used, dtype=np.intp),
        local=np.full(n_features, -1, dtype=np.intp),
        place=np.empty(most, dtype=np.uint8),
        score=np.empty(most),
    )


@kernel(borrows=True)
def score_held_out(
    bins: Bins | SparseBins,
    weight: FloatArray,
    held: HeldRows,
    ranges: Ranges,
    trees: Ensembles,
    scores: FloatArray,
    losses: FloatArray,
) -> None:
    """Score the rows of the fold left out by the trees of their nodes.

    Parameters
    ----------
    bins : Bins or SparseBins
    weight : (n_rows,)
    scores : (n_pairs,)
        Written: log-odds of rows that were held out, node after node; others are left as they are.
    losses : (n_nodes, n_estimators + 1) or (n_nodes, 0)
        Written: sum of their losses by the number of trees.
    """
    t, s, pair = 0, 0, 0
    for k in range(len(ranges.begin)):
        rows, n = held.rows[held.begin[k] : held.end[k]], held.end[k] - held.begin[k]
        place, score = held.place[:n], held.score[:n]
        for i in range(n):
            score[i] = trees.base[k]
        used = held.used[: number_used(trees, k, t, s, held)]
        write_codes(bins, rows, used, held.local, held.columns)
        add_loss(score, rows, ranges.split[k], weight, 0, losses[k])
        for number in range(trees.n_trees[k]):
            n_splits = trees.n_splits[t]
            place_rows(held, trees, s, s + n_splits, place)
            for i in range(n):
                score[i] += trees.scale[k] * trees.value[s + t + place[i]]
            t, s = t + 1, s + n_splits
            add_loss(score, rows, ranges.split[k], weight, number + 1, losses[k])
        if trees.is_trained[k]:
            for i in range(n):
                scores[pair + rows[i] - ranges.begin[k]] = score[i]
        pair += ranges.end[k] - ranges.begin[k]
        for j in range(len(used)):
            held.local[used[j]] = -1


@kernel
def number_used(trees: Ensembles, k: int, first_tree: int, first_split: int, held: HeldRows) -> int:
    """Number the features that the trees of a node use; return how many there are."""
    n_used, s = 0, first_split
    for t in range(first_tree, first_tree + trees.n_trees[k]):
        for _ in range(trees.n_splits[t]):
            feature = trees.feature[s]
            if held.local[feature] < 0:
                held.local[feature], held.used[n_used] = n_used, feature
                n_used += 1
            s += 1
    return n_used


@kernel(inline=True)
def place_rows(held: HeldRows, trees: Ensembles, begin: int, end: int, place: npt.NDArray[np.uint8]) -> None:
    """Write the leaf that each row of a node reaches in the tree with these splits."""
    for i in range(len(place)):
        place[i] = 0
    for s in range(begin, end):
        column = held.columns[held.local[trees.feature[s]]]
        leaf, new_leaf = trees.leaf[s], np.uint8(s - begin + 1)
        if trees.kind[s] == CATEGORICAL:
            move_categories(column, trees.bits[s], leaf, new_leaf, place)
        elif trees.kind[s] == MISSING_LEFT:
            move_known_above(column, trees.limit[s], np.uint8(MISSING), leaf, new_leaf, place)
        else:
            move_above(column, trees.limit[s], leaf, new_leaf, place)


@kernel
def add_loss(
    score: FloatArray, rows: IntArray, split: int, weight: FloatArray, n_trees: int, out: FloatArray
) -> None:
    """Write the sum of the weighted logistic losses with this and any higher number of trees.

    Rows before `split` are on the left.
    """
    if len(out) == 0:
        return
    total = 0.0
    for i in range(len(rows)):
        margin = score[i] if rows[i] < split else -score[i]
        total += weight[rows[i]] * (np.log1p(np.exp(-abs(margin))) + max(-margin, 0.0))
    for n in range(n_trees, len(out)):
        out[n] = total
