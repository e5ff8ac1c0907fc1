"""How uneven a split may be, and how deep a tree can therefore become."""

from __future__ import annotations

from math import ceil
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

#: The least share of a node's classes on either side, whatever `balance` says: no chains.
_LEAST_SHARE = 0.05


def check_balance(balance: Any) -> float:
    """`balance` as a float, if it is a number from 0 to 1."""
    if not isinstance(balance, Real) or not 0 <= float(balance) <= 1:
        raise ValueError(
            "balance must be a number from 0 (as the classes lie, never less than a twentieth of them on a "
            f"side) to 1 (halves), got {balance!r}."
        )
    return float(balance)


def least_side(m: int, balance: float) -> int:
    """How many of m classes must go to the smaller side at least: a share of ``balance / 2``, rounded up.

    Never fewer than a twentieth of the classes, and never more than half of them.

    Examples
    --------
    >>> [least_side(100, balance) for balance in (0.0, 0.5, 1.0)]
    [5, 25, 50]
    """
    share = max(_LEAST_SHARE, balance / 2)
    return min(max(1, ceil(share * m - 1e-9)), m // 2)


def depth_bound(k: int, balance: float) -> int:
    """The depth no leaf exceeds where every split of m classes leaves `least_side` on its smaller side.

    It is at most ``log(k) / -log(1 - s) + 1`` for a least share s below one half, ``ceil(log2(k))`` for
    halves.

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


def within_bounds(codes: IntArray, preference: FloatArray, balance: float) -> tuple[IntArray, IntArray]:
    """Those who prefer left, and the others; the least decided change sides where one would be too small.

    Parameters
    ----------
    codes : (m,)
        What is to be split.
    preference : (m,)
        Positive for left, negative for right, the larger the more decided.
    balance : float
        See `least_side`.

    Returns
    -------
    left, right
        Both in the order in which they were given.
    """
    least = least_side(len(codes), balance)
    n_left = int(np.clip(np.count_nonzero(preference > 0), least, len(codes) - least))
    is_left = np.zeros(len(codes), dtype=bool)
    is_left[np.argsort(-preference, kind="stable")[:n_left]] = True
    return codes[is_left], codes[~is_left]


def best_within_bounds(heights: FloatArray, balance: float) -> int:
    """Where to cut a row of classes: at the highest boundary that leaves enough on either side.

    Of equally high boundaries it is the one nearest to the middle, so that classes that nothing tells apart
    are halved.

    Parameters
    ----------
    heights : (m - 1,)
        How far apart neighbours are.

    Returns
    -------
    int
        How many classes are left of the cut.
    """
    return highest_boundary(heights, least_side(len(heights) + 1, balance))


def highest_boundary(heights: FloatArray, least: int) -> int:
    """`best_within_bounds`, where at least so many classes must be on either side."""
    m = len(heights) + 1
    inside = heights[least - 1 : m - least]
    highest = np.flatnonzero(inside == inside.max()) + least
    return int(highest[np.argmin(np.abs(2 * highest - m))])
