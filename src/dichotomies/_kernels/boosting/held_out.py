"""Scores and losses of the rows that were left out of training, tree by tree."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.boosting.encoding import MISSING, Codes
from dichotomies._kernels.boosting.ensembles import CATEGORICAL, MISSING_LEFT, Ensembles
from dichotomies._kernels.boosting.leaves import move_above, move_categories
from dichotomies._kernels.boosting.room import Ranges
from dichotomies._kernels.compile import kernel


class HeldRows(NamedTuple):
    """The rows that were held out, and memory for those of one node.

    Attributes
    ----------
    rows : (n_held,)
        Row numbers, ascending.
    begin, end : (n_nodes,)
        The range of each node's rows.
    columns : (n_features, most)
        Codes, feature by feature.
    place, score : (most,)
        The leaf of each row in one tree; its log-odds.
    """

    rows: IntArray
    begin: IntArray
    end: IntArray
    columns: Codes
    place: npt.NDArray[np.uint8]
    score: FloatArray


def find_held_rows(is_held: BoolArray, ranges: Ranges, n_features: int) -> HeldRows:
    """Find the rows of each node that were held out."""
    rows = np.flatnonzero(is_held)
    begin, end = np.searchsorted(rows, ranges.begin), np.searchsorted(rows, ranges.end)
    most = int((end - begin).max(initial=0))
    columns, place = np.empty((n_features, most), dtype=np.uint8), np.empty(most, dtype=np.uint8)
    return HeldRows(rows, begin, end, columns, place, np.empty(most))


@kernel(borrows=True)
def score_held_out(
    codes: Codes,
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
    codes : (n_rows, n_features)
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
            for f in range(codes.shape[1]):
                held.columns[f, i] = codes[rows[i], f]
        add_loss(score, rows, ranges.split[k], weight, 0, losses[k])
        for number in range(trees.n_trees[k]):
            n_splits = trees.n_splits[t]
            place_rows(held.columns, trees, s, s + n_splits, place)
            for i in range(n):
                score[i] += trees.scale[k] * trees.value[s + t + place[i]]
            t, s = t + 1, s + n_splits
            add_loss(score, rows, ranges.split[k], weight, number + 1, losses[k])
        if trees.is_trained[k]:
            for i in range(n):
                scores[pair + rows[i] - ranges.begin[k]] = score[i]
        pair += ranges.end[k] - ranges.begin[k]


@kernel(inline=True)
def place_rows(codes: Codes, trees: Ensembles, begin: int, end: int, place: npt.NDArray[np.uint8]) -> None:
    """Write the leaf that each row reaches in the tree with these splits.

    Parameters
    ----------
    codes : (n_features, n_rows or more)
    place : (n_rows,)
    """
    for i in range(len(place)):
        place[i] = 0
    for s in range(begin, end):
        column, leaf, new_leaf = codes[trees.feature[s]], trees.leaf[s], np.uint8(s - begin + 1)
        if trees.kind[s] == CATEGORICAL:
            move_categories(column, trees.bits[s], leaf, new_leaf, place)
        else:
            stays = np.uint8(MISSING if trees.kind[s] == MISSING_LEFT else 0)
            move_above(column, trees.limit[s], stays, leaf, new_leaf, place)


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
