"""Best-first search: classes in the order of their probability, visiting as few nodes as any method can.

A child is no more probable than its parent. Of all nodes and classes that were reached but not looked into,
the most probable one is taken next: if it is a class, no other class is more probable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.score_maps import AFFINE, apply_one
from dichotomies._kernels.search.node_scores import node_score

if TYPE_CHECKING:
    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies._kernels.search.node_scores import Room


class Maps(NamedTuple):
    """Calibrating maps of the nodes, as in `ScoreMaps`; scores are first clipped to ``[-bound, bound]``."""

    kinds: npt.NDArray[np.int8]
    parameters: FloatArray
    knot_offsets: IntArray
    knots: FloatArray
    probabilities: FloatArray
    bound: float


class Ranking(NamedTuple):
    """Order of classes: by ``slope * max(log_proba, floor) + bias``.

    A node has the least slope and the greatest bias of its classes. As slopes are not negative and the
    log-probability of a class is at most that of a node above it, no class below a node ranks higher.

    Attributes
    ----------
    slope, bias : (n_nodes + n_classes,)
        Of the nodes, then of the classes, the last class first: ``slope[~code]`` is that of a class.
    floor : float
    """

    slope: FloatArray
    bias: FloatArray
    floor: float


class Queue(NamedTuple):
    """Nodes and classes that were reached, and a heap of those not yet taken; all (2 * n_nodes + 1,).

    Attributes
    ----------
    rank, number
        Ranks in the order of the heap, the highest first, and whose they are: nodes and classes are numbered
        as they are reached.
    item
        By number: a node, or ``~code`` of a class.
    reach
        By number: the log-probability.
    above
        By number: the visit to the parent.
    """

    rank: FloatArray
    number: IntArray
    item: IntArray
    reach: FloatArray
    above: IntArray


def empty_queue(n_nodes: int) -> Queue:
    """Allocate memory that can hold the whole tree."""
    number, item, above = np.empty((3, 2 * n_nodes + 1), np.int64)
    rank, reach = np.empty((2, 2 * n_nodes + 1))
    return Queue(rank, number, item, reach, above)


@kernel
def comes_first(item: int, other: int) -> bool:
    """Order items of equal rank: nodes first, as they may hold a class of that rank, then by code."""
    return item >= 0 or (other < 0 and item > other)


@kernel
def sift_down(
    ranks: FloatArray, numbers: IntArray, items: IntArray, size: int, rank: float, number: int
) -> None:
    """Put an entry in place of the first of a heap of `size` entries."""
    place, child = 0, 1
    while child < size:
        best = ranks[child]
        if child + 1 < size:
            other = ranks[child + 1]
            if other > best or (
                other == best and comes_first(items[numbers[child + 1]], items[numbers[child]])
            ):
                best, child = other, child + 1
        if rank > best or (rank == best and comes_first(items[number], items[numbers[child]])):
            break
        ranks[place], numbers[place] = best, numbers[child]
        place, child = child, 2 * child + 1
    ranks[place], numbers[place] = rank, number


@kernel
def sift_up(
    ranks: FloatArray, numbers: IntArray, items: IntArray, size: int, rank: float, number: int
) -> None:
    """Add an entry to a heap of `size` entries."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        above = ranks[parent]
        if above > rank or (above == rank and comes_first(items[numbers[parent]], items[number])):
            break
        ranks[place], numbers[place] = above, numbers[parent]
        place = parent
    ranks[place], numbers[place] = rank, number


@kernel
def mapped(maps: Maps, k: int, score: float) -> float:
    """Apply the map of a node."""
    one = np.array([score])
    own = slice(maps.knot_offsets[k], maps.knot_offsets[k + 1])
    apply_one(maps.kinds[k], maps.parameters[k], maps.knots[own], maps.probabilities[own], one)
    return float(one[0])


@kernel(seconds=6)
def best_first(
    rows: Any,
    nodes: Any,
    maps: Maps,
    left: IntArray,
    right: IntArray,
    ranking: Ranking,
    least: float,
    queue: Queue,
    room: Room,
    codes: IntArray,
    log_proba: FloatArray,
    n_visits: IntArray,
) -> None:
    """Write the highest ranking classes of each row and their log-probabilities before ranking.

    Parameters
    ----------
    rows : tuple
        The arrays of a CSR matrix, or one dense array; see `node_score`.
    nodes : SparseNodes, DenseNodes or QuadraticNodes
    left, right : (n_nodes,)
        Child node, or ``~code`` of a class.
    least : float
        Lowest rank of interest.
    queue, room
        Memory.
    codes, log_proba : (n_rows, k)
        Written; -1 and minus infinity where there is no class of rank `least` or above.
    n_visits : (n_rows,)
        Written: the number of nodes evaluated.
    """
    ranks, numbers, items, reaches, aboves = queue
    slope, bias, floor = ranking
    kinds, parameters, bound = maps.kinds, maps.parameters, maps.bound
    for i in range(len(codes)):
        ranks[0], numbers[0] = slope[0] * max(0.0, floor) + bias[0], 0
        items[0], reaches[0], aboves[0] = 0, 0.0, -1
        size, visit, n_found = 1, 0, 0
        while size > 0 and n_found < codes.shape[1] and ranks[0] >= least:
            taken = numbers[0]
            k, reach = items[taken], reaches[taken]
            if k < 0:
                codes[i, n_found], log_proba[i, n_found] = ~k, reach
                n_found += 1
                size -= 1
                sift_down(ranks, numbers, items, size, ranks[size], numbers[size])
                continue
            # children are reached in pairs, the left one first
            s = node_score(rows, nodes, i, k, visit, aboves[taken], taken % 2 == 1, room)
            s = min(max(s, -bound), bound)
            s = parameters[k, 0] * s + parameters[k, 1] if kinds[k] == AFFINE else mapped(maps, k, s)
            likelier = reach - np.log(1.0 + np.exp(-np.abs(s)))
            a, b = 2 * visit + 1, 2 * visit + 2
            items[a], items[b] = left[k], right[k]
            reaches[a], reaches[b] = likelier + min(s, 0.0), likelier - max(s, 0.0)
            aboves[a] = aboves[b] = visit
            rank_a = slope[left[k]] * max(reaches[a], floor) + bias[left[k]]
            rank_b = slope[right[k]] * max(reaches[b], floor) + bias[right[k]]
            if rank_a < rank_b:
                a, b, rank_a, rank_b = b, a, rank_b, rank_a
            sift_down(ranks, numbers, items, size, rank_a, a)  # the likelier one is often the next
            sift_up(ranks, numbers, items, size, rank_b, b)
            size += 1
            visit += 1
        n_visits[i] = visit
        for j in range(n_found, codes.shape[1]):
            codes[i, j], log_proba[i, j] = -1, -np.inf
