"""Histograms of features: amounts of rows, summed by bin.

Amounts are integers (weights or gradients in fixed point), so that sums do not depend on the order of the
rows, and the histogram of one child is exactly that of the parent minus its sibling's.
"""

from dichotomies._common.typing import IntArray
from dichotomies._kernels.boosting.encoding import Codes
from dichotomies._kernels.compile import kernel


@kernel
def add_to_four(
    a: Codes,
    b: Codes,
    c: Codes,
    d: Codes,
    amounts: IntArray,
    order: IntArray,
    out_a: IntArray,
    out_b: IntArray,
    out_c: IntArray,
    out_d: IntArray,
) -> None:
    """Add the amounts of some rows to the bins of four features.

    Additions to the same bin depend on one another; interleaving four features hides that latency.
    """
    for i in range(len(order)):
        row = order[i]
        amount = amounts[row]
        out_a[a[row]] += amount
        out_b[b[row]] += amount
        out_c[c[row]] += amount
        out_d[d[row]] += amount


@kernel(inline=True)
def clear(histogram: IntArray, begin: int, end: int) -> None:
    """Set some bins to 0."""
    for channel in range(len(histogram)):
        for b in range(begin, end):
            histogram[channel, b] = 0


@kernel
def add_up(parts: IntArray, begin: int, end: int, out: IntArray) -> None:
    """Write the sum of some bins of several histograms."""
    for channel in range(len(out)):
        for b in range(begin, end):
            out[channel, b] = parts[0, channel, b]
        for i in range(1, len(parts)):
            for b in range(begin, end):
                out[channel, b] += parts[i, channel, b]


@kernel(inline=True)
def subtract(whole: IntArray, part: IntArray, begin: int, end: int, shift: int, out: IntArray) -> None:
    """Subtract some bins of one histogram from another's, which are `shift` places further on."""
    for channel in range(len(whole)):
        for b in range(begin, end):
            out[channel, b] = whole[channel, b + shift] - part[channel, b]
