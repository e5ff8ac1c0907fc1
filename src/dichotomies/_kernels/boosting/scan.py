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

#: Mask of `splits_with` that counts whole amounts.
ALL_BITS = np.int64(-1)


class Scan(NamedTuple):
    """Scratch for the splits of one feature.

    Attributes
    ----------
    sums : (2, n_bins)
        Cumulative sums of amounts; order of categories.
    scores : (2, n_bins + 1)
        Score of the split after each bin, never negative; ratios that order categories.
    bits : (2, n_bins + 1)
        The same memory as integers: numbers that are not negative are ordered as their bits, and maxima of
        integers are vectorised.
    """

    sums: IntArray
    scores: FloatArray
    bits: IntArray


def allocate_scan(n_bins: int) -> Scan:
    """Allocate scratch for features with so many bins."""
    scores = np.empty((2, n_bins + 1))
    return Scan(np.empty((2, n_bins), dtype=np.int64), scores, scores.view(np.int64))


@kernel
def splits_with(amounts: IntArray, mask: Any, least: Any, carried: Any) -> tuple[int, int]:
    """Range of splits with at least `least` on both sides, of which `carried` is on the left already.

    Only the bits of the amounts that the mask has are counted. A split is identified by the bin before it.
    """
    begin, end = 0, len(amounts) - 1
    left, right = (amounts[begin] + carried) & mask, amounts[end] & mask
    while begin < end and left < least:
        begin += 1
        left += amounts[begin] & mask
    while begin < end and right < least:
        end -= 1
        right += amounts[end] & mask
    return begin, end


@kernel
def first_best(room: Scan, begin: int, end: int, best: float) -> int:
    """Return the first split that is tied with the best, or -1 if that does not beat `best`."""
    bits, scores, last = room.bits[0, begin:end], room.scores[0], room.scores.shape[1] - 1
    scores[last] = best * (1.0 + TIE_TOLERANCE)
    limit = highest = room.bits[0, last]
    for i in range(len(bits)):
        highest = bits[i] if bits[i] > highest else highest
    if highest == limit:
        return -1
    room.bits[0, last] = highest
    least = scores[last] / (1.0 + TIE_TOLERANCE)
    while scores[begin] < least:
        begin += 1
    return begin
