"""Parts of the search for the best split of one feature that all criteria share.

Three passes over the bins: cumulative sums, the score of the split after each bin (vectorised), and the best
score. A later candidate must be better by more than rounding, so that ties go to the feature tried first and
to the lowest threshold.
"""

from typing import Any, NamedTuple

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel

#: Relative difference up to which two scores are tied.
TIE_TOLERANCE = 1e-13


class Scan(NamedTuple):
    """Scratch for the splits of one feature.

    Attributes
    ----------
    sums : (2, MAX_BINS)
        Cumulative sums of amounts; order of categories.
    scores : (2, MAX_BINS)
        Score of the split after each bin, never negative; ratios that order categories.
    """

    sums: IntArray
    scores: FloatArray


@kernel
def splits_with_rows(counts: IntArray, least: int, carried: Any) -> tuple[int, int]:
    """Range of splits with at least `least` rows on both sides; `carried` are on the left already."""
    begin, end = 0, len(counts) - 1
    left, right = counts[begin] + carried, counts[end]
    while begin < end and left < least:
        begin += 1
        left += counts[begin]
    while begin < end and right < least:
        end -= 1
        right += counts[end]
    return begin, end


@kernel
def first_best(score: FloatArray, begin: int, best: float) -> int:
    """Return the first split that is tied with the best, or -1 if that does not beat `best`."""
    # nonnegative floats are ordered as their bits, and integer maxima are vectorised
    bits = score.view(np.int64)
    highest = np.float64(best * (1.0 + TIE_TOLERANCE)).view(np.int64)
    limit = highest
    for i in range(len(bits)):
        highest = max(highest, bits[i])
    if highest == limit:
        return -1
    found = np.int64(highest)
    least = found.view(np.float64) / (1.0 + TIE_TOLERANCE)
    i = 0
    while score[i] < least:
        i += 1
    return begin + i
