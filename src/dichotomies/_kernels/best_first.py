"""Best-first search: classes in the order of their probability, visiting as few nodes as any method can.

A child is no more probable than its parent. Of all nodes and classes that were reached but not looked into,
the most probable one is taken next: if it is a class, no other class is more probable.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.node_scores import Room, node_score
from dichotomies._kernels.score_maps import AFFINE, apply_one


class Maps(NamedTuple):
    """Maps of the nodes as in `ScoreMaps`, or none; scores are first clipped to ``[-bound, bound]``."""

    kinds: npt.NDArray[np.int8]
    parameters: FloatArray
    knot_offsets: IntArray
    knots: FloatArray
    probabilities: FloatArray
    bound: float


class SearchedTree(NamedTuple):
    """Nodes of a tree as a search takes them.

    Attributes
    ----------
    nodes : SparseNodes, DenseNodes or QuadraticNodes
    maps : Maps
    left, right : (n_nodes,)
        Child node, or ``~code`` of a class.
    """

    nodes: Any
    maps: Maps
    left: IntArray
    right: IntArray


class Reached(NamedTuple):
    """Nodes and classes that a row has reached, numbered in the order of reaching; all (2 * n_nodes + 1,).

    The root is 0, the children of visit v are 2 v + 1 and 2 v + 2.

    Attributes
    ----------
    item
        A node, or ``~code`` of a class.
    log_proba
    """

    item: IntArray
    log_proba: FloatArray


def none_reached(n_nodes: int) -> Reached:
    """Allocate memory that can hold the whole tree."""
    return Reached(np.empty(2 * n_nodes + 1, np.int64), np.empty(2 * n_nodes + 1))


@kernel
def mapped(maps: Maps, k: int, score: float) -> float:
    """Apply the map of a node."""
    one = np.array([score])
    own = slice(maps.knot_offsets[k], maps.knot_offsets[k + 1])
    apply_one(maps.kinds[k], maps.parameters[k], maps.knots[own], maps.probabilities[own], one)
    return float(one[0])


@kernel
def log_likelier(s: float) -> float:
    """Log-probability of the likelier side, of log-odds."""
    return float(-np.log(1.0 + np.exp(-np.abs(s))))


class Ranking(NamedTuple):
    """Order of classes: by ``slope * max(log_proba, floor) + bias``.

    A node has the least slope and the greatest bias of its classes. As slopes are not negative and the
    log-probability of a class is at most that of a node above it, no class below a node ranks higher.

    Attributes
    ----------
    slope, bias : (n_nodes + n_classes,)
        Of the nodes, then of the classes, the last class first: ``slope[~code]`` is that of a class.
    floor : float
        Minus infinity if slopes are 1 and biases 0.
    """

    slope: FloatArray
    bias: FloatArray
    floor: float


class Heap(NamedTuple):
    """A heap of what was reached and not yet taken; both (2 * n_nodes + 1,).

    Attributes
    ----------
    rank, number
        Ranks, the highest first, and whose they are, see `Reached`.
    """

    rank: FloatArray
    number: IntArray


def empty_heap(n_nodes: int) -> Heap:
    """Allocate memory that can hold the whole tree."""
    return Heap(np.empty(2 * n_nodes + 1), np.empty(2 * n_nodes + 1, np.int64))


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
def best_first(
    rows: Any,
    tree: SearchedTree,
    ranking: Ranking,
    least: float,
    most: int,
    reached: Reached,
    heap: Heap,
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
    least : float
        Lowest rank of interest.
    most : int
        Number of visits after which a row's search is given up.
    reached, heap, room
        Memory.
    codes, log_proba : (n_rows, k)
        Written; -1 and minus infinity where none of rank `least` or above was found.
    n_visits : (n_rows,)
        Written: the number of nodes evaluated.
    """
    nodes, maps, left, right = tree
    kinds, parameters, bound, has_maps = maps.kinds, maps.parameters, maps.bound, len(maps.kinds) > 0
    ranks, numbers = heap
    items, reaches = reached
    slope, bias, floor = ranking
    is_ranked = floor > -np.inf
    items[0], reaches[0] = 0, 0.0
    for i in range(len(codes)):
        ranks[0], numbers[0] = slope[0] * 0.0 + bias[0], 0
        size, visit, n_found = 1, 0, 0
        while size > 0 and n_found < codes.shape[1] and ranks[0] >= least and visit < most:
            taken = numbers[0]
            k, reach = items[taken], reaches[taken]
            if k < 0:
                codes[i, n_found], log_proba[i, n_found] = ~k, reach
                n_found += 1
                size -= 1
                sift_down(ranks, numbers, items, size, ranks[size], numbers[size])
                continue
            s = node_score(rows, nodes, i, k, taken, visit, (left[k] >= 0, right[k] >= 0), room)
            if has_maps:
                s = min(max(s, -bound), bound)
                s = parameters[k, 0] * s + parameters[k, 1] if kinds[k] == AFFINE else mapped(maps, k, s)
            likelier = reach + log_likelier(s)
            a, b = 2 * visit + 1, 2 * visit + 2
            items[a], items[b] = left[k], right[k]
            reaches[a], reaches[b] = likelier + min(s, 0.0), likelier - max(s, 0.0)
            rank_a, rank_b = reaches[a], reaches[b]
            if is_ranked:
                rank_a = slope[left[k]] * max(rank_a, floor) + bias[left[k]]
                rank_b = slope[right[k]] * max(rank_b, floor) + bias[right[k]]
            if rank_a < rank_b:
                a, b, rank_a, rank_b = b, a, rank_b, rank_a
            sift_down(ranks, numbers, items, size, rank_a, a)  # the likelier one is often the next
            sift_up(ranks, numbers, items, size, rank_b, b)
            size += 1
            visit += 1
        n_visits[i] = visit
        for j in range(n_found, codes.shape[1]):
            codes[i, j], log_proba[i, j] = -1, -np.inf


