"""Rows of many binary problems, and their folds."""

from typing import NamedTuple

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel


class SegmentArrays(NamedTuple):
    """Rows of m segments, one after the other.

    Attributes
    ----------
    scores, targets, weights : (n,)
    offsets : (m + 1,)
        Start of each segment, and the end.
    """

    scores: FloatArray
    targets: BoolArray
    weights: FloatArray
    offsets: IntArray


@kernel
def deal_folds(
    targets: BoolArray, weights: FloatArray, offsets: IntArray, n_folds: int, out: IntArray
) -> None:
    """Write a fold for every row: each side of each segment is dealt evenly, in a shuffled order.

    Every run of `n_folds` rows of one side goes to all folds, in an order drawn by a generator
    that starts anew with each segment, so that a segment's folds do not depend on its neighbours.
    Rows without weight take no part.
    """
    decks = np.empty((2, n_folds), np.intp)
    dealt = np.empty(2, np.intp)
    for k in range(len(offsets) - 1):
        for j in range(n_folds):
            decks[0, j], decks[1, j] = j, n_folds - 1 - j
        dealt[0] = dealt[1] = n_folds
        state = np.uint64(0x9E3779B97F4A7C15)
        for i in range(offsets[k], offsets[k + 1]):
            if weights[i] <= 0.0:
                out[i] = 0
                continue
            side = 1 if targets[i] else 0
            if dealt[side] == n_folds:
                state = shuffle(decks[side], state)
                dealt[side] = 0
            out[i] = decks[side, dealt[side]]
            dealt[side] += 1


@kernel
def shuffle(deck: IntArray, state: np.uint64) -> np.uint64:
    """Shuffle in place by a 64-bit xorshift generator; return its next state."""
    for j in range(len(deck) - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        other = np.intp((state >> np.uint64(33)) % np.uint64(j + 1))
        deck[j], deck[other] = deck[other], deck[j]
    return state
