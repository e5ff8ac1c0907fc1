"""Scores and losses of the rows that were left out of training, tree by tree."""

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.boosting.encoding import MISSING, Codes
from dichotomies._kernels.boosting.ensembles import CATEGORICAL, MISSING_LEFT, Ensembles
from dichotomies._kernels.boosting.leaves import move_above, move_categories
from dichotomies._kernels.boosting.room import Ranges
from dichotomies._kernels.compile import kernel


@kernel
def score_held_out(
    codes: Codes,
    weight: FloatArray,
    fold: IntArray,
    left_out: int,
    ranges: Ranges,
    trees: Ensembles,
    scores: FloatArray,
    losses: FloatArray,
) -> None:
    """Score the rows of the fold left out by the trees of their nodes.

    Parameters
    ----------
    codes : (n_rows, n_features)
    weight, fold : (n_rows,)
    scores : (n_pairs,)
        Written: log-odds of rows that were held out, node after node; others are left as they are.
    losses : (n_nodes, n_estimators + 1) or (n_nodes, 0)
        Written: sum of their losses by the number of trees.
    """
    t, s, pair = 0, 0, 0
    for k in range(len(ranges.begin)):
        begin, split, end = ranges.begin[k], ranges.split[k], ranges.end[k]
        held = rows_of_fold(fold, left_out, begin, end)
        columns, place = transposed(codes, held), np.empty(len(held), dtype=np.uint8)
        score = np.empty(len(held))
        for i in range(len(held)):
            score[i] = trees.base[k]
        add_loss(score, held, split, weight, 0, losses[k])
        for number in range(trees.n_trees[k]):
            n = trees.n_splits[t]
            place_rows(columns, trees, s, s + n, place)
            for i in range(len(held)):
                score[i] += trees.scale[k] * trees.value[s + t + place[i]]
            t, s = t + 1, s + n
            add_loss(score, held, split, weight, number + 1, losses[k])
        if trees.is_trained[k]:
            for i in range(len(held)):
                scores[pair + held[i] - begin] = score[i]
        pair += end - begin


@kernel
def rows_of_fold(fold: IntArray, wanted: int, begin: int, end: int) -> IntArray:
    """Numbers of the rows of a fold in a range."""
    rows = np.empty(end - begin, dtype=np.int64)
    n = 0
    for row in range(begin, end):
        if fold[row] == wanted:
            rows[n] = row
            n += 1
    return rows[:n]


@kernel
def transposed(codes: Codes, rows: IntArray) -> Codes:
    """Codes of some rows, feature by feature."""
    out = np.empty((codes.shape[1], len(rows)), dtype=np.uint8)
    for i in range(len(rows)):
        for f in range(codes.shape[1]):
            out[f, i] = codes[rows[i], f]
    return out


@kernel
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
