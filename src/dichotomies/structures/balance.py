"""Limits on how unbalanced a split may be, and the depth bounds that follow."""

from __future__ import annotations

from math import ceil
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

#: Minimum share of a node's classes on either side for any `balance`; it rules out chains.
_LEAST_SHARE = 0.05


def check_balance(balance: Any) -> float:
    """Return `balance` as a float; raise unless it is a number from 0 to 1."""
    if not isinstance(balance, Real) or not 0 <= float(balance) <= 1:
        raise ValueError(
            "balance must be a number from 0 (splits as the classes are clustered, at least a twentieth of "
            f"them on each side) to 1 (halves), got {balance!r}."
        )
    return float(balance)


def least_side(m: int, balance: float) -> int:
    """Return the minimum number of m classes on the smaller side: the share ``balance / 2``, rounded up.

    At least a twentieth and at most half of the classes.

    Examples
    --------
    >>> [least_side(100, balance) for balance in (0.0, 0.5, 1.0)]
    [5, 25, 50]
    """
    share = max(_LEAST_SHARE, balance / 2)
    return min(max(1, ceil(share * m - 1e-9)), m // 2)


def depth_bound(k: int, balance: float) -> int:
    """Return the maximum leaf depth if every split of m classes leaves `least_side` on the smaller side.

    It is at most ``log(k) / -log(1 - s) + 1`` for a minimum share s below one half, and ``ceil(log2(k))``
    for halves.

    Examples
    --------
    >>> [depth_bound(1000, balance) for balance in (0.0, 0.5, 1.0)]
    [87, 21, 10]
    """
    depth = 0
    while k > 1:
        k -= least_side(k, balance)
        depth += 1
    return depth


def split_within_bounds(codes: IntArray, preference: FloatArray, balance: float) -> tuple[IntArray, IntArray]:
    """Split classes by the sign of their preference; the weakest change sides if one side is too small.

    Parameters
    ----------
    codes : (m,)
        The classes to split.
    preference : (m,)
        Positive for left, negative for right; its magnitude is the strength of the preference.
    balance : float
        See `least_side`.

    Returns
    -------
    left, right
        Both in the order given.
    """
    least = least_side(len(codes), balance)
    n_left = int(np.clip(np.count_nonzero(preference > 0), least, len(codes) - least))
    is_left = np.zeros(len(codes), dtype=bool)
    is_left[np.argsort(-preference, kind="stable")[:n_left]] = True
    return codes[is_left], codes[~is_left]


def balanced_boundary(heights: FloatArray, balance: float) -> int:
    """Return where to cut a row of classes: the highest boundary that leaves enough on either side.

    Ties go to the boundary nearest to the middle, so that indistinguishable classes are halved.

    Parameters
    ----------
    heights : (m - 1,)
        Distance between neighbouring classes.

    Returns
    -------
    int
        Number of classes left of the cut.
    """
    return highest_boundary(heights, least_side(len(heights) + 1, balance))


def highest_boundary(heights: FloatArray, least: int) -> int:
    """Return the cut of `balanced_boundary` for at least `least` classes on either side."""
    m = len(heights) + 1
    inside = heights[least - 1 : m - least]
    highest = np.flatnonzero(inside == inside.max()) + least
    return int(highest[np.argmin(np.abs(2 * highest - m))])