class Paths(NamedTuple):
    """Ways from the root to each class.

    Attributes
    ----------
    nodes, goes_left : (n,)
        Nodes above the classes, and whether the class is on their left.
    offsets : (n_classes + 1,)
        Start of each class's path, and the end.
    """

    nodes: IntArray
    goes_left: BoolArray
    offsets: IntArray


@kernel
def along_paths(
    rows: Any,
    tree: SearchedTree,
    paths: Paths,
    codes: IntArray,
    visit_of: IntArray,
    reached: Reached,
    room: Room,
    log_proba: FloatArray,
    n_visits: IntArray,
) -> None:
    """Write the log-probabilities (n_rows, m) of the classes `codes`; a code of -1 is passed over.

    Parameters
    ----------
    visit_of : (n_nodes,)
        Memory, filled with -1 before and after.
    n_visits : (n_rows,)
        Written: the number of nodes evaluated.
    """
    nodes, maps, left, right = tree
    kinds, parameters, bound = maps.kinds, maps.parameters, maps.bound
    items, reaches = reached
    items[0], reaches[0] = 0, 0.0
    for i in range(len(codes)):
        visit = 0
        for j in range(codes.shape[1]):
            if codes[i, j] < 0:
                continue
            number = 0
            for step in range(paths.offsets[codes[i, j]], paths.offsets[codes[i, j] + 1]):
                k = paths.nodes[step]
                if visit_of[k] < 0:
                    s = node_score(rows, nodes, i, k, number, visit, (left[k] >= 0, right[k] >= 0), room)
                    if len(kinds) > 0:
                        s = min(max(s, -bound), bound)
                        is_affine = kinds[k] == AFFINE
                        s = parameters[k, 0] * s + parameters[k, 1] if is_affine else mapped(maps, k, s)
                    likelier = reaches[number] + log_likelier(s)
                    items[2 * visit + 1], items[2 * visit + 2] = left[k], right[k]
                    reaches[2 * visit + 1] = likelier + min(s, 0.0)
                    reaches[2 * visit + 2] = likelier - max(s, 0.0)
                    visit_of[k] = visit
                    visit += 1
                number = 2 * visit_of[k] + (1 if paths.goes_left[step] else 2)
            log_proba[i, j] = reaches[number]
        n_visits[i] = visit
        for number in range(2 * visit + 1):
            if items[number] >= 0:
                visit_of[items[number]] = -1
